/** `muster attach` and `muster sessions`: lists, attaches and ends consoles. */
import { counted } from '../../base/counted.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { timeText, untilText } from '../../base/time-text.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { addKeepOptions } from '../console/keep-options.ts'
import { requireTerminal } from '../console/require-terminal.ts'
import { jsonLine } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
import { formatTable } from '../output/table.ts'
import { attachTo, startConsole } from './console-client.ts'
import {
  endSession,
  type FoundSession,
  findSessions,
  lookForSessions,
  type Sessions,
  type SilentSession,
} from './session-directory.ts'

type KeepOptions = GlobalOptions & { readonly keep?: boolean }

export const attach: VerbCode = {
  define: (command) =>
    addKeepOptions(
      command.argument('[console]', 'its name, as `muster sessions` lists it (default: the only one)'),
      'as before',
    ),
  help: `
Examples:
  muster attach
  muster attach lab
  muster attach --keep

A console that is open on another terminal moves to this one.
`,
  async run(name: string | undefined, { keep }: KeepOptions, context: CliContext) {
    requireTerminal(context)
    const sessions = await lookForSessions(context.environment)
    return await attachTo(chosen(sessions, name).address, keep, context)
  },
}

function chosen({ found, silent }: Sessions, name: string | undefined): FoundSession {
  const named = found.filter((each) => each.name === name)
  const detached = found.filter(({ terminal }) => terminal === undefined)
  const [only, ...others] = name === undefined ? (detached.length > 0 ? detached : found) : named
  if (only !== undefined && others.length === 0) return only
  const [quiet] = silent.filter((each) => name === undefined || each.name === name)
  if (only === undefined && quiet !== undefined) throw noAnswer([quiet])
  if (name !== undefined)
    throw new MusterError('usage', `no console is called ${printable(name)}${consoleMeant(name, found)}`, {
      hint: 'Run: muster sessions',
    })
  if (only === undefined) throw new MusterError('usage', 'no console is open', { hint: 'Run: muster' })
  throw new MusterError('usage', `${others.length + 1} consoles are open: name one`, {
    hint: [only, ...others].map((each) => `  muster attach ${each.name}`).join('\n'),
  })
}

/** A cluster's second console has another name than the cluster, and keeps it when the first one ends. */
export function consoleMeant(name: string, found: readonly Pick<FoundSession, 'name' | 'cluster'>[]): string {
  const ofCluster = found.find(({ cluster }) => cluster === name)
  return ofCluster === undefined
    ? didYouMean(
        name,
        found.map((each) => each.name),
      )
    : `; did you mean ${ofCluster.name}?`
}

const noAnswer = (silent: readonly SilentSession[]): MusterError =>
  new MusterError(
    'unreachable',
    silent.length === 1
      ? `the console ${silent[0]?.name} does not answer: its process is stopped or very busy`
      : `${silent.length} consoles do not answer (${silent.map(({ name }) => name).join(', ')}): their processes are stopped or very busy`,
    { hint: 'To find the process, run: pgrep -af console-process' },
  )

type SessionsOptions = GlobalOptions & { readonly end?: string }

export const sessions: VerbCode = {
  define: (command) => command.option('--end <console>', 'end this console and its shells; all: every console'),
  help: `
Examples:
  muster sessions
  muster sessions --end lab
`,
  async run({ end, json }: SessionsOptions, context: CliContext) {
    const all = await lookForSessions(context.environment)
    const found = end === undefined || end === 'all' ? all.found : [chosen(all, end)]
    const silent = end === undefined || end === 'all' ? all.silent : []
    if (end !== undefined) await Promise.all(found.map((each) => endSession(each, context.environment)))
    if (json) {
      const type = end === undefined ? 'session' : 'ended'
      const time = new Date(context.now()).toISOString()
      for (const each of found) context.stdout.write(jsonLine(eventOf(type, each, time), context))
      for (const { name } of silent) context.stdout.write(jsonLine({ type: 'silent', name, time }, context))
    } else if (found.length + silent.length === 0) notice(context, 'muster: no console is open\n')
    else context.stdout.write(tableOf({ found, silent }, end !== undefined, context))
    if (end !== undefined && silent.length > 0) throw noAnswer(silent)
    return EXIT.ok
  },
}

function eventOf(type: string, session: FoundSession, time: string) {
  const { address: _address, opened: _opened, startedMs, detachedMs, endsAtMs, ...shown } = session
  const at = (name: string, ms: number | undefined) => (ms === undefined ? {} : { [name]: new Date(ms).toISOString() })
  return {
    type,
    ...shown,
    time,
    ...at('started', startedMs),
    ...at('detached', detachedMs),
    ...at('ends', endsAtMs),
  }
}

