/** The options that every verb takes (contract: 'Options everywhere'), what they mean for each, and how help shows them. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { EXIT, type GlobalOptions } from './context.ts'

const DAY_S = 86_400
/** What timers of Node can be set to: 24 days. */
const LONGEST_S = 2_147_483

export function addOptionsEverywhere(program: Command): void {
  program
    .option(
      '--hosts <file>',
      'inventory (else ./hosts.yaml, else the one in the configuration directory; none: no file)',
    )
    .option('--json', 'one JSON object a line on stdout, nothing else there')
    .option('--dry-run', 'says what would be done, and does nothing')
    .option('-y, --yes', 'asks nothing before something is done or overwritten')
    .option('--exclude <target>', 'hosts to leave out')
    .option('--fan-out <n>', 'hosts at once', wholeNumber, 64)
    .option('--connect-timeout <s>', 'seconds for each step of connecting (default: 10)', connectSeconds)
    .option('--timeout <s>', 'seconds that it may take; of run: that the command may take on a host', seconds)
    .option('--persist <s>', 'seconds that connections stay warm for the next command (0: not at all)', secondsOrNone)
    .addOption(new Option('--color <when>', 'colours').choices(['auto', 'always', 'never']).default('auto'))
    .option('-v, --verbose', 'say more on stderr')
    .configureHelp({
      showGlobalOptions: true,
      visibleGlobalOptions: globalOptionsOf,
      styleTitle: (title) => (title === 'Global Options:' ? 'Options everywhere:' : title),
    })
}

/** Options of the program whose value is a word of its own, so that the verb behind them is found. */
export const TAKES_A_VALUE: ReadonlySet<string> = new Set([
  '--hosts',
  '--exclude',
  '--fan-out',
  '--connect-timeout',
  '--timeout',
  '--persist',
  '--color',
])

/** `env sync`; empty for the console. */
export function nameOfVerb(command: Command): string {
  return command.parent === null ? '' : `${nameOfVerb(command.parent)} ${command.name()}`.trim()
}

const CONSOLES = /^(demo)?$/

/** Verbs that change nothing anywhere: with or without --dry-run they do the same. */
const LOOKS_ONLY =
  /^(hosts|doctor|status|pack|(env|nfs|ray) status|env check|ray (jobs|logs|watch)|net watch|job (list|show|results|logs|wait)|import|simulate \w+)$/

const hasOwn = (command: Command, long: string): boolean => command.options.some((option) => option.long === long)

const takesDryRun = (command: Command): boolean =>
  command.parent !== null && (hasOwn(command, '--dry-run') || LOOKS_ONLY.test(nameOfVerb(command)))

/** @throws MusterError `usage` for an option that would promise what the verb does not keep. */
export function refuseEmptyPromises(command: Command, { dryRun, timeout }: GlobalOptions): void {
  const verb = nameOfVerb(command)
  const shown = verb === '' ? 'the console' : `\`muster ${verb}\``
  // What `hosts`, `import` and `net watch` may do besides looking.
  const { stop, output, record } = command.opts<{ stop?: boolean; output?: string; record?: string }>()
  const isMore = stop === true || output !== undefined || record !== undefined
  if (dryRun === true && (!takesDryRun(command) || isMore)) {
    throw new MusterError('usage', `${shown} has no --dry-run: nothing was done`)
  }
  if (timeout !== undefined && CONSOLES.test(verb)) throw new MusterError('usage', 'the console has no --timeout')
}

const CHANGES_BY_PLAN = /^(up|down|(env|nfs|ray) (up|down|sync|restart)|net uninstall|left)$/

/** The exit code of a verb that --timeout ended. */
export function timedOutCode(command: Command | undefined): number {
  return command !== undefined && CHANGES_BY_PLAN.test(nameOfVerb(command)) ? EXIT.incomplete : EXIT.failed
}

function globalOptionsOf(command: Command): Option[] {
  const program = rootOf(command)
  if (program === command) return []
  return program.options.filter(
    ({ long, hidden }) =>
      !hidden &&
      long !== '--version' &&
      !hasOwn(command, long ?? '') &&
      (long !== '--dry-run' || takesDryRun(command)) &&
      (long !== '--timeout' || !CONSOLES.test(nameOfVerb(command))),
  )
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent)
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It has to be a whole number from 1 on.')
  return value
}

function seconds(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It has to be a number of seconds above 0.')
  return Math.min(value, LONGEST_S)
}

/** Other limits are multiples of it. */
function connectSeconds(text: string): number {
  return Math.min(seconds(text), DAY_S)
}

/** 0 is one, too: whatever hosts.yaml says. */
function secondsOrNone(text: string): number {
  return Number(text) === 0 && text.trim() !== '' ? 0 : seconds(text)
}
