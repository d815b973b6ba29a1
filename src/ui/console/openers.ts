/** What each dialog of the console asks, shows while one types, and does with the answer. */
import { execFile } from 'node:child_process'
import { sentenceOf } from '../../base/errors.ts'
import { clip } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { createConfirmDialog } from '../dialogs/confirm-dialog.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { createListDialog } from '../dialogs/list-dialog.ts'
import { createPasteDialog } from '../dialogs/paste-dialog.ts'
import { createPromptDialog, type PromptCheck } from '../dialogs/prompt-dialog.ts'
import { createTextDialog } from '../dialogs/text-dialog.ts'
import { type ActionId, actionSpecs, keysOf, specOf } from '../keys/registry.ts'
import { receiverList } from '../state/console-state.ts'
import { setReceivers } from '../state/receivers.ts'
import { openEnd } from '../work-views/work-questions.ts'
import type { Console } from './console.ts'
import { helpLines, wrapHelp } from './help.ts'
import { expandMacro, macroEnvironment } from './macros.ts'

const HOST_SET_HELP: readonly DialogLine[] = [
  { text: 'm3   m[1-4]   gpu[01-16/2]   rack[1-2]n[1-8]', tone: 'muted' },
  { text: '@group   all   gpu*   a,b   a!b without   a&b both   a^b either', tone: 'muted' },
]

export function openHostSet(console: Console): void {
  const { state } = console
  const resolve = (text: string): string[] => console.ports.resolveHosts(text, [...state.hosts.keys()], state.groups)
  console.openDialog(({ onClose, onChange }) =>
    createPromptDialog({
      id: 'host-set',
      title: 'Who receives?',
      label: 'Host set:',
      submitTitle: 'these receive',
      help: HOST_SET_HELP,
      check: (text): PromptCheck => {
        try {
          const hosts = resolve(text)
          return { preview: [{ text: `${hosts.length} of ${state.hosts.size}: ${foldHostSet(hosts)}`, tone: 'ok' }] }
        } catch (error) {
          return { error: sentenceOf(error) }
        }
      },
      onSubmit: (text) => console.change((now) => setReceivers(now, resolve(text))),
      onClose,
      onChange,
    }),
  )
}

export function openGroups(console: Console): void {
  const { state } = console
  console.openDialog(({ onClose, onChange }) =>
    createListDialog({
      id: 'groups',
      title: 'Which group receives?',
      label: 'Group:',
      submitTitle: 'it receives',
      emptyText: 'hosts.yaml names no groups; / takes any host set',
      items: [
        { id: '', label: 'all', detail: `${state.hosts.size} hosts` },
        ...[...state.groups].map(([name, hosts]) => {
          const here = hosts.filter((host) => state.hosts.has(host))
          return {
            id: name,
            label: `@${name}`,
            detail: `${here.length}: ${foldHostSet(here)}`,
            disabledReason: here.length === 0 ? 'none of its hosts is here' : undefined,
          }
        }),
      ],
      onSubmit: ({ id }) =>
        console.change((now) => setReceivers(now, id === '' ? now.hosts.keys() : (now.groups.get(id) ?? []))),
      onClose,
      onChange,
    }),
  )
}

export function openAddHost(console: Console): void {
  console.openDialog(({ onClose, onChange }) =>
    createPromptDialog({
      id: 'add-host',
      title: 'Add hosts',
      label: 'Host:',
      submitTitle: 'connect',
      help: [
        { text: 'm9   gpu[05-08]   root@10.0.0.7:2222', tone: 'muted' },
        { text: 'Names of hosts.yaml, aliases of ~/.ssh/config, or user@host:port.', tone: 'muted' },
      ],
      check: () => ({}),
      onSubmit: (text) => {
        console.ports.resolveNewHosts(text).then(
          (endpoints) => console.addHosts(endpoints),
          (error: unknown) => console.notice(sentenceOf(error), 'error'),
        )
      },
      onClose,
      onChange,
    }),
  )
}

export function openCloseHost(console: Console): void {
  const hosts = console.focusedHosts()
  const names = foldHostSet(hosts)
  console.openDialog(({ onClose }) =>
    createConfirmDialog({
      id: 'close-host',
      title: `Close ${names}?`,
      lines: [{ text: 'Its shell is hung up, and what runs in it ends. hosts.yaml is not changed.' }],
      yesTitle: `close ${clip(names, 24)}`,
      onYes: () => console.removeHosts(hosts),
      onClose,
    }),
  )
}

export function openSaveSet(console: Console): void {
  const { saveGroup } = console.ports
  const hosts = receiverList(console.state)
  if (!saveGroup) return console.notice('there is no hosts.yaml to write to: start with --hosts FILE', 'warning')
  console.openDialog(({ onClose, onChange }) =>
    createPromptDialog({
      id: 'save-set',
      title: `Save ${foldHostSet(hosts)} as a group`,
      label: 'Name:',
      submitTitle: 'write to hosts.yaml',
      check: (text) =>
        /^[A-Za-z][\w.-]*$/.test(text)
          ? {}
          : { error: 'a name has letters, digits, _ . and -, and begins with a letter' },
      onSubmit: (name) => {
        saveGroup(name, hosts).then(
          (told) => {
            console.change((state) => ({ groups: new Map(state.groups).set(name, hosts) }))
            console.notice(told)
          },
          (error: unknown) => console.notice(sentenceOf(error), 'error'),
        )
      },
      onClose,
      onChange,
    }),
  )
}

