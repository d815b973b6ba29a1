// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are expansions of the shell
/** Random lines of sh behind a launcher of hosts.yaml: it does what `sh -c LINE` does, or refuses the line. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { LaunchedGang, LauncherRow } from '../../../src/scheduler/launch/launcher.ts'
import { commandFor } from '../../../src/scheduler/launch/one-command.ts'
import { asProgram } from '../../../src/scheduler/launch/rank.ts'
import { rowLauncher } from '../../../src/scheduler/launch/rows.ts'
import { writeProgram } from '../../support/program.ts'
import { randomRuns } from '../../support/random-runs.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const RUNS = 400
const MOST_PARTS = 7
/** Programs and parts of lines; `show` prints its arguments and ends with their number. */
const BEGINNINGS = [
  './show',
  './show',
  './show',
  './show',
  'A=1 ./show',
  '! ./show',
  '{ ./show',
  'if ./show',
  '>f ./show',
  '(./show',
]
const PARTS = [
  ...[' a', ' "$SEED"', ' $SEED', " 'b; c'", ' "d | e"', ' $(echo x; echo y)', ' "$(echo "z  w")"', ' `echo v u`'],
  ...[
    ' $((1 + (2 << 1)))',
    ' "${SEED:-a; b}"',
    ' ${NONE:-"q r"}',
    ' *',
    ' [i]n',
    ' \\;',
    ' \\#',
    ' g#h',
    ' i=j',
    ' \\\n',
  ],
  ...[' >f', ' 2>&1', ' <in', ' >>f', ' >|f', ' 3>&-', ' "k\nl"', ' m\\ ', ' ""', " ''"],
  ...[
    ';',
    ' ;',
    ' ; ./show n',
    ' && ./show o',
    ' || ./show p',
    ' | cat',
    ' &',
    '\n',
    '\n./show q',
    ' # r',
    ' "',
    " '",
    ' `',
  ],
  ...[' $(', ' )', ' }', ' \\', ' >', ' <<E\nt\nE\n', '; }', ' fi', '; exit 3', " $'s'", ' "$(echo \')\')"', ' # "\n'],
]

const row: LauncherRow = { command: ['env'], per: 'host', ports: 0, environment: {}, done: 'all' }
const between: LauncherRow = { ...row, command: ['env', '{command}', 'the end'] }
const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
const said = { answered: '1' }

function startOf(own: LauncherRow, command: string): string {
  const place = { role: 'host', index: 0, host: 'm1', address: 'm1', devices: [], ranks: 1, hasBegun: false }
  const spec = { kind: 'env', options: {}, ports: [46_000, 46_999] as const, row: own }
  const gang: LaunchedGang = { id: '1.1', command, environment: {}, spec, bundles: [{ ...place, request, said }] }
  const step = rowLauncher('env', own).next(gang, 0)
  if (step.kind !== 'start') throw new Error(JSON.stringify(step))
  return step.command
}

it('a line behind a launcher does what sh does with it, or is refused', { timeout: 120_000 }, () => {
  const random = seededRandom()
  const choose = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const directory = mkdtempSync(join(tmpdir(), 'muster-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  /** What it prints, how it ends, and the files that it leaves. */
  const run = (line: string) => {
    const place = join(directory, 'run')
    writeProgram(join(place, 'show'), 'true >began\ncat\nprintf "<%s>" "$@"\nexit $#')
    writeFileSync(join(place, 'in'), 'read')
    const env = { PATH: '/usr/bin:/bin', SEED: '7 8' }
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: place, env, encoding: 'utf8' })
    const files = readdirSync(place).map((name) => [name, readFileSync(join(place, name), 'utf8')])
    rmSync(place, { recursive: true })
    return { status, stdout, stderr, files }
  }
  let taken = 0
  for (let index = 0; index < randomRuns(RUNS); index++) {
    const parts = Array.from({ length: Math.floor(random() * MOST_PARTS) }, () => choose(PARTS))
    const line = [choose(BEGINNINGS), ...parts].join('')
    const { text } = commandFor(rowLauncher('env', row), line) as { readonly text?: string }
    // Programs that run at the same time may do it in any order.
    if (text === undefined && parts.some((part) => part === ' | cat' || part === ' &')) continue
    const alone = run(line)
    // Each rank of mpirun, torchrun and others, also where a person types it.
    const asRank = run(`exec env ${asProgram(line)}`)
    expect([line, asRank.status, asRank.stdout, asRank.files]).toEqual([line, alone.status, alone.stdout, alone.files])
    if (text === undefined) continue
    taken += 1
    expect([line, run(startOf(row, text))]).toEqual([line, alone])
    const withEnd = run(`${text} 'the end'`)
    expect([line, run(startOf(between, text))]).toEqual([line, withEnd])
    // Not where a file cannot be opened.
    if (alone.files.some(([name]) => name === 'began'))
      expect([line, withEnd.status]).toEqual([line, (alone.status ?? 0) + 1])
  }
  expect(taken).toBeGreaterThan(randomRuns(RUNS) / 10)
})
