/** What programs really read without echo, key by key, is among the readings of the keys. */
import { expect, it } from 'vitest'
import { spawnLocalPty } from '../../../../src/terminal/local-pty.ts'
import { isUnknownEdit, readingsOf } from '../../../../src/ui/report/entered-text.ts'
import { randomRuns } from '../../../support/random-runs.ts'
import { requirement } from '../../../support/requirements.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

type Lines = readonly (readonly string[])[]

/** What a program has read of each line, of whose keys each is sent alone. It asks with `?`, and says in hexadecimal what it has read. */
async function readBy([file = '', ...args]: readonly string[], lines: Lines): Promise<readonly string[]> {
  let said = ''
  let wake = (): void => {}
  const environment = { PATH: process.env.PATH ?? '', INPUTRC: '/dev/null', LC_ALL: 'C.UTF-8', HOME: '/nonexistent' }
  const pty = spawnLocalPty(
    { file, args, columns: 200, rows: 24, term: 'xterm', environment },
    {
      onData(bytes) {
        said += Buffer.from(bytes).toString()
        wake()
      },
      onExit: () => wake(),
    },
  )
  const until = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const match = pattern.exec(said)
      if (match !== null) {
        said = said.slice(match.index + match[0].length)
        return match[1] ?? ''
      }
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  try {
    const answers: string[] = []
    for (const keys of lines) {
      await until(/\?/)
      for (const key of [...keys, '\r']) pty.write(Buffer.from(key))
      answers.push(Buffer.from(await until(/<([0-9a-f]*)>/), 'hex').toString())
    }
    return answers
  } finally {
    pty.close()
  }
}

const SHOW = `printf '<%s>' "$(printf %s "$p" | od -An -v -tx1 | tr -d ' \\n')"`
const CURSOR = ['\x1b[D', '\x1b[D', '\x1b[C', '\x01', '\x02', '\x05', '\x06', '\x1b[H', '\x1b[F', '\x1b[3~']
const ERASES = ['\x7f', '\x7f', '\x17', '\x15']
const WORDS = ['\x1bb', '\x1bf', '\x1bd', '\x1b\x7f', '\x1b[1;5D', '\x1b[1;5C', '\x0b', '\x14']

it.each<[string, string, readonly string[], readonly string[]]>([
  ['the kernel’s terminal', 'sh', ['-c', `stty -echo; while printf '?'; IFS= read -r p; do ${SHOW}; done`], ERASES],
  [
    'readline',
    'bash',
    ['--norc', '-c', `while IFS= read -r -e -s -p '?' p; do ${SHOW}; done`],
    [...CURSOR, ...ERASES, ...WORDS],
  ],
  [
    'fish',
    'fish',
    [
      '-c',
      `while read -s -P '?' p; printf '<%s>' (printf %s $p | od -An -v -tx1 | string replace -ra '\\s' '' | string join ''); end`,
    ],
    [...CURSOR.slice(0, 5), '\x7f', '\x17'],
  ],
])('is among them: %s', { timeout: 60_000 }, async (name, program, args, keys) => {
  if (!requirement(program)) return
  const random = seededRandom()
  const choose = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const characters = [...'aB7_.-/=:xY', ...(name === 'fish' ? [] : [' '])]
  const line = (): string[] => {
    const typed = Array.from({ length: 4 + Math.floor(random() * 12) }, () => choose(characters))
    const edited = Array.from({ length: 12 }, () => (random() < 0.5 ? choose(keys) : choose(characters)))
    return ['a', ...typed, ...edited, 'z']
  }
  const lines = Array.from({ length: randomRuns(150) }, line)
  expect(lines.flat().filter(isUnknownEdit)).toEqual([])
  const answers = await readBy([program, ...args], lines)
  const missed = lines.flatMap((each, index) => {
    const readings = readingsOf(each)
    const answer = (answers[index] ?? '').trim()
    return readings.includes(answer) ? [] : [{ keys: each.join(' '), answer, readings }]
  })
  expect(missed).toEqual([])
})