export function openMacros(console: Console): void {
  const { macros } = console.options.preferences
  const [first] = receiverList(console.state).flatMap((host) => console.state.hosts.get(host) ?? [])
  const example = (text: string): string => (first ? `${first.host}: ${expandMacro(text, first)}` : '')
  const builtIn = [
    { name: '%h', text: '%h', about: 'name' },
    { name: '%n', text: '%n', about: 'number' },
    { name: '%u', text: '%u', about: 'user' },
    { name: '%a', text: '%a', about: 'address' },
  ]
  console.openDialog(({ onClose, onChange }) =>
    createListDialog({
      id: 'macros',
      title: 'Insert for each host',
      label: 'Macro:',
      submitTitle: 'insert',
      emptyText: '',
      items: [
        ...builtIn.map(({ name, text, about }) => ({ id: text, label: name, detail: `${about} · ${example(text)}` })),
        { id: 'template', label: 'text …', detail: 'any text with %h %n %u %a' },
        ...macros.map((macro, index) => ({
          id: `macro:${index}`,
          label: macro.name,
          detail: 'text' in macro ? `${macro.text} · ${example(macro.text)}` : `prints: ${macro.command.join(' ')}`,
        })),
      ],
      onSubmit: ({ id }) => {
        if (id === 'template') return openTemplate(console)
        const macro = id.startsWith('macro:') ? macros[Number(id.slice(6))] : undefined
        if (macro && 'command' in macro) return runScript(console, macro.command)
        insertTemplate(console, macro?.text ?? id)
      },
      onClose,
      onChange,
    }),
  )
}

function openTemplate(console: Console): void {
  const hosts = receiverList(console.state).flatMap((host) => console.state.hosts.get(host) ?? [])
  console.openDialog(({ onClose, onChange }) =>
    createPromptDialog({
      id: 'macro-text',
      title: `Type into ${hosts.length} host${hosts.length === 1 ? '' : 's'}`,
      label: 'Text:',
      submitTitle: 'insert (without Enter)',
      help: [{ text: '%h name   %n number   %u user   %a address   %% a percent sign', tone: 'muted' }],
      check: (text) => ({
        preview: hosts
          .slice(0, 4)
          .map((host) => ({ text: `${host.host}: ${expandMacro(text, host)}`, tone: 'ok' as const })),
      }),
      onSubmit: (text) => insertTemplate(console, text),
      onClose,
      onChange,
    }),
  )
}

function insertTemplate(console: Console, template: string): void {
  const hosts = receiverList(console.state).flatMap((host) => console.state.hosts.get(host) ?? [])
  console.sendEach(hosts.map((host) => ({ hosts: [host.host], bytes: Buffer.from(expandMacro(template, host)) })))
}

const SCRIPT_LIMIT = { timeout: 10_000, maxBuffer: 64 * 1024 }

/** Runs the user's own program once a host; what it prints is typed there, without the last line's end and without control characters. */
function runScript(console: Console, command: readonly string[]): void {
  const [file = '', ...args] = command
  for (const name of receiverList(console.state)) {
    const host = console.state.hosts.get(name)
    if (!host) continue
    const env = { ...console.ports.environment, ...macroEnvironment(host) }
    execFile(file, args, { ...SCRIPT_LIMIT, env }, (error, stdout) => {
      if (error) return console.notice(`${file} failed for ${name}: ${error.message.split('\n')[0]}`, 'error')
      const text = stdout.replace(/\r?\n$/, '').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '')
      console.sendEach([{ hosts: [name], bytes: Buffer.from(text.replaceAll('\n', '\r')) }])
    })
  }
}

/** Text held for review: given, or what was kept from the last time. */
export function openPaste(console: Console, text = console.pendingPaste): void {
  const hosts = receiverList(console.state)
  console.openDialog(({ onClose, onChange }) =>
    createPasteDialog({
      id: 'paste-review',
      text,
      hosts,
      hostsText: foldHostSet(hosts),
      onSend: (reviewed) => {
        console.pendingPaste = ''
        console.paste(reviewed, hosts)
      },
      onDiscard: (kept) => {
        console.pendingPaste = kept
        if (kept !== '') console.notice(`nothing was sent; ${console.state.leaderLabel} p takes the text up again`)
      },
      onClose,
      onChange,
    }),
  )
}

export function openPalette(console: Console, run: (id: ActionId) => void): void {
  const { keymap } = console.options
  console.openDialog(({ onClose, onChange }) =>
    createListDialog({
      id: 'palette',
      title: 'Commands',
      label: 'Find:',
      submitTitle: 'do it',
      readLine: (text) => console.work.readLine(text) ?? console.rayLine.read(text),
      emptyText: '',
      items: actionSpecs.map((spec) => ({
        id: spec.id,
        label: spec.title,
        keywords: `${spec.section} ${spec.help}`,
        keyHint: keysOf(keymap, spec.id).join(' '),
        disabledReason: specOf(spec.id).disabledReason?.(console.state),
      })),
      onSubmit: ({ id }) => run(id as ActionId),
      onClose,
      onChange,
    }),
  )
}

export function openHelp(console: Console): void {
  const width = Math.min(110, console.state.columns - 2)
  console.openDialog(({ onClose, onChange }) =>
    createTextDialog({
      id: 'help',
      title: 'Keys',
      width,
      lines: wrapHelp(helpLines(console.options.keymap, console.state.leaderLabel), width - 6),
      onClose,
      onChange,
    }),
  )
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
  openEnd(console, hosts, title, 'end it and leave', () => console.options.onQuit())
}
