/** The kernel's scripts in a real shell: facts, files, packages and services, on this machine with a home of its own. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Fact, gatherFacts, knownValue } from '../../../src/ops/kernel/fact.ts'
import { bytesOf, cksum, type FileState, fileFact, removeFile, writeFile } from '../../../src/ops/kernel/files.ts'
import {
  MOST_STDERR_BYTES,
  MOST_STDOUT_BYTES,
  type OpsHosts,
  type ScriptOptions,
  type ScriptResult,
} from '../../../src/ops/kernel/host-port.ts'
import { HostLocks } from '../../../src/ops/kernel/lock.ts'
import type { Action } from '../../../src/ops/kernel/operation.ts'
import { installPackages, packagesFact, removePackages } from '../../../src/ops/kernel/packages.ts'
import { serviceFact } from '../../../src/ops/kernel/services.ts'
import { SERVICE } from '../../../src/ops/nfs/facts.ts'
import { writeProgram } from '../../support/program.ts'
import { findProgram } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

let home: string
let bin: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-kernel-'))
  bin = join(home, 'bin')
  mkdirSync(bin)
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const environment = () => ({ PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`, HOME: home })

const SHELLS: readonly (readonly string[])[] = [['sh'], ['dash'], ['bash'], ['bash', '--posix'], ['busybox', 'sh']]

function runScript(
  script: string,
  stdin: Uint8Array = Buffer.alloc(0),
  [shell = '', ...words]: readonly string[] = ['sh'],
) {
  const options = { env: environment(), input: stdin, maxBuffer: 16 * MOST_STDOUT_BYTES }
  return spawnSync(findProgram(shell) ?? shell, [...words, '-c', script], options)
}

const hostsOf = (shell?: readonly string[]): OpsHosts => ({
  async exec(_host: string, script: string, { stdin }: ScriptOptions): Promise<ScriptResult> {
    const { status, stdout, stderr } = runScript(script, stdin, shell)
    const kept = { stdout: stdout.subarray(0, MOST_STDOUT_BYTES), stderr: stderr.subarray(0, MOST_STDERR_BYTES) }
    return { outcome: { kind: 'exit', code: status ?? -1 }, ...kept, durationMs: 0 }
  },
})
const here = hostsOf()

async function ask<T>(fact: Fact<T>): Promise<T | undefined> {
  const gathered = await gatherFacts(
    here,
    'm1',
    { it: fact as Fact<unknown> },
    { signal: new AbortController().signal, mark: 'mark', now: () => 1 },
  )
  if (gathered.kind !== 'facts') throw new Error(gathered.reason)
  const answer = gathered.facts.facts.it
  return answer === undefined ? undefined : (knownValue(answer) as T | undefined)
}

const apply = ({ script, stdin = [] }: Action) =>
  runScript(script, Buffer.concat(stdin.map((part) => Buffer.from(part as Uint8Array))))
const stub = (name: string, text: string) => {
  writeProgram(join(bin, name), text)
}

describe('facts', () => {
  it('arrive byte for byte, beside facts that may hang', async () => {
    const bytesOf = (script: string): Fact<string> => ({ script, parse: (_, bytes) => `<${bytes.toString()}>` })
    const facts = {
      silent: { ...bytesOf('sleep 60'), mayHang: true },
      first: bytesOf("printf 'a\\n\\nb\\n'"),
      last: bytesOf("printf 'c\\n'"),
    }
    const signal = new AbortController().signal
    const options = { signal, mark: 'mark', now: () => 7 }
    const gathered = await gatherFacts(here, 'm1', facts as Record<string, Fact<unknown>>, options)
    const found = { silent: { kind: 'unknown' }, first: { value: '<a\n\nb\n>' }, last: { value: '<c\n>' } }
    expect(gathered).toMatchObject({ kind: 'facts', facts: { facts: found } })
  })

  it('are independent: one that fails or ends its shell does not affect the others', async () => {
    const text = (script: string): Fact<string> => ({ script, parse: (said) => said || undefined })
    const facts = {
      plain: text('echo one'),
      fails: text('echo x; return 3'),
      exits: text('exit 1'),
      hangs: { ...text('echo two'), mayHang: true },
    }
    const signal = new AbortController().signal
    const gathered = await gatherFacts(here, 'm1', facts as Record<string, Fact<unknown>>, {
      signal,
      mark: 'mark',
      now: () => 7,
    })
    expect(gathered).toMatchObject({
      kind: 'facts',
      facts: {
        atMs: 7,
        facts: { plain: { value: 'one' }, fails: { value: 'x' }, exits: { kind: 'unknown' }, hangs: { value: 'two' } },
      },
    })
  })

  it.each(
    SHELLS.filter(([name = '']) => findProgram(name) !== undefined).map((words) => [words.join(' '), words] as const),
  )('come whole in %s, whatever the others do', async (_, shell) => {
    const lines = Array.from({ length: 100 }, (_, index) => `  ${index} \\\\ \\n %s "$x" `)
    writeFileSync(join(home, 'long'), lines.join('\n'))
    writeFileSync(join(home, 'short'), lines.slice(0, 9).join('\n'))
    writeFileSync(join(home, 'file'), Buffer.from(Array.from({ length: 1024 }, (_, index) => (index % 255) + 1)))
    const text = (script: string): Fact<unknown> => ({ script, parse: (_, bytes) => bytes.toString() })
    const part = (script: string, when = ':') => ({ when, script })
    const facts = {
      bytes: text("printf 'a\\000\\n\\n'"),
      exits: text('echo half; exit 0'),
      long: text('tell ~/long "> "'),
      dies: text('echo half; : > /no/such/directory/file; set -o no-such-option; exit 2'),
      short: text('tell ~/short "> "'),
      none: text('tell ~/none "> "; echo $?'),
      before: { ...text('echo "$mine"'), before: 'mine=once' },
      hangs: { ...text('limited sleep 60; overdue $? && return 124'), mayHang: true },
      parts: { ...text(':'), parts: [part('sleep 60'), part('echo left out', 'false'), part('echo "$mine"')] },
      file: fileFact('~/file'),
    }
    const gathered = await gatherFacts(hostsOf(shell), 'm1', facts, {
      signal: new AbortController().signal,
      mark: 'mark',
      now: () => 7,
      limitFactor: 0.5,
    })
    const value = (of: unknown) => ({ kind: 'known', value: of })
    const prefixed = (all: readonly string[]) => all.map((line) => `> ${line}`).join('\n')
    expect(gathered).toMatchObject({
      facts: {
        facts: {
          bytes: value('a\0\n\n'),
          exits: { kind: 'unknown' },
          long: value(prefixed(lines)),
          dies: { kind: 'unknown' },
          short: value(prefixed(lines.slice(0, 9))),
          none: { kind: 'known', value: expect.stringMatching(/^[12]\n$/) },
          before: value('once\n'),
          hangs: { kind: 'unknown' },
          parts: value('once'),
          file: { kind: 'known', value: { kind: 'file', sum: expect.stringMatching(/-1024$/) } },
        },
      },
    })
  })

  it('are read whole beside one whose answer is too long', async () => {
    const text = (script: string): Fact<unknown> => ({ script, parse: (said) => said || undefined })
    const facts = {
      before: text('echo before'),
      noisy: text(`echo real; head -c ${2 * MOST_STDOUT_BYTES} /dev/zero | tr '\\000' x`),
      after: text('echo after'),
      beside: { ...text('echo beside'), mayHang: true },
      last: text('echo last'),
    }
    const options = { signal: new AbortController().signal, mark: 'mark', now: () => 7 }
    expect(await gatherFacts(here, 'm1', facts, options)).toMatchObject({
      facts: {
        facts: {
          before: { value: 'before' },
          noisy: { kind: 'unknown', because: 'it printed more than 1.0 MiB, and was cut off' },
          after: { value: 'after' },
          beside: { value: 'beside' },
          last: { value: 'last' },
        },
      },
    })
  })

  it('that hang are stopped with all that they started, and the others are reported', async () => {
    const text = (script: string): Fact<unknown> => ({ script, parse: (said) => said || undefined, mayHang: true })
    const facts = {
      hangs: text('echo x; (sleep 98765; :); echo y'),
      quick: text('echo quick'),
      file: fileFact('~/none'),
    }
    const signal = new AbortController().signal
    const gathered = await gatherFacts(here, 'm1', facts as Record<string, Fact<unknown>>, {
      signal,
      mark: 'mark',
      now: () => 7,
    })
    expect(gathered).toMatchObject({
      facts: { facts: { hangs: { kind: 'unknown' }, quick: { value: 'quick' }, file: { value: { kind: 'none' } } } },
    })
    const commands = () =>
      readdirSync('/proc').flatMap((pid) => {
        try {
          return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8')] : []
        } catch {
          return []
        }
      })
    // A process that was killed takes a moment to be gone.
    await waitUntil(() => !commands().includes('sleep\u000098765\u0000'), 'the end of what hangs')
  })

  it('contain every byte of a file', async () => {
    const bytes = Buffer.from(Array.from({ length: 1024 }, (_, index) => (index % 255) + 1))
    writeFileSync(join(home, 'file'), bytes)
    const state = await ask(fileFact('~/file'))
    expect(state).toMatchObject({ kind: 'file' })
    expect(Buffer.from(bytesOf((state as { text: string }).text))).toEqual(bytes)
  })

  it('are unknown for a file that grows while it is read', async () => {
    writeFileSync(join(home, 'file'), 'old\n')
    stub('cat', `printf 'new\\n' >> "$1"; exec ${findProgram('cat')} "$1"`)
    expect(await ask(fileFact('~/file'))).toBeUndefined()
  })

  it('contain the checksum that cksum prints', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 700 }), (bytes) => {
        const [sum, size] = spawnSync('cksum', { input: bytes }).stdout.toString().split(' ')
        expect(cksum(bytes)).toBe(`${sum}-${size?.trim()}`)
      }),
      { numRuns: 20 },
    )
  })

  it('distinguish a directory, a missing file, a binary file and an empty file', async () => {
    writeFileSync(join(home, 'empty'), '')
    writeFileSync(join(home, 'zeros'), 'a\0b\n')
    expect(await ask(fileFact('~/zeros'))).toEqual({ kind: 'other', because: 'it holds zero bytes' })
    expect(await ask(fileFact('~/none'))).toEqual({ kind: 'none' })
    expect(await ask(fileFact('~/bin'))).toEqual({ kind: 'other', because: 'it is not a file' })
    expect(await ask(fileFact('~/empty'))).toMatchObject({ kind: 'file', text: '' })
  })
})

describe('a file', () => {
  const stateOf = async (name: string) => (await ask(fileFact(`~/${name}`))) as FileState
  const write = async (name: string, text: string, was?: FileState) =>
    apply(
      writeFile({ path: `~/${name}`, was: was ?? (await stateOf(name)) }, { content: [bytesOf(text)], mode: '640' }),
    )

  it('is created with its directory and its mode', async () => {
    expect((await write('new/file', 'text\n')).status).toBe(0)
    expect(readFileSync(join(home, 'new/file'), 'utf8')).toBe('text\n')
    expect([statSync(join(home, 'new/file')).mode & 0o777, statSync(join(home, 'new')).mode & 0o777]).toEqual([
      0o640, 0o700,
    ])
  })

  it('keeps its mode, with a backup copy', async () => {
    writeFileSync(join(home, 'file'), 'old\n', { mode: 0o604 })
    expect((await write('file', 'new\n')).status).toBe(0)
    expect(readFileSync(join(home, 'file'), 'utf8')).toBe('new\n')
    expect(statSync(join(home, 'file')).mode & 0o777).toBe(0o604)
    expect(readFileSync(join(home, 'file.muster-before'), 'utf8')).toBe('old\n')
  })

  it('can hold any bytes, and writing or removing it twice changes nothing', async () => {
    const bytes = fc.uint8Array({ min: 1, maxLength: 300 }).map((all) => Buffer.from(all).toString('latin1'))
    const name = fc.constantFrom('file', 'of mine/$file', "a/b/it's")
    await fc.assert(
      fc.asyncProperty(name, bytes, fc.constantFrom('600', '644', '755'), async (path, text, mode) => {
        const write = async () =>
          writeFile({ path: `~/${path}`, was: await stateOf(path) }, { content: [bytesOf(text)], mode })
        for (const _ of ['once', 'twice']) {
          expect(apply(await write()).status).toBe(0)
          expect(await stateOf(path)).toMatchObject({ kind: 'file', text, mode })
        }
        for (const _ of ['once', 'twice']) {
          expect(apply(removeFile({ path: `~/${path}`, was: await stateOf(path) })).status).toBe(0)
          expect(await stateOf(path)).toEqual({ kind: 'none' })
        }
      }),
      { numRuns: 12 },
    )
  })

  it('is left alone if it has changed since', async () => {
    writeFileSync(join(home, 'file'), 'old\n')
    const was = await stateOf('file')
    writeFileSync(join(home, 'file'), 'theirs\n')
    const { status, stderr } = await write('file', 'new\n', was)
    expect([status, readFileSync(join(home, 'file'), 'utf8')]).toEqual([1, 'theirs\n'])
    expect(stderr.toString()).toMatch(/has changed since Muster read it/)
  })

  it('remains a link to the changed file', async () => {
    writeFileSync(join(home, 'real'), 'old\n')
    symlinkSync('real', join(home, 'link'))
    expect((await write('link', 'new\n')).status).toBe(0)
    expect(readFileSync(join(home, 'real'), 'utf8')).toBe('new\n')
  })

  it('keeps its content if the disk is full', async () => {
    writeFileSync(join(home, 'file'), 'old\n')
    stub('dd', 'echo "dd: error writing: No space left on device" >&2; exit 1')
    const { status, stderr } = await write('file', 'new\n')
    expect([status, readFileSync(join(home, 'file'), 'utf8')]).toEqual([1, 'old\n'])
    expect(stderr.toString()).toMatch(/cannot be written/)
    expect(readdirSync(home).filter((name) => name.startsWith('.muster-new'))).toEqual([])
  })

  it('is removed with its backup copy', async () => {
    writeFileSync(join(home, 'file'), 'old\n')
    await write('file', 'new\n')
    expect(apply(removeFile({ path: '~/file', was: await stateOf('file') })).status).toBe(0)
    expect(readdirSync(home)).toEqual(['bin'])
  })
})

describe('packages', () => {
  const choicesOf = (all: readonly string[]) => all.map((name) => ({ name }))
  const names = {
    apt: ['nfs-common', 'not-there'],
    dnf: ['nfs-utils'],
    zypper: ['nfs-client'],
    pacman: ['nfs-utils'],
    apk: [],
  }

  it('are queried with the installed package manager', async () => {
    stub('apt-get', 'exit 1')
    stub(
      'dpkg-query',
      'echo "installed nfs-common 1:2.6"; echo "config-files not-there 1"; echo "no packages found" >&2; exit 1',
    )
    expect(await ask(packagesFact(names, 'nfs'))).toEqual({
      manager: 'apt',
      installed: new Map([['nfs-common', '1:2.6']]),
      own: [],
    })
  })

  it('wait for another user of the package manager, and say so', () => {
    stub('sleep', 'exit 0')
    stub('rpm', `[ ! -e ${home}/done ] || echo installed nfs-utils 2.6-1`)
    stub(
      'dnf',
      `if [ -e ${home}/free ]; then : > ${home}/done; echo done "$@"; else touch ${home}/free; echo "Failed to obtain the transaction lock (logged in as: root)"; exit 1; fi`,
    )
    const script = installPackages('dnf', [{ name: 'nfs-utils' }], 'nfs').script.replaceAll(
      '/var/lib/muster',
      `${home}/lib`,
    )
    const { status, stdout } = runScript(script)
    expect([status, stdout.toString()]).toEqual([
      0,
      'waiting: another process uses the package manager: Failed to obtain the transaction lock (logged in as: root)\ndone -y --setopt=exit_on_lock=True install nfs-utils\n',
    ])
    expect(readFileSync(join(home, 'lib/packages-nfs'), 'utf8')).toBe('nfs-utils\n')
  })

  /** What each wrote, and its exit code, while another run had its lock: apt 2.6, dnf 4.14, zypper 1.14, pacman 6.0. */
  it.each([
    [
      'apt',
      'apt-get',
      100,
      'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)\nN: Be aware that removing the lock file is not a solution and may break your system.\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n',
    ],
    [
      'dnf',
      'dnf',
      200,
      'Running transaction check\nRPMDB already locked by 13\n  The application with PID 13 is: sleep\n    Memory : 1.4 M RSS (2.4 MB VSZ)\n',
    ],
    ['dnf', 'dnf', 200, 'metadata already locked by 13\n  The application with PID 13 is: sleep\n'],
    [
      'zypper',
      'zypper',
      7,
      'System management is locked by the application with pid 66 (/usr/local/bin/packagekitd).\nClose this application before trying again.\n',
    ],
    [
      'pacman',
      'pacman',
      1,
      "error: failed to init transaction (unable to lock database)\nerror: could not lock database: File exists\n  if you're sure a package manager is not already\n  running, you can remove /var/lib/pacman/db.lck\n",
    ],
  ] as const)('give up %s once that stays in use, with its words (%s, exit %i)', (manager, program, code, words) => {
    stub('sleep', 'exit 0')
    stub('dpkg', '[ "$1" != --audit ] || exit 0; exit 1')
    writeFileSync(join(home, 'words'), words)
    stub(
      program,
      `case "$*" in *' -s '* | -Q*) exit 0;; esac\necho "$*" >> ${home}/asked; cat ${home}/words; exit ${code}`,
    )
    const { status, stdout, stderr } = runScript(
      installPackages(manager, [{ name: 'nfs' }], 'nfs').script.replaceAll('/var/lib/muster', `${home}/lib`),
    )
    const [first = '', second = ''] = stderr.toString().split('\n')
    expect([status, stdout.toString()]).toEqual([1, `waiting: another process uses the package manager: ${second}\n`])
    expect(first).toBe('another process still uses the package manager after 120 s')
    expect(words).toContain(second)
    // The same command every time: nothing else is tried while somebody is at work.
    expect(new Set(readFileSync(join(home, 'asked'), 'utf8').trim().split('\n')).size).toBe(1)
  })

  it('stay the same when they are installed or removed twice', async () => {
    const name = fc.constantFrom('nfs-common', 'rpcbind', 'keyutils')
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(name, { minLength: 1 }), fc.uniqueArray(name), async (wanted, there) => {
        rmSync(join(home, 'lib'), { recursive: true, force: true })
        mkdirSync(join(home, 'db'), { recursive: true })
        for (const each of readdirSync(join(home, 'db'))) rmSync(join(home, 'db', each))
        for (const each of there) writeFileSync(join(home, 'db', each), '')
        const missing = wanted.filter((each) => !there.includes(each))
        stub('dpkg', '[ "$1" != --audit ] || exit 0; exit 1')
        stub('dpkg-query', `shift 3; for name; do [ ! -e ${home}/db/$name ] || echo "installed $name 1"; done`)
        stub(
          'apt-get',
          `for name; do case $name in install | purge | -s) verb=$verb$name;; -* | *=*) ;; *) names="$names $name";; esac; done
case $verb in
  -sinstall) for name in $names; do [ -e ${home}/db/$name ] || echo "Inst $name (1 Debian)"; done;;
  install) for name in $names; do : > ${home}/db/$name; done;;
  purge) for name in $names; do rm ${home}/db/$name || exit 100; done;;
esac`,
        )
        const moved = (script: string) => script.replaceAll('/var/lib/muster', `${home}/lib`)
        const state = () => [readdirSync(join(home, 'db')).sort(), readdirSync(home).includes('lib')]
        if (missing.length > 0) {
          for (const _ of ['once', 'twice']) {
            expect(runScript(moved(installPackages('apt', choicesOf(missing), 'nfs').script)).status).toBe(0)
            expect(state()).toEqual([[...new Set([...there, ...wanted])].sort(), true])
            expect(readFileSync(join(home, 'lib/packages-nfs'), 'utf8').trim().split('\n')).toEqual(missing.toSorted())
          }
        }
        for (const _ of ['once', 'twice']) {
          expect(runScript(moved(removePackages('apt', missing, 'nfs').script)).status).toBe(0)
          expect(state()).toEqual([there.toSorted(), false])
        }
      }),
      { numRuns: 10 },
    )
  })

  /** apt-get, which says what stands in a file for each word that it is asked, and dpkg, which has nothing to fix. */
  const apt = (cases: string) => {
    stub('dpkg', '[ "$1" != --audit ] || exit 0; exit 1')
    stub('apt-get', `case "$*" in *' -s '*) exit 0;; esac\necho "$*" >> ${home}/asked\ncase "$*" in\n${cases}\nesac`)
    return installPackages('apt', [{ name: 'nfs-common' }], 'nfs').script.replaceAll('/var/lib/muster', `${home}/lib`)
  }
  const asked = () =>
    readFileSync(join(home, 'asked'), 'utf8')
      .replaceAll(/-q -y -o DPkg::Lock::Timeout=0 |-o Dpkg::Options::=\S+ /g, '')
      .split('\n')
      .slice(0, -1)
  const INSTALL = '--no-remove --no-install-recommends install nfs-common'

  it('wait for another apt, which does not count as outdated lists', () => {
    stub('sleep', `touch ${home}/free`)
    const locked = 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)'
    const { status, stdout } = runScript(apt(`*install*) [ -e ${home}/free ] || { echo "${locked}" >&2; exit 100; };;`))
    expect([status, stdout.toString()]).toEqual([0, `waiting: another process uses the package manager: ${locked}\n\n`])
    expect(asked()).toEqual([INSTALL, INSTALL])
  })

  it("are searched in fresh lists, and a missing one is reported in apt's words", () => {
    const { status, stdout, stderr } = runScript(
      apt('*install*) echo "E: Unable to locate package nfs-common" >&2; exit 100;;'),
    )
    expect([status, stdout.toString()]).toEqual([100, expect.stringContaining('trying again with fresh lists\n')])
    expect(stderr.toString()).toMatch(/E: Unable to locate package nfs-common\n$/)
    expect(asked()).toEqual([INSTALL, 'update', INSTALL])
  })

  it('report which part of apt failed without a network', () => {
    const { status, stderr } = runScript(
      apt(`*install*) echo "E: Unable to locate package nfs-common" >&2; exit 100;;
*update*) echo "E: Failed to fetch http://deb.example.org" >&2; exit 100;;`),
    )
    expect(status).toBe(100)
    expect(stderr.toString()).toMatch(/E: Failed to fetch/)
    expect(asked()).toEqual([INSTALL, 'update'])
  })

  it('that were installed for an area are removed if they are still there', () => {
    stub(
      'rpm',
      `case "$*" in *--test*) ;; *gone) echo "package gone is not installed"; exit 1;; *) [ -e ${home}/removed ] || echo "installed nfs-utils 2.6-1";; esac`,
    )
    stub('dnf', `: > ${home}/removed; echo "$@"`)
    mkdirSync(join(home, 'lib'))
    writeFileSync(join(home, 'lib/packages-nfs'), 'gone\nnfs-utils\n')
    const script = removePackages('dnf', ['gone', 'nfs-utils'], 'nfs').script.replaceAll(
      '/var/lib/muster',
      `${home}/lib`,
    )
    const { status, stdout } = runScript(script)
    expect([status, stdout.toString()]).toEqual([0, '-y --setopt=exit_on_lock=True remove nfs-utils\n'])
    expect(readdirSync(home).includes('lib')).toBe(false)
  })

  it('that others need are not removed with dnf', () => {
    stub(
      'rpm',
      'case "$*" in *--test*) echo "error: Failed dependencies:"; echo "\tnfs-utils is needed by (installed) other-1-1.noarch"; exit 1;; *) echo "installed nfs-utils 2.6-1";; esac',
    )
    stub('dnf', `touch ${home}/called`)
    const { status, stderr } = runScript(removePackages('dnf', ['nfs-utils'], 'nfs').script)
    expect([status, stderr.toString()]).toEqual([
      1,
      'refused: packages that Muster did not install need these: other-1-1.noarch \n',
    ])
    expect(readdirSync(home)).not.toContain('called')
  })

  it('that dnf would change besides are named, and nothing is installed', () => {
    stub('rpm', `[ ! -e ${home}/asked ] || echo installed openmpi 4.1.1-7`)
    stub(
      'dnf',
      `case "$*" in *--assumeno*) cat ${home}/table; exit 1;; esac
echo "$*" >> ${home}/asked`,
    )
    const table = (section: string) => `Dependencies resolved.
================================================================
 Package     Architecture  Version   Repository            Size
================================================================
Installing:
 openmpi     x86_64        4.1.1-7   appstream            2.9 M
${section}:
 glibc       x86_64        2.34-100  baseos               2.0 M

Transaction Summary
================================================================
`
    const { script } = installPackages('dnf', [{ name: 'openmpi', version: '4.1.1-7' }], 'packages', { isStrict: true })
    const moved = script.replaceAll('/var/lib/muster', `${home}/lib`)
    writeFileSync(join(home, 'table'), table('Upgrading'))
    const { status, stderr } = runScript(moved)
    expect([status, stderr.toString()]).toEqual([
      1,
      'refused: this would change or remove packages that are there: glibc\n',
    ])
    expect(readdirSync(home).toSorted()).toEqual(['bin', 'table'])
    writeFileSync(join(home, 'table'), table('Installing dependencies'))
    expect(runScript(moved).status).toBe(0)
    expect(readFileSync(join(home, 'asked'), 'utf8')).toBe('-y --setopt=exit_on_lock=True install openmpi-4.1.1-7\n')
    expect(readFileSync(join(home, 'lib/packages-packages'), 'utf8')).toBe('openmpi\n')
  })

  it('that were there and are only upgraded are not taken for installed ones', () => {
    stub('dpkg', 'exit 0')
    stub('dpkg-query', `shift 3; for name; do [ ! -e ${home}/done ] || echo "installed $name 1"; done`)
    stub(
      'apt-get',
      `case "$*" in *' -s '*) echo 'Inst libc6 [2.36-8] (2.36-9 Debian [amd64])'; echo 'Inst rpcbind (1.2 Debian [amd64])'; echo 'Inst nfs-common (2.6 Debian [amd64])';; *) : > ${home}/done;; esac`,
    )
    const { script } = installPackages('apt', [{ name: 'nfs-common' }], 'nfs')
    expect(runScript(script.replaceAll('/var/lib/muster', `${home}/lib`)).status).toBe(0)
    expect(readFileSync(join(home, 'lib/packages-nfs'), 'utf8')).toBe('nfs-common\nrpcbind\n')
  })

  it('that could not be installed are not recorded', () => {
    stub('dpkg', 'exit 0')
    stub('dpkg-query', 'case $* in *rpcbind*) echo "installed rpcbind 1";; *) exit 1;; esac')
    stub(
      'apt-get',
      `case "$*" in *' -s '*) echo 'Inst keyutils (1 Debian)'; echo 'Inst nfs-common (2.6 Debian)';; *) echo 'E: disk full' >&2; exit 100;; esac`,
    )
    mkdirSync(join(home, 'lib'))
    writeFileSync(join(home, 'lib/packages-nfs'), 'rpcbind\n')
    const { script } = installPackages('apt', [{ name: 'nfs-common' }], 'nfs')
    expect(runScript(script.replaceAll('/var/lib/muster', `${home}/lib`)).status).toBe(100)
    expect(readFileSync(join(home, 'lib/packages-nfs'), 'utf8')).toBe('rpcbind\n')
    expect(readdirSync(join(home, 'lib'))).toEqual(['packages-nfs'])
  })

  describe('of a host whose apt', () => {
    /** apt that adds rpcbind and nfs-common; `install`: what it does in place of that, where `db` is what is installed. */
    const script = (install: string) => {
      mkdirSync(join(home, 'db'))
      stub('dpkg', '[ "$1" != --audit ] || exit 0; exit 1')
      stub('dpkg-query', `shift 3; for name; do [ ! -e ${home}/db/$name ] || echo "installed $name 1"; done`)
      stub(
        'apt-get',
        `cd ${home}/db || exit 1
case "$*" in
  *' -s '*) for name in rpcbind nfs-common; do [ -e $name ] || echo "Inst $name (1 Debian)"; done;;
  *install*) ${install};;
esac`,
      )
      return moved(installPackages('apt', choicesOf(['nfs-common']), 'nfs', { isStrict: true }).script)
    }
    const moved = (text: string) => text.replaceAll('/var/lib/muster', `${home}/lib`)
    const packagesHere = async () => {
      const fact = packagesFact(names, 'nfs')
      return await ask({ ...fact, script: moved(fact.script) })
    }
    const recorded = () => (readdirSync(home).includes('lib') ? readdirSync(join(home, 'lib')) : [])
    /** Stops the script, with all that it started, once apt is at work. */
    const stopped = async (signal: 'SIGTERM' | 'SIGKILL', shell: readonly string[], text = script(halfway)) => {
      const [program = '', ...words] = shell
      const child = spawn(findProgram(program) ?? program, [...words, '-c', text], {
        env: environment(),
        detached: true,
        stdio: 'ignore',
      })
      const ended = once(child, 'exit')
      await waitUntil(() => readdirSync(home).includes('working'), 'apt at work')
      process.kill(-(child.pid ?? Number.NaN), signal)
      await ended
    }

    const halfway = ': > rpcbind; : > ../working; exec sleep 98765'

    it.each(
      SHELLS.filter(([name = '']) => findProgram(name) !== undefined).map((words) => [words.join(' '), words]),
    )('was stopped are those that it had installed, and not one that a person installs later (%s)', async (_, shell) => {
      await stopped('SIGTERM', shell)
      expect(await packagesHere()).toMatchObject({ own: ['rpcbind'], unclear: [] })
      writeFileSync(join(home, 'db/nfs-common'), '')
      expect(await packagesHere()).toMatchObject({ own: ['rpcbind'], unclear: ['nfs-common'] })
    })

    it('was killed with Muster are left to the user, also after the next installation, until down', async () => {
      await stopped('SIGKILL', ['sh'])
      expect(await packagesHere()).toMatchObject({ own: [], unclear: ['rpcbind'] })
      stub('apt-get', `case "$*" in *' -s '*) ;; *) : > ${home}/db/nfs-common;; esac`)
      const next = installPackages('apt', choicesOf(['nfs-common']), 'nfs', { isStrict: true })
      expect(runScript(moved(next.script)).status).toBe(0)
      expect(await packagesHere()).toMatchObject({ own: ['nfs-common'], unclear: ['rpcbind'] })
      stub('apt-get', `case "$*" in *' -s '*) ;; *purge*) rm ${home}/db/nfs-common;; esac`)
      expect(runScript(moved(removePackages('apt', ['nfs-common'], 'nfs').script)).status).toBe(0)
      expect([readdirSync(join(home, 'db')), recorded()]).toEqual([['rpcbind'], []])
    })

    describe('is to remove them', () => {
      const removal = (purge: string) => {
        expect(runScript(script(': > rpcbind; : > nfs-common')).status).toBe(0)
        stub('apt-get', `cd ${home}/db; case "$*" in *' -s '*) ;; *purge*) ${purge};; esac`)
        return moved(removePackages('apt', ['nfs-common', 'rpcbind'], 'nfs').script)
      }

      it.each([
        ['and reports success without doing it', ':', 'nfs-common rpcbind'],
        ['and removes one of them', 'rm nfs-common', 'rpcbind'],
      ])('%s stay recorded, and it fails', async (_, purge, left) => {
        const { status, stderr } = runScript(removal(purge))
        const words = `apt-get reported success, but these are still installed: ${left} \n`
        expect([status, stderr.toString()]).toEqual([1, words])
        expect((await packagesHere())?.own.join(' ')).toBe(left)
      })

      it.each([
        ['and fails after one of them', async (text: string) => runScript(text), 'exit 100'],
        [
          'and is stopped after one',
          (text: string) => stopped('SIGTERM', ['sh'], text),
          'touch ../working; exec sleep 98765',
        ],
      ])('%s stay recorded, without the one that is gone', async (_, run, end) => {
        await run(removal(`rm rpcbind; ${end}`))
        expect((await packagesHere())?.own).toEqual(['nfs-common'])
      })
    })

    it('reports success without installing anything are not recorded', async () => {
      expect(runScript(script('exit 0')).status).toBe(0)
      expect(recorded()).toEqual([])
    })

    it('waited while another apt installed them are not recorded', async () => {
      const text = script(
        `[ -e ${home}/free ] || { echo 'E: Could not get lock /var/lib/dpkg/lock-frontend' >&2; exit 100; }; : > rpcbind`,
      )
      stub('sleep', `: > ${home}/free; : > ${home}/db/nfs-common`)
      expect(runScript(text).status).toBe(0)
      expect(await packagesHere()).toMatchObject({ own: ['rpcbind'] })
      expect(recorded()).toEqual(['packages-nfs', 'packages-nfs.asked'])
    })
  })
})

