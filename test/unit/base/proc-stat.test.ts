/** /proc/PID/stat of processes with names that look like something else. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { EACH_STAT, READ_STAT } from '../../../src/base/proc-stat.ts'

const directory = mkdtempSync(join(tmpdir(), 'muster-stat-'))
afterAll(() => rmSync(directory, { recursive: true }))

const NUMBERS = Array.from({ length: 46 }, (_, at) => at + 5).join(' ')
const NAMES = [
  'sh',
  'a b',
  ') R 1 1 1',
  '\n',
  'x\n1 (y) S 1 1',
  '\n\n\n\n',
  '7 (x)\n',
  'nl\n8 (x) S 1 1\n',
  '\xff\xfe) S 9',
]

describe('/proc/PID/stat', () => {
  const files = NAMES.map((name, at) => {
    const file = join(directory, String(at))
    writeFileSync(file, `${at + 100} (${name}) S ${at + 200} ${at + 300} ${at + 400} ${NUMBERS}\n`, 'latin1')
    return file
  })
  const wanted = NAMES.map((_, at) => `${at + 100} S ${at + 200} ${at + 300} ${at + 400} 50`)

  it('is read by sh, whatever the name is', () => {
    const script = `${READ_STAT}for f; do read_stat "$f" || echo none; p=\${s%% *}; set -- \${s##*) }; echo "$p $1 $2 $3 $4 \${50}"; done`
    const text = execFileSync('sh', ['-c', script, 'sh', ...files], { encoding: 'utf8' })
    expect(text.trim().split('\n')).toEqual(wanted)
    const none = execFileSync('sh', ['-c', `${READ_STAT}read_stat "$1" || echo "none$s"`, 'sh', join(directory, 'x')])
    expect(String(none)).toBe('none\n')
  })

  it('is read by awk, one file after another', () => {
    const script = `cat "$@" | LC_ALL=C awk '${EACH_STAT}\n{ print pid, stat[1], stat[2], stat[3], stat[4], stat[50] }'`
    const text = execFileSync('sh', ['-c', script, 'sh', ...files], { encoding: 'utf8' })
    expect(text.trim().split('\n')).toEqual(wanted)
  })
})
