/** The command line: the table of verbs, the options that all of them share, and the exit code. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { messageOf } from '../base/errors.ts'
import { packageRoot } from '../base/package-root.ts'
import { printable } from '../base/printable.ts'
import { type CliContext, EXIT, type Outcome } from './context.ts'
import { describeError, exitCodeOf } from './errors.ts'

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It has to be a whole number from 1 on.')
  return value
}

function seconds(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It has to be a number of seconds above 0.')
  return value
}

/** 0 is one, too: whatever hosts.yaml says. */
function secondsOrNone(text: string): number {
  return Number(text) === 0 && text.trim() !== '' ? 0 : seconds(text)
}

function version(): string {
  const { version: text } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }
  return text
}

type LoadVerb = (program: Command, context: CliContext, outcome: Outcome) => Promise<void>

/** Each loads its own code: `muster run` has ended before the console's would be there. */
const VERBS: Readonly<Record<string, LoadVerb>> = {
  run: async (...parts) => (await import('./run-command.ts')).registerRun(...parts),
  copy: async (...parts) => (await import('./copy.ts')).registerCopy(...parts),
  fetch: async (...parts) => (await import('./fetch.ts')).registerFetch(...parts),
  demo: async (...parts) => (await import('./demo.ts')).registerDemo(...parts),
  hosts: async (...parts) => {
    const [{ registerHosts }, { checkHosts }] = await Promise.all([import('./hosts.ts'), import('./check.ts')])
    registerHosts(...parts, checkHosts)
  },
  doctor: async (...parts) => (await import('./doctor.ts')).registerDoctor(...parts),
  up: async (...parts) => (await import('./up.ts')).registerUp(...parts),
  down: async (...parts) => (await import('./down.ts')).registerDown(...parts),
  status: async (...parts) => (await import('./status.ts')).registerStatus(...parts),
  env: async (...parts) => (await import('./env.ts')).registerEnv(...parts),
  net: async (...parts) => (await import('./net.ts')).registerNet(...parts),
  nfs: async (...parts) => (await import('./nfs.ts')).registerNfs(...parts),
  ray: async (...parts) => (await import('./ray.ts')).registerRay(...parts),
  'keep-connections': async (...parts) => (await import('./persist.ts')).registerKeeper(...parts),
  job: async (...parts) => (await import('./job.ts')).registerJob(...parts),
  pack: async (...parts) => (await import('./pack.ts')).registerPack(...parts),
  simulate: async (...parts) => (await import('./simulate.ts')).registerSimulate(...parts),
  import: async (...parts) => (await import('./import.ts')).registerImport(...parts),
}

const loadConsole: LoadVerb = async (...parts) => (await import('./console.ts')).registerConsole(...parts)

/** The first word that is no option, if it is a verb; whatever else there is (a target, --help) is about all of them. */
function verbsFor(args: readonly string[]): readonly LoadVerb[] {
  if (args[0] === '--version' || args[0] === '-V') return []
  const first = args.find((arg, index) => !arg.startsWith('-') && !TAKES_A_VALUE.has(args[index - 1] ?? ''))
  const verb = first === undefined || !Object.hasOwn(VERBS, first) ? undefined : VERBS[first]
  return verb === undefined ? [loadConsole, ...Object.values(VERBS)] : [verb]
}

/** Options before the verb whose value is a word of its own. */
const TAKES_A_VALUE: ReadonlySet<string> = new Set([
  '--hosts',
  '--exclude',
  '--fan-out',
  '--connect-timeout',
  '--persist',
  '--color',
])

/** Runs one verb. Never throws; what went wrong stands on stderr. */
export async function runProgram(args: readonly string[], context: CliContext): Promise<number> {
  const { stdout, stderr } = context
  let trouble: NodeJS.ErrnoException | undefined
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    trouble ??= error
  })
  stderr.on('error', () => {})
  const code = await runVerb(args, context)
  // Streams tell of what was just written a moment later.
  await new Promise(setImmediate)
  // A reader that has seen enough, as `head` does, is no trouble.
  if (trouble === undefined || trouble.code === 'EPIPE') return code
  stderr.write(`muster: stdout cannot be written: ${printable(messageOf(trouble))}\n`)
  return code === EXIT.ok ? EXIT.failed : code
}

async function runVerb(args: readonly string[], context: CliContext): Promise<number> {
  const outcome: Outcome = { exitCode: EXIT.ok }
  const program = new Command('muster')
  program
    .description('One keyboard for every machine of a small cluster.')
    .version(version(), '-V, --version')
    .option('--hosts <file>', 'inventory (else ./hosts.yaml, else the one in the configuration directory)')
    .option('--json', 'one JSON object a line on stdout, nothing else there')
    .option('--exclude <target>', 'hosts to leave out')
    .option('--fan-out <n>', 'hosts at once', wholeNumber, 64)
    .option('--connect-timeout <s>', 'seconds for each step of connecting', seconds)
    .option('--persist <s>', 'seconds that connections stay warm for the next command (0: not at all)', secondsOrNone)
    .addOption(new Option('--color <when>', 'colours').choices(['auto', 'always', 'never']).default('auto'))
    .option('-y, --yes', 'do not ask before something is overwritten')
    .option('-v, --verbose', 'say more on stderr')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text.split('\n').map(printable).join('\n')),
    })
    .showHelpAfterError('(muster --help shows how)')
    .enablePositionalOptions(false)
  for (const load of verbsFor(args)) await load(program, context, outcome)
  try {
    await program.parseAsync(args, { from: 'user' })
    return outcome.exitCode
  } catch (error) {
    // Commander has written its own message; asking for help or the version is no error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    // What a signal cut short fails in its own way; the user knows why.
    if (context.signal.aborted) {
      context.stderr.write('muster: stopped\n')
      return EXIT.interrupted
    }
    context.stderr.write(describeError(error))
    return exitCodeOf(error)
  }
}
