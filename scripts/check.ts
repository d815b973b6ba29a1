/**
 * `npm run check`, the one gate: format and lint, types, import boundaries, dead code, generated files, unit tests. Two gates
 * run at a time; each prints one line, and those that fail print what they said. `--without-tests` leaves the last out.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const AT_ONCE = 2

type Gate = { readonly name: string; readonly argv: readonly string[] }

const script = (name: string, ...args: string[]): string[] => ['--import', 'tsx', join('scripts', name), ...args]

/** The longest first, so that none of them is left alone at the end. */
const GATES: readonly Gate[] = [
  ...(process.argv.includes('--without-tests')
    ? []
    : [{ name: 'unit tests', argv: [program('vitest'), 'run', '--project', 'unit*'] }]),
  { name: 'types', argv: [program('tsc'), '--noEmit'] },
  { name: 'format and lint', argv: [program('biome'), 'check', '--error-on-warnings'] },
  { name: 'dead code', argv: [program('knip')] },
  { name: 'code for tests alone', argv: [program('knip'), '--production'] },
  { name: 'import boundaries', argv: script('check-boundaries.ts') },
  { name: 'names', argv: script('check-names.ts') },
  { name: 'generated files', argv: script('generate-docs.ts', '--check') },
]

const waiting = [...GATES]
const failed: string[] = []
const started = performance.now()

await Promise.all(Array.from({ length: AT_ONCE }, work))
const seconds = secondsSince(started)
process.stdout.write(
  failed.length === 0 ? `all gates passed in ${seconds} s\n` : `failed: ${failed.join(', ')} (${seconds} s)\n`,
)
process.exitCode = failed.length === 0 ? 0 : 1

async function work(): Promise<void> {
  for (let gate = waiting.shift(); gate !== undefined; gate = waiting.shift()) {
    const since = performance.now()
    const { code, output } = await run(gate.argv)
    process.stdout.write(`${code === 0 ? 'ok    ' : 'FAILED'} ${gate.name} (${secondsSince(since)} s)\n`)
    if (code === 0) continue
    failed.push(gate.name)
    process.stdout.write(`${output.trimEnd()}\n`)
  }
}

async function run(argv: readonly string[]): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, argv, {
    cwd: ROOT,
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined, MUSTER_FEWER_RUNS: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  const [code] = await once(child, 'close')
  return { code: code ?? 1, output }
}

/** A dependency's program as npm linked it: a script that this Node runs. */
function program(name: string): string {
  return join(ROOT, 'node_modules', '.bin', name)
}

function secondsSince(time: number): string {
  return ((performance.now() - time) / 1000).toFixed(1)
}