function tableOf({ found, silent }: Sessions, isEnd: boolean, { now, stdout }: CliContext): string {
  const nowMs = now()
  const rows = found.map(({ name, cluster, hosts, shells, terminal, detachedMs, endsAtMs }) => [
    name,
    cluster,
    hosts,
    String(shells),
    isEnd
      ? 'ended'
      : detachedMs === undefined
        ? (terminal ?? '') || 'attached'
        : `detached ${timeText(detachedMs, nowMs)}`,
    endsAtMs === undefined || isEnd ? '' : untilText(endsAtMs, nowMs),
  ])
  rows.push(...silent.map(({ name }) => [name, '', '', '', 'does not answer', '']))
  return formatTable(['NAME', 'CLUSTER', 'HOSTS', 'SHELLS', 'TERMINAL', 'ENDS'], rows, stdout)
}

/**
 * The detached consoles to ask about: those on the same hosts, the last one that was detached first, or the only one where
 * nothing else can be opened (`opened` is undefined).
 * @throws MusterError where there are several then
 */
export function askedAbout<S extends Pick<FoundSession, 'name' | 'opened' | 'detachedMs'>>(
  detached: readonly S[],
  opened: readonly string[] | undefined,
): readonly S[] {
  if (opened !== undefined) {
    const same = detached.filter((each) => each.opened.some((key) => opened.includes(key)))
    return same.toSorted((one, other) => (other.detachedMs ?? 0) - (one.detachedMs ?? 0))
  }
  if (detached.length < 2) return detached
  const text = `there is no hosts.yaml here, and ${detached.length} consoles are detached: name one`
  throw new MusterError('configuration', text, {
    hint: detached.map(({ name }) => `  muster attach ${name}`).join('\n'),
  })
}

/** `muster`: a new console, unless the user wants a detached one. `findOpened`: undefined where nothing else can be opened. */
export async function openOrAttach(
  findOpened: (() => Promise<readonly string[]>) | undefined,
  { new: isNew, keep }: KeepOptions & { readonly new?: boolean },
  context: CliContext,
): Promise<number> {
  if (isNew !== true) {
    const found = await findSessions(context.environment, 'detached').catch(() => [])
    const detached = found.filter(({ terminal }) => terminal === undefined)
    const sessions = detached.length === 0 ? [] : askedAbout(detached, await findOpened?.())
    if (sessions.length > 0) {
      const choice = await askWhich(sessions, findOpened !== undefined, context)
      if (choice === undefined) return EXIT.interrupted
      if (choice === 'quit') return EXIT.ok
      if (choice !== 'new') return await attachTo(choice.address, keep, context)
    }
  }
  return await startConsole(process.argv.slice(2), context)
}

/**
 * The console to attach, or what to do instead; undefined: none of them. Keys go to all hosts of a console that is attached, so no
 * other word attaches one.
 */
export function choiceOf<S extends Pick<FoundSession, 'name'>>(
  answer: string,
  sessions: readonly S[],
): S | 'new' | 'quit' | undefined {
  const word = answer.trim().toLowerCase()
  if (['', 'a', 'attach'].includes(word)) return sessions[0]
  const other = (['new', 'quit'] as const).find((choice) => word === choice || word === choice[0])
  return other ?? sessions.find(({ name }) => name === answer.trim())
}

/** Undefined: interrupted. */
async function askWhich(
  sessions: readonly FoundSession[],
  canOpen: boolean,
  { stdout, now, signal }: CliContext,
): Promise<FoundSession | 'new' | 'quit' | undefined> {
  const nowMs = now()
  for (const { name, detachedMs = 0, hosts, shells, endsAtMs = 0 } of sessions) {
    const times = `was detached at ${timeText(detachedMs, nowMs)} and ends at ${untilText(endsAtMs, nowMs)}`
    stdout.write(`The console ${name} (${counted(shells, 'shell')}: ${printable(hosts)}) ${times}.\n`)
  }
  const dialog = new TtyDialog()
  const hasOthers = sessions.length > 1
  const which = hasOthers ? `${sessions[0]?.name} (a), another one (its name)` : 'it (a)'
  let question = `Attach ${which}${canOpen ? ', open a new one (n),' : ''} or quit (q)? [a] `
  for (;;) {
    const answer = await dialog.line(question, signal)
    if (answer === undefined) return undefined
    const choice = choiceOf(answer, sessions)
    if (choice !== undefined && (canOpen || choice !== 'new')) return choice
    question = `Answer a${hasOthers ? ', a name' : ''}${canOpen ? ', n' : ''} or q. [a] `
  }
}
