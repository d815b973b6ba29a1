/** The scripts that export directories and end exports, by the shell itself with a stand-in for exportfs. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { known } from '../../../src/ops/kernel/fact.ts'
import { cksum, type FileState } from '../../../src/ops/kernel/files.ts'
import type { Action, Step, Verdict } from '../../../src/ops/kernel/operation.ts'
import type { HostFactsOfNfs } from '../../../src/ops/nfs/facts.ts'
import { planExports, planUnexport } from '../../../src/ops/nfs/plan-server.ts'
import type { Share } from '../../../src/ops/nfs/wanted.ts'

let home: string
let directory: string
let own: string
let shared: string

/** Exports the directories that exist, as exportfs of nfs-utils 2.6 does; a line for `m9` is an error of its own. */
const EXPORTFS = `
[ "$1" = -ra ] || exec cat "$HOME/etab"
: > "$HOME/etab"; status=0
for file in "$HOME"/exports.d/*.exports; do
  [ -e "$file" ] || continue
  while read -r path client; do
    case $path in '#'*) continue;; esac
    if [ ! -d "$path" ]; then
      echo "exportfs: $file [1]: Neither 'subtree_check' or 'no_subtree_check' specified for export" >&2
      echo "  Assuming default behaviour ('no_subtree_check')." >&2
      echo "exportfs: Failed to stat $path: No such file or directory" >&2
      status=1
    elif [ "\${client%%(*}" = m9 ]; then echo 'exportfs: Failed to resolve m9' >&2; status=1
    else echo "$path  $client" >> "$HOME/etab"; fi
  done < "$file"
done
exit $status`

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-exports-'))
  directory = join(home, 'exports.d')
  own = join(directory, 'muster-nfs.exports')
  shared = join(home, 'shared')
  for (const each of [directory, shared, join(home, 'bin')]) mkdirSync(each)
  writeFileSync(join(home, 'bin', 'exportfs'), `#!/bin/sh${EXPORTFS}\n`)
  chmodSync(join(home, 'bin', 'exportfs'), 0o755)
  writeFileSync(join(home, 'etab'), '')
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

function run({ script, stdin = [] }: Pick<Action, 'script' | 'stdin'>) {
  const { status, stderr } = spawnSync('sh', ['-c', script.replaceAll('/etc/exports.d', directory)], {
    env: { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home },
    input: Buffer.concat(stdin.map((part) => Buffer.from(part as Uint8Array))),
  })
  return { status, stderr: stderr.toString() }
}

function factsNow(): HostFactsOfNfs {
  const text = existsSync(own) ? readFileSync(own, 'latin1') : undefined
  const file: FileState =
    text === undefined ? { kind: 'none' } : { kind: 'file', text, mode: '644', sum: cksum(Buffer.from(text, 'latin1')) }
  return {
    ownExports: known(file),
    foreignExports: known({ entries: [], problems: [] }),
    active: known([]),
    service: known({ manager: 'systemd', isRunning: true, isEnabled: true }),
    localPoints: known(new Map([[shared, { kind: 'directory', isEmpty: true, mode: '755', filesystem: 'ext4' }]])),
  } as unknown as HostFactsOfNfs
}

const shareFor = (client: string) => [{ path: shared, exportTo: [client], options: ['rw'] }] as unknown as Share[]

function lastStep(verdict: Verdict): Step {
  const step = verdict.kind === 'steps' ? verdict.steps.at(-1) : undefined
  if (step === undefined) throw new Error(JSON.stringify(verdict))
  return step
}

describe('exports of NFS', () => {
  it('begin and end beside an export of a missing directory in another file', () => {
    writeFileSync(join(directory, 'hand.exports'), '/srv/missing *(rw)\n')
    const up = lastStep(planExports('m1', factsNow(), shareFor('m8')))
    expect(run(up.run)).toEqual({ status: 0, stderr: '' })
    expect(up.check && run(up.check)).toEqual({ status: 0, stderr: '' })
    expect(readFileSync(join(home, 'etab'), 'utf8')).toBe(`${shared}  m8(rw)\n`)

    const down = lastStep(planUnexport('m1', factsNow()))
    // As after the server was stopped.
    writeFileSync(join(home, 'etab'), '')
    expect(down.check && run(down.check).status).toBe(1)
    expect(run(down.run)).toEqual({ status: 0, stderr: '' })
    expect(down.check && run(down.check)).toEqual({ status: 0, stderr: '' })
    expect(existsSync(own)).toBe(false)
  })

  it('fail with what exportfs says for the first time, and the old file is restored', () => {
    writeFileSync(join(directory, 'hand.exports'), '/srv/missing *(rw)\n')
    const { run: script, undo } = lastStep(planExports('m1', factsNow(), shareFor('m9')))
    expect(run(script)).toEqual({ status: 1, stderr: 'exportfs: Failed to resolve m9\nexportfs -ra: exit 1\n' })
    expect(existsSync(own)).toBe(true)
    expect(undo && run(undo)).toEqual({ status: 0, stderr: '' })
    expect(existsSync(own)).toBe(false)
  })
})
