/** The dialogs of runs and copies: what to do where, what to search, where to save, whether to end it. */
import { MusterError, sentenceOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { expandCommand } from '../../ops/run/command-template.ts'
import { confirmDialog } from '../dialogs/confirm-dialog.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { type LineCheck, type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import { type ConsoleState, receiverList } from '../state/console-state.ts'
import type { PageContext } from '../tabs/page-context.ts'
import { type ParsedWork, parseWork, parseWorkLine, type WorkRequest } from './parse-work.ts'

/** The console's hosts that an expression means; throws with a sentence when it means none. */
export type ResolveHosts = (
  expression: string,
  known: readonly string[],
  groups: ReadonlyMap<string, readonly string[]>,
) => string[]

/** Where a run or a copy goes once it is known. */
export type WorkTarget = {
  /** Why nothing new can begin, or undefined. */
  readonly busyReason: string | undefined
  readonly resolveHosts: ResolveHosts
  begin(request: WorkRequest, hosts: readonly string[]): void
}

const HELP: Readonly<Record<WorkRequest['verb'], readonly DialogLine[]>> = {
  run: [
    { text: 'uptime          on @gpus: nvidia-smi -L', tone: 'muted' },
    { text: '%h name  %n number  %u user. Without a terminal: type into the shells for that.', tone: 'muted' },
  ],
  copy: [
    { text: 'app.conf /etc/app/          on @gpus: data model.bin /srv', tone: 'muted' },
    { text: 'Files of this machine, then where they go; verified, carried on after a cut.', tone: 'muted' },
  ],
}

export function openWork(context: PageContext, target: WorkTarget, verb: WorkRequest['verb']): void {
  const receivers = foldHostSet(receiverList(context.state))
  const where = receivers === '' ? '' : ` ${verb === 'run' ? 'on' : 'to'} ${receivers}`
  context.openDialog(
    promptDialog({
      id: verb,
      title: verb === 'run' ? `Run a command${where}` : `Copy files${where}`,
      label: verb === 'run' ? 'Command:' : 'Files, destination:',
      submitTitle: verb,
      help: HELP[verb],
      check: (text) => checkWork(context, target, parseWork(verb, text)),
      onSubmit: (text) => submitWork(context, target, parseWork(verb, text)),
    }),
  )
}

/** A line of the palette that is a run or a copy, as it stands; undefined: it is neither. */
export function readWorkLine(context: PageContext, target: WorkTarget, text: string): LineCheck | undefined {
  const parsed = parseWorkLine(text)
  if (parsed === undefined) return undefined
  return { ...checkWork(context, target, parsed), submit: () => submitWork(context, target, parsed) }
}

function checkWork({ state }: PageContext, target: WorkTarget, parsed: ParsedWork): PromptCheck {
  if ('error' in parsed) return parsed
  const { busyReason } = target
  if (busyReason !== undefined) return { error: busyReason }
  try {
    const hosts = hostsOf(state, target, parsed)
    const lines: DialogLine[] = [{ text: `${hosts.length} of ${state.hosts.size}: ${foldHostSet(hosts)}`, tone: 'ok' }]
    const first = state.hosts.get(hosts[0] ?? '')
    if (first && parsed.verb === 'run' && /%[hnu]/.test(parsed.command))
      lines.push({ text: `${first.host}: ${expandCommand(parsed.command, first)}`, tone: 'muted' })
    if (parsed.verb === 'copy')
      lines.push({ text: `${parsed.sources.join(' ')} → ${parsed.destination}`, tone: 'muted' })
    return { preview: lines }
  } catch (error) {
    return { error: sentenceOf(error) }
  }
}

function submitWork({ state }: PageContext, target: WorkTarget, parsed: ParsedWork): void {
  if (!('error' in parsed)) target.begin(parsed, hostsOf(state, target, parsed))
}

/** Throws a sentence when they are none. */
function hostsOf(state: ConsoleState, { resolveHosts }: WorkTarget, { target }: WorkRequest): string[] {
  if (target !== undefined) return resolveHosts(target, [...state.hosts.keys()], state.groups)
  const hosts = receiverList(state)
  if (hosts.length === 0) throw new MusterError('usage', 'Nobody receives.', { hint: 'Name the hosts: on m[1-3]: …' })
  return hosts
}

export function openSearch(context: PageContext, needle: string, onSubmit: (needle: string) => void): void {
  context.openDialog(
    promptDialog({
      id: 'run-search',
      title: 'Search what was printed',
      label: 'Search:',
      initial: needle,
      submitTitle: 'search',
      help: [{ text: 'Without a capital letter, case makes no difference.', tone: 'muted' }],
      onSubmit,
    }),
  )
}

export function openSave(context: PageContext, onSubmit: (directory: string) => void): void {
  context.openDialog(
    promptDialog({
      id: 'run-save',
      title: 'Save what each host printed',
      label: 'Directory:',
      submitTitle: 'save',
      help: [{ text: 'It gets HOST.out and HOST.err; files that are there are not overwritten.', tone: 'muted' }],
      onSubmit,
    }),
  )
}

/** Before something that is still running is ended. */
export function openEnd(
  context: PageContext,
  hosts: readonly string[],
  title: string,
  yesTitle: string,
  onYes: () => void,
): void {
  context.openDialog(
    confirmDialog({
      id: 'end-work',
      title,
      lines: [
        { text: `Still at it: ${foldHostSet(hosts)}.` },
        { text: 'Processes there are ended; what was copied so far is kept for the next time.', tone: 'muted' },
      ],
      yesTitle,
      noTitle: 'let it go on',
      onYes,
    }),
  )
}
