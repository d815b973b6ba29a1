/** The dialogs of runs and copies. */
import { MusterError, sentenceOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { expandCommand } from '../../ops/run/command-template.ts'
import type { Completing, DialogLine } from '../dialogs/dialog.ts'
import { type LineCheck, type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import { completeHostSet, completeLastPath, completePath } from '../dialogs/prompt-line.ts'
import { type ConfirmOptions, confirmDialog, withdrawable } from '../dialogs/text-dialog.ts'
import { type ConsoleState, type PageContext, receiverList } from '../state/console-state.ts'
import { type ParsedWork, parseWork, parseWorkLine, type WorkRequest } from './parse-work.ts'

/** The console's hosts that an expression names; throws a MusterError when it names none. */
export type ResolveHosts = (
  expression: string,
  known: readonly string[],
  groups: ReadonlyMap<string, readonly string[]>,
) => string[]

export type WorkTarget = {
  /** Why nothing new can start. */
  readonly busyReason: string | undefined
  readonly resolveHosts: ResolveHosts
  begin(request: WorkRequest, hosts: readonly string[]): void
  /** @throws when one of these files cannot be copied */
  checkSources(sources: readonly string[]): Promise<void> | undefined
}

const HELP: Readonly<Record<WorkRequest['verb'], readonly DialogLine[]>> = {
  run: [
    { text: 'uptime          on @gpus: nvidia-smi -L', tone: 'muted' },
    { text: '%h name  %n number  %u user. Has no terminal; use the shells for that.', tone: 'muted' },
  ],
  copy: [
    { text: 'app.conf /etc/app/          on @gpus: data model.bin /srv', tone: 'muted' },
    { text: 'Files here, then the destination. Resumes an interrupted copy.', tone: 'muted' },
  ],
}

export function openWork(context: PageContext, target: WorkTarget, verb: WorkRequest['verb']): void {
  const receivers = foldHostSet(receiverList(context.state))
  const { busyReason } = target
  const where = receivers === '' ? '' : ` ${verb === 'run' ? 'on' : 'to'} ${receivers}`
  context.openDialog(
    promptDialog({
      id: verb,
      title: verb === 'run' ? `Run a command${where}` : `Copy files${where}`,
      label: verb === 'run' ? 'Command:' : 'Files, destination:',
      submitTitle: verb,
      // What is typed blindly must not get into the shells, so the prompt opens in any case.
      ...(busyReason === undefined ? { help: HELP[verb] } : { emptyHelp: [{ text: busyReason, tone: 'warning' }] }),
      complete: (text) => completeWork(verb, text),
      check: (text) => checkWork(context, target, parseWork(verb, text)),
      ...(verb === 'copy' ? { staysOpen: true } : {}),
      onSubmit: (text, isOpen) => {
        const parsed = parseWork(verb, text)
        const checking = 'sources' in parsed ? target.checkSources(parsed.sources) : undefined
        if (checking === undefined) return submitWork(context, target, parsed)
        return checking.then(() => {
          if (isOpen()) submitWork(context, target, parsed)
        })
      },
    }),
  )
}

/** Hosts behind `on`, up to the colon. */
export function completeOn(text: string): Completing | undefined {
  const on = /^\s*on\s+/.exec(text)
  if (on === null || text.includes(':', on[0].length)) return undefined
  return shifted(completeHostSet(text.slice(on[0].length)), on[0].length)
}

/** Hosts behind `on`, then files of this machine for a copy. */
function completeWork(verb: WorkRequest['verb'], text: string): Completing | undefined {
  const hosts = completeOn(text)
  if (hosts !== undefined) return hosts
  const on = /^\s*on\s+/.exec(text)
  const colon = on === null ? -1 : text.indexOf(':', on[0].length)
  return verb === 'copy' ? shifted(completeLastPath(text.slice(colon + 1)), colon + 1) : undefined
}

const shifted = (completing: Completing | undefined, by: number): Completing | undefined =>
  completing && { ...completing, from: completing.from + by }

/** The same for a line of the palette. */
export function completeWorkLine(text: string): Completing | undefined {
  const [start, verb] = /^\s*:?(run|copy)\s/.exec(text) ?? []
  if (start === undefined) return undefined
  return shifted(completeWork(verb === 'run' ? 'run' : 'copy', text.slice(start.length)), start.length)
}

/** A line of the palette; undefined: neither a run nor a copy. */
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
    const acts = `${hosts.length} of ${state.hosts.size}: ${foldHostSet(hosts)}`
    const lines: DialogLine[] = [{ text: acts, tone: 'ok' }]
    const first = state.hosts.get(hosts[0] ?? '')
    if (first && parsed.verb === 'run' && /%[hnu]/.test(parsed.command))
      lines.push({ text: `${first.host}: ${expandCommand(parsed.command, first)}`, tone: 'muted' })
    if (parsed.verb === 'copy')
      lines.push({ text: `${parsed.sources.join(' ')} → ${parsed.destination}`, tone: 'muted' })
    return { preview: lines, acts }
  } catch (error) {
    return { error: sentenceOf(error) }
  }
}

