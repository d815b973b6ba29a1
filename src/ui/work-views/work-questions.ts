/** The dialogs of runs and copies: what to do where, what to search, where to save, whether to end it. */
import { MusterError, sentenceOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { expandCommand } from '../../ops/run/command-template.ts'
import type { Console } from '../console/console.ts'
import { createConfirmDialog } from '../dialogs/confirm-dialog.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { createPromptDialog, type PromptCheck } from '../dialogs/prompt-dialog.ts'
import { receiverList } from '../state/console-state.ts'
import { type ParsedWork, parseWork, parseWorkLine, type WorkRequest } from './parse-work.ts'

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

export function openWork(console: Console, verb: WorkRequest['verb']): void {
  const receivers = foldHostSet(receiverList(console.state))
  const where = receivers === '' ? '' : ` ${verb === 'run' ? 'on' : 'to'} ${receivers}`
  console.dialogs.open(({ onClose, onChange }) =>
    createPromptDialog({
      id: verb,
      title: verb === 'run' ? `Run a command${where}` : `Copy files${where}`,
      label: verb === 'run' ? 'Command:' : 'Files, destination:',
      submitTitle: verb,
      help: HELP[verb],
      check: (text) => checkWork(console, parseWork(verb, text)),
      onSubmit: (text) => submitWork(console, parseWork(verb, text)),
      onClose,
      onChange,
    }),
  )
}

/** A line of the palette that is a run or a copy, as it stands; undefined: it is neither. */
export function readWorkLine(console: Console, text: string): (PromptCheck & { submit(): void }) | undefined {
  const parsed = parseWorkLine(text)
  if (parsed === undefined) return undefined
  return { ...checkWork(console, parsed), submit: () => submitWork(console, parsed) }
}

function checkWork(console: Console, parsed: ParsedWork): PromptCheck {
  if ('error' in parsed) return parsed
  const { busyReason } = console.work
  if (busyReason !== undefined) return { error: busyReason }
  try {
    const hosts = hostsOf(console, parsed)
    const { size } = console.state.hosts
    const lines: DialogLine[] = [{ text: `${hosts.length} of ${size}: ${foldHostSet(hosts)}`, tone: 'ok' }]
    const first = console.state.hosts.get(hosts[0] ?? '')
    if (first && parsed.verb === 'run' && /%[hnu]/.test(parsed.command))
      lines.push({ text: `${first.host}: ${expandCommand(parsed.command, first)}`, tone: 'muted' })
    if (parsed.verb === 'copy')
      lines.push({ text: `${parsed.sources.join(' ')} → ${parsed.destination}`, tone: 'muted' })
    return { preview: lines }
  } catch (error) {
    return { error: sentenceOf(error) }
  }
}

function submitWork(console: Console, parsed: ParsedWork): void {
  if (!('error' in parsed)) console.work.begin(parsed, hostsOf(console, parsed))
}

/** Throws a sentence when they are none. */
function hostsOf(console: Console, { target }: WorkRequest): string[] {
  const { state, ports } = console
  if (target !== undefined) return ports.resolveHosts(target, [...state.hosts.keys()], state.groups)
  const hosts = receiverList(state)
  if (hosts.length === 0) throw new MusterError('usage', 'Nobody receives.', { hint: 'Name the hosts: on m[1-3]: …' })
  return hosts
}

export function openSearch(console: Console, needle: string): void {
  console.dialogs.open(({ onClose, onChange }) =>
    createPromptDialog({
      id: 'run-search',
      title: 'Search what was printed',
      label: 'Search:',
      initial: needle,
      submitTitle: 'search',
      help: [{ text: 'Without a capital letter, case makes no difference.', tone: 'muted' }],
      check: () => ({}),
      onSubmit: (text) => void console.work.find(text, 1),
      onClose,
      onChange,
    }),
  )
}

export function openSave(console: Console): void {
  console.dialogs.open(({ onClose, onChange }) =>
    createPromptDialog({
      id: 'run-save',
      title: 'Save what each host printed',
      label: 'Directory:',
      submitTitle: 'save',
      help: [{ text: 'It gets HOST.out and HOST.err; files that are there are not overwritten.', tone: 'muted' }],
      check: () => ({}),
      onSubmit: (text) => console.work.save(text),
      onClose,
      onChange,
    }),
  )
}

/** Closing the panel of something that goes on. */
export function openEnd(console: Console): void {
  const { work } = console
  openQuestion(console, work.busyHosts(), `End ${work.title()}?`, 'end it', () => work.stop())
}

/** Leaving while something goes on; at once when nothing does. */
export function askToLeave(console: Console): void {
  const { work, pages } = console
  const busy = [
    ...(work.isHeld ? [{ title: work.title(), hosts: work.busyHosts() }] : []),
    ...Object.values(pages).flatMap((page) => page.busy ?? []),
  ]
  if (busy.length === 0) return console.options.onQuit()
  const hosts = [...new Set(busy.flatMap((each) => each.hosts))]
  const title = `Leave, and end ${busy.map((each) => each.title).join(' and ')}?`
  openQuestion(console, hosts, title, 'end it and leave', () => console.options.onQuit())
}

type Hosts = readonly string[]

function openQuestion(console: Console, hosts: Hosts, title: string, yesTitle: string, onYes: () => void): void {
  console.dialogs.open(({ onClose }) =>
    createConfirmDialog({
      id: 'end-work',
      title,
      lines: [
        { text: `Still at it: ${foldHostSet(hosts)}.` },
        { text: 'Processes there are ended; what was copied so far is kept for the next time.', tone: 'muted' },
      ],
      yesTitle,
      noTitle: 'let it go on',
      onYes,
      onClose,
    }),
  )
}
