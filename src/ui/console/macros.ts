/** Text that differs from host to host: `%h` name, `%n` number, `%u` user, `%a` address, `%%` a percent sign. */

import { counted } from '../../base/counted.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { listDialog, promptDialog } from '../dialogs/prompt-dialog.ts'
import { type HostState, receiverList } from '../state/console-state.ts'
import type { ConsoleApp } from './console-app.ts'
import { runScript } from './script-macro.ts'

export type MacroHost = {
  readonly ownName: string
  readonly number: number
  readonly user: string
  readonly address: string
}

export function expandMacro(template: string, { ownName, number, user, address }: MacroHost): string {
  const values: Readonly<Record<string, string>> = { h: ownName, n: String(number), u: user, a: address, '%': '%' }
  return template.replace(/%([hnua%])/g, (_, letter: string) => values[letter] ?? '')
}

const PLACEHOLDER = /%[hnua]/

/** Without a placeholder, or where no shell waits for a line, it may be a password. */
const isRemembered = (app: ConsoleApp, text: string): boolean =>
  PLACEHOLDER.test(text) && hostsOf(app).every(({ host }) => app.isInShell(host))

const hostsOf = (app: ConsoleApp): readonly HostState[] =>
  receiverList(app.state).flatMap((host) => app.state.hosts.get(host) ?? [])

const MOST_PREVIEW = 4

function previewOf(app: ConsoleApp, text: string): readonly DialogLine[] {
  const hosts = hostsOf(app)
  const rest = hosts.length - MOST_PREVIEW
  return [
    ...hosts
      .slice(0, MOST_PREVIEW)
      .map((host): DialogLine => ({ text: `${host.host}: ${expandMacro(text, host)}`, tone: 'ok' })),
    ...(rest > 0 ? [{ text: `… and ${rest} more`, tone: 'muted' as const }] : []),
  ]
}

export function openMacros(app: ConsoleApp): void {
  const { macros } = app.options.preferences
  const [first] = hostsOf(app)
  const example = (text: string): string => (first ? `${first.host}: ${expandMacro(text, first)}` : '')
  const builtIn = { '%h': 'name', '%n': 'number', '%u': 'user', '%a': 'address' }
  app.openDialog(
    listDialog({
      id: 'macros',
      title: 'Insert a macro',
      label: 'Macro:',
      submitTitle: 'insert',
      emptyText: '',
      isRemembered: (text) => isRemembered(app, text),
      readLine: (text) =>
        PLACEHOLDER.test(text) && !Object.hasOwn(builtIn, text.trim())
          ? { preview: previewOf(app, text), submit: () => insertTemplate(app, text) }
          : undefined,
      items: [
        ...Object.entries(builtIn).map(([id, about]) => ({ id, label: id, detail: `${about} · ${example(id)}` })),
        { id: 'template', label: 'text …', detail: 'any text with %h %n %u %a' },
        ...macros.map((macro, index) => ({
          id: `macro:${index}`,
          label: macro.name,
          detail: 'text' in macro ? `${macro.text} · ${example(macro.text)}` : `prints: ${macro.command.join(' ')}`,
        })),
      ],
      onSubmit: ({ id }) => {
        if (id === 'template') return openTemplate(app)
        const macro = id.startsWith('macro:') ? macros[Number(id.slice(6))] : undefined
        if (macro && 'command' in macro) return runScript(app, macro)
        insertTemplate(app, macro?.text ?? id)
      },
    }),
  )
}

function openTemplate(app: ConsoleApp): void {
  app.openDialog(
    promptDialog({
      id: 'macro-text',
      title: `Type into ${counted(hostsOf(app).length, 'host')}`,
      label: 'Text:',
      submitTitle: 'insert without Enter',
      isRemembered: (text) => isRemembered(app, text),
      help: [{ text: '%h name   %n number   %u user   %a address   %% a percent sign', tone: 'muted' }],
      check: (text) => ({ preview: previewOf(app, text) }),
      onSubmit: (text) => insertTemplate(app, text),
    }),
  )
}

function insertTemplate(app: ConsoleApp, template: string): void {
  app.sendEach(hostsOf(app).map((host) => ({ hosts: [host.host], bytes: Buffer.from(expandMacro(template, host)) })))
}