function submitWork({ state }: PageContext, target: WorkTarget, parsed: ParsedWork): void {
  if (!('error' in parsed)) target.begin(parsed, hostsOf(state, target, parsed))
}

/** @throws MusterError when there are none. */
function hostsOf(state: ConsoleState, { resolveHosts }: WorkTarget, { target }: WorkRequest): string[] {
  if (target !== undefined) return resolveHosts(target, [...state.hosts.keys()], state.groups)
  const hosts = receiverList(state)
  if (hosts.length === 0) throw new MusterError('usage', 'no receivers', { hint: 'Name the hosts: on m[1-3]: …' })
  return hosts
}

export function openSearch(context: PageContext, needle: string, onSubmit: (needle: string) => void): void {
  context.openDialog(
    promptDialog({
      id: 'run-search',
      title: 'Search the output',
      label: 'Search:',
      ...(needle === '' ? {} : { fallback: needle }),
      submitTitle: 'search',
      help: [{ text: 'Ignores case unless you type a capital letter.', tone: 'muted' }],
      onSubmit,
    }),
  )
}

export function openSave(context: PageContext, onSubmit: (directory: string) => Promise<void>): void {
  context.openDialog(
    promptDialog({
      id: 'run-save',
      title: 'Save the output of each host',
      label: 'Directory:',
      submitTitle: 'save',
      help: [{ text: 'Writes HOST.out and HOST.err there; never overwrites a file.', tone: 'muted' }],
      complete: completePath,
      staysOpen: true,
      onSubmit,
    }),
  )
}

type Asked = {
  readonly kind: 'run' | 'copy'
  readonly hosts: readonly string[]
  /** What runs, or ran. */
  readonly title: string
  onYes(): void
}

/** Whether to start it again. Returns what withdraws the question. */
export const openAgain = (context: PageContext, { kind, hosts, title, onYes }: Asked): (() => void) =>
  openQuestion(context, {
    id: `${kind}-again`,
    title: `${kind === 'run' ? 'Run' : 'Copy'} again on ${foldHostSet(hosts)}?`,
    lines: [
      { text: title },
      ...(kind === 'copy'
        ? [{ text: 'Continues what was interrupted; identical files are skipped.', tone: 'muted' as const }]
        : []),
    ],
    yesTitle: `${kind} again`,
    onYes,
  })

/** Before a run or a copy that is still running is stopped. Returns what withdraws the question. */
export const openStop = (context: PageContext, { kind, hosts, title, onYes }: Asked): (() => void) =>
  openQuestion(context, {
    id: `stop-${kind}`,
    title: `Stop ${title}?`,
    lines: [
      { text: `Still running on ${foldHostSet(hosts)}.` },
      {
        text: kind === 'run' ? 'This stops its processes there.' : 'An interrupted copy continues next time.',
        tone: 'muted',
      },
    ],
    yesTitle: 'stop',
    noTitle: 'keep running',
    onYes,
  })

function openQuestion(context: PageContext, options: ConfirmOptions): () => void {
  const { make, withdraw } = withdrawable(confirmDialog(options))
  context.openDialog(make)
  return withdraw
}
