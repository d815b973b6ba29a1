/** The command line: the table of verbs, the options that all of them share, and the exit code. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { messageOf } from '../base/errors.ts'
import { packageRoot } from '../base/package-root.ts'
import { printable } from '../base/printable.ts'
import { nearestWord } from '../inventory/nearest-word.ts'
import { type CliContext, EXIT, type GlobalOptions, type Outcome } from './command-line/context.ts'
import { describeError, exitCodeOf } from './command-line/errors.ts'
import {
  addOptionsEverywhere,
  nameOfVerb,
  refuseEmptyPromises,
  TAKES_A_VALUE,
  timedOutCode,
} from './command-line/options.ts'
import { TimeLimit } from './command-line/time-limit.ts'

function version(): string {
  const { version: text } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }
  return text
}

type LoadVerb = (program: Command, context: CliContext, outcome: Outcome) => Promise<void>

/** Each loads its own code: `muster run` has ended before the console's would be there. */
const VERBS: Readonly<Record<string, LoadVerb>> = {
  run: async (...parts) => (await import('./run/run.ts')).registerRun(...parts),
  copy: async (...parts) => (await import('./copy/copy.ts')).registerCopy(...parts),
  fetch: async (...parts) => (await import('./copy/fetch.ts')).registerFetch(...parts),
  demo: async (...parts) => (await import('./demo/demo.ts')).registerDemo(...parts),
  hosts: async (...parts) => {
    const [{ registerHosts }, { checkHosts }] = await Promise.all([
      import('./hosts/hosts.ts'),
      import('./hosts/check.ts'),
    ])
    registerHosts(...parts, checkHosts)
  },
  doctor: async (...parts) => (await import('./doctor/doctor.ts')).registerDoctor(...parts),
  up: async (...parts) => (await import('./up.ts')).registerUp(...parts),
  down: async (...parts) => (await import('./down.ts')).registerDown(...parts),
  status: async (...parts) => (await import('./status.ts')).registerStatus(...parts),
  left: async (...parts) => (await import('./left.ts')).registerLeft(...parts),
  env: async (...parts) => (await import('./env.ts')).registerEnv(...parts),
  net: async (...parts) => (await import('./net.ts')).registerNet(...parts),
  nfs: async (...parts) => (await import('./nfs.ts')).registerNfs(...parts),
  ray: async (...parts) => (await import('./ray.ts')).registerRay(...parts),
  'keep-connections': async (...parts) => (await import('./persist.ts')).registerKeeper(...parts),
  job: async (...parts) => (await import('./job.ts')).registerJob(...parts),
  pack: async (...parts) => (await import('./pack/pack.ts')).registerPack(...parts),
  simulate: async (...parts) => (await import('./simulate.ts')).registerSimulate(...parts),
  import: async (...parts) => (await import('./import.ts')).registerImport(...parts),
}

const loadConsole: LoadVerb = async (...parts) => (await import('./console.ts')).registerConsole(...parts)

const SHOWN_VERBS = Object.keys(VERBS).filter((verb) => verb !== 'keep-connections')

function firstWord(args: readonly string[]): string | undefined {
  return args.find((arg, index) => !arg.startsWith('-') && !TAKES_A_VALUE.has(args[index - 1] ?? ''))
}

/** The first word that is no option, if it is a verb; whatever else there is (a target, --help) is about all of them. */
function verbsFor(args: readonly string[]): readonly LoadVerb[] {
  if (args[0] === '--version' || args[0] === '-V') return []
  const first = firstWord(args)
  const verb = first === undefined || !Object.hasOwn(VERBS, first) ? undefined : VERBS[first]
  return verb === undefined ? [loadConsole, ...Object.values(VERBS)] : [verb]
}

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
  using limit = new TimeLimit(context)
  let verb: Command | undefined
  const program = createProgram(context)
  for (const load of verbsFor(args)) await load(program, limit.context, outcome)
  sayWhereHelpIs(program)
  program.hook('preAction', (_program, command) => {
    const options = program.opts<GlobalOptions>()
    verb = command
    refuseEmptyPromises(command, options)
    if (options.timeout !== undefined && nameOfVerb(command) !== 'run') limit.begin(options.timeout)
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    if (!limit.isOver || outcome.exitCode !== EXIT.interrupted) return outcome.exitCode
  } catch (error) {
    if (!limit.isOver) {
      const code = explain(error, context)
      const first = firstWord(args) ?? ''
      const meant = code === EXIT.usage ? nearestWord(first, SHOWN_VERBS) : undefined
      if (meant !== undefined && meant !== first) context.stderr.write(`(Did you mean muster ${meant}?)\n`)
      return code
    }
  }
  context.stderr.write(`muster: stopped after ${program.opts<GlobalOptions>().timeout} s (--timeout)\n`)
  return timedOutCode(verb)
}

function createProgram({ stdout, stderr }: CliContext): Command {
  const program = new Command('muster')
  program.description('One keyboard for every machine of a small cluster.').version(version(), '-V, --version')
  addOptionsEverywhere(program)
  return program
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text.split('\n').map(printable).join('\n')),
      outputError: (text, write) => write(text.replace(/^error: /, 'muster: ')),
    })
    .enablePositionalOptions(false)
}

function sayWhereHelpIs(command: Command): void {
  command.showHelpAfterError(`(${`muster ${nameOfVerb(command)}`.trim()} --help shows how)`)
  for (const below of command.commands) sayWhereHelpIs(below)
}

function explain(error: unknown, { signal, stderr }: CliContext): number {
  // What an action finds wrong with an argument nobody has told yet.
  if (error instanceof InvalidArgumentError) {
    stderr.write(`muster: ${printable(error.message)}\n`)
    return EXIT.usage
  }
  // Commander has written its own message; asking for help or the version is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  // What a signal cut short fails in its own way; the user knows why.
  if (signal.aborted) {
    stderr.write('muster: stopped\n')
    return EXIT.interrupted
  }
  stderr.write(describeError(error))
  return exitCodeOf(error)
}