describe('a lock', () => {
  it('that is taken is not said to be held by whoever looks for its holder at the same time', async () => {
    stub('flock', 'exit 1')
    stub('grep', `printf '%s\\n' "$@" >> ${home}/searched; exec ${findProgram('grep')} "$@"`)
    using locks = new HostLocks(here, { owner: 'a test', signal: new AbortController().signal })
    expect(await locks.tryOnce('m1')).toMatchObject({ kind: 'busy' })
    const words = readFileSync(join(home, 'searched'), 'utf8').split('\n')
    expect(words).toContain('-l')
    // A holder has this word among its own, and the owner behind it.
    expect(words).not.toContain('muster-lock-holder')
  })
})

describe('a service', () => {
  it('runs without a service manager', async () => {
    const byHand = { isRunning: 'true', start: 'true', stop: 'true' }
    const state = await ask(serviceFact({ systemd: 'no-such', openrc: 'no-such', sysv: 'no-such', byHand }))
    // A machine that runs systemd has its own answer.
    expect([
      { manager: 'by-hand', isRunning: true, isEnabled: undefined },
      { manager: 'systemd', isRunning: true, isEnabled: false },
    ]).toContainEqual(state)
  })

  describe('of NFS', () => {
    const moved = (script: string) => script.replaceAll(/\/proc\/fs|\/proc\/net\/rpc|\/run\/systemd\/system/g, home)
    const threads = (count: number, mode?: number) => {
      mkdirSync(join(home, 'nfsd'))
      writeFileSync(join(home, 'nfsd/threads'), `${count}\n`, { mode })
    }

    it.each([
      ['runs if it was started without systemd', 8, 3, true],
      ['runs if systemd says so', 0, 0, true],
      ['does not run without threads that systemd does not know', 0, 3, false],
    ])('%s', async (_, count, status, isRunning) => {
      threads(count)
      stub('systemctl', `[ "$1" != is-active ] || exit ${status}`)
      const fact = serviceFact(SERVICE)
      expect(await ask({ ...fact, script: moved(fact.script) })).toEqual({
        manager: 'systemd',
        isRunning,
        isEnabled: true,
      })
    })

    it.each([
      ['rc 0 0 0\nth 8 0 0.000\n', 0],
      ['rc 0 0 0\nth 0 0 0.000\n', 1],
    ])('is known to a login that is not root by %j', (text, status) => {
      threads(8, 0)
      chmodSync(home, 0o755)
      mkdirSync(join(home, 'net'))
      const script = (SERVICE.byHand?.isRunning ?? '')
        .replaceAll('/proc/fs', home)
        .replaceAll('/proc/net/rpc', `${home}/net`)
      writeFileSync(join(home, 'net/nfsd'), text)
      const login = process.getuid?.() === 0 ? { uid: 65534 } : {}
      expect(spawnSync('sh', ['-c', script], { ...login, cwd: '/' }).status).toBe(status)
    })
  })
})
