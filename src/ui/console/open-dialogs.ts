/** The dialogs of the console: what each asks, previews, and does with the answer. */

import { stringify } from 'yaml'
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { MusterError, sentenceOf } from '../../base/errors.ts'
import { clip, padEnd } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { DialogFactory, DialogLine } from '../dialogs/dialog.ts'
import { pasteDialog } from '../dialogs/paste-dialog.ts'
import {
  type ListItem,
  listDialog,
  type PromptCheck,
  type PromptOptions,
  promptDialog,
} from '../dialogs/prompt-dialog.ts'
import { completeHostSet } from '../dialogs/prompt-line.ts'
import { confirmDialog, textDialog } from '../dialogs/text-dialog.ts'
import type { KeyEntry } from '../keys/key-table.ts'
import { type ActionId, actionSpecs, commandLabel, KEY_SYNONYMS, keysOf, SYNONYMS } from '../keys/registry.ts'
import { preferencesFile } from '../preferences.ts'
import {
  focusedHosts,
  getsKeys,
  liveReceivers,
  PAGE_TABS,
  receiverList,
  selectHosts,
  titleOf,
} from '../state/console-state.ts'
import { pageKeys } from '../tabs/page-keys.ts'
import { panelKeys } from '../work-views/panel.ts'
import { completeWorkLine } from '../work-views/work-questions.ts'
import type { ConsoleApp, Draft } from './console-app.ts'
import { findHelp, helpLines, helpSections, wrapHelp } from './help.ts'
import { fewLines, PROGRAMS_WIDTH, ShellPrograms } from './shell-programs.ts'
import { handleTableKey } from './table-keys.ts'

const HOST_SET_HELP: readonly DialogLine[] = [
  { text: 'm3   m[1-4]   gpu[01-16/2]   rack[1-2]n[1-8]', tone: 'muted' },
  { text: '@group   all   gpu*   a,b   a!b without   a&b both   a^b either', tone: 'muted' },
]

export function openHostSet(app: ConsoleApp): void {
  const { state } = app
  const resolve = (text: string): string[] => app.ports.resolveHosts(text, [...state.hosts.keys()], state.groups)
  app.openDialog(
    promptDialog({
      id: 'host-set',
      title: 'Select a host set',
      label: 'Host set:',
      submitTitle: 'select',
      help: HOST_SET_HELP,
      check: (text): PromptCheck => {
        try {
          const hosts = resolve(text)
          return { preview: [{ text: `${hosts.length} of ${state.hosts.size}: ${foldHostSet(hosts)}`, tone: 'ok' }] }
        } catch (error) {
          return { error: sentenceOf(error) }
        }
      },
      complete: completeHostSet,
      joinsLines: true,
      onSubmit: (text) => app.change((now) => selectHosts(now, resolve(text))),
    }),
  )
}

export function openGroups(app: ConsoleApp): void {
  const { state } = app
  // As they are listed, also if hosts.yaml changes meanwhile.
  const { groups } = state
  app.openDialog(
    listDialog({
      id: 'groups',
      title: 'Select a group',
      label: 'Group:',
      submitTitle: 'select',
      emptyText: `hosts.yaml has no groups; ${commandLabel(state, 'receive-expression')} selects a host set`,
      items: [
        { id: '', label: 'all', detail: counted(state.hosts.size, 'host') },
        ...[...groups].map(([name, hosts]) => {
          const here = hosts.filter((host) => state.hosts.has(host))
          return {
            id: name,
            label: `@${name}`,
            ...(here.length === 0
              ? { disabledReason: 'none of its hosts is open' }
              : { detail: `${here.length}: ${foldHostSet(here)}` }),
          }
        }),
      ],
      onSubmit: ({ id }) =>
        app.change((now) => selectHosts(now, id === '' ? now.hosts.keys() : (groups.get(id) ?? []))),
    }),
  )
}

/** Enter alone undoes the last closing, or opens what is new in hosts.yaml. */
export function openAddHost(app: ConsoleApp): void {
  const closed = foldHostSet(app.lastClosed.map(({ host }) => host))
  const offered = foldHostSet(app.offered.filter((host) => !app.state.hosts.has(host)))
  // What was closed last comes before what is new: both cannot be what Enter alone opens.
  const alone = closed === '' ? offered : closed
  app.openDialog(
    promptDialog({
      id: 'add-host',
      title: 'Add hosts',
      label: 'Host:',
      submitTitle: 'connect',
      ...(alone === '' ? {} : { fallback: alone }),
      emptyHelp: alone === '' ? [] : [{ text: `Enter alone opens ${alone}${closed === '' ? '' : ' again'}.` }],
      help: [
        ...(closed === '' || offered === '' ? [] : [{ text: `Newly declared: ${offered}` }]),
        { text: 'm9   gpu[05-08]   root@10.0.0.7:2222', tone: 'muted' },
        { text: 'Names from hosts.yaml, aliases from ~/.ssh/config, or user@host:port.', tone: 'muted' },
      ],
      complete: (text) => {
        const operand = completeHostSet(text)
        return operand && { ...operand, kind: hostsToAdd(app) }
      },
      joinsLines: true,
      staysOpen: true,
      onSubmit: async (text, isOpen) => {
        if (text === closed) return await app.reopen(isOpen)
        const endpoints = await app.resolveNewHosts(text)
        if (!isOpen()) return
        app.offered = []
        app.addHosts(endpoints)
      },
    }),
  )
}

/** Hosts that are not open, and groups with such hosts. */
function hostsToAdd({ ports, state }: ConsoleApp): readonly string[] {
  const isClosed = (host: string): boolean => !state.hosts.has(host)
  const groups = [...state.groups].filter(([, hosts]) => hosts.some(isClosed)).map(([name]) => `@${name}`)
  return [...ports.declaredHosts().filter(isClosed), ...groups, 'all']
}

export function openCloseHost(app: ConsoleApp): void {
  const hosts = focusedHosts(app.state)
  const names = foldHostSet(hosts)
  const hasShell = hosts.some((host) => ['opening', 'open'].includes(app.state.hosts.get(host)?.shell.kind ?? ''))
  const isOne = hosts.length === 1
  const busy = app.busyOn((host) => hosts.includes(host))
  const recorded = app.recording.among(hosts)
  const what = hasShell
    ? `This hangs up ${isOne ? 'its shell and ends what runs in it' : 'their shells and ends what runs in them'}.`
    : `${isOne ? 'It has' : 'They have'} no shell.`
  app.openDialog((report) => {
    const programs = new ShellPrograms(app, hosts, report.onChange)
    const ask = confirmDialog({
      id: 'close-host',
      title: `Close ${names}?`,
      width: PROGRAMS_WIDTH,
      lines: (rows) => [
        { text: `${what} hosts.yaml stays as it is.` },
        ...fewLines([...programs.lines, ...programs.pendingLines], Math.max(1, Math.floor(rows / 3))),
        ...(recorded.length === 0
          ? []
          : [
              { text: `This also ends the recording of ${clip(foldHostSet(recorded), 24)}.`, tone: 'warning' as const },
            ]),
        ...busy.map(({ title, hosts: on, endsWith }) => ({
          text: `This also ends ${clip(title, 36)} on ${clip(foldHostSet(endsWith ?? on), 24)}.`,
          tone: 'warning' as const,
        })),
      ],
      yesTitle: `close ${clip(names, 24)}`,
      onYes: () => {
        app.removeHosts(hosts)
        app.notice(`closed ${names}; ${commandLabel(app.state, 'add-host')} opens ${isOne ? 'it' : 'them'} again`)
      },
    })
    return ask({
      ...report,
      onClose() {
        programs[Symbol.dispose]()
        report.onClose()
      },
    })
  })
}

export function openSaveSet(app: ConsoleApp): void {
  const { saveGroup } = app.ports
  const hosts = receiverList(app.state)
  if (!saveGroup) {
    const isOnSeveral = app.state.files.titles.length > 0
    const why = isOnSeveral
      ? 'several files are open: a group is saved in a console on one of them'
      : 'no hosts.yaml to write to: start with --hosts FILE'
    return openNoGroup(app, why)
  }
  const declared = new Set(app.ports.declaredHosts())
  const others = hosts.filter((host) => !declared.has(host))
  if (others.length > 0) {
    const verb = others.length === 1 ? 'is' : 'are'
    return openNoGroup(app, `${foldHostSet(others)} ${verb} not in hosts.yaml`)
  }
  /** Those of a group of this name, if they are others. */
  const replacedBy = (name: string): string | undefined => {
    const before = app.state.groups.get(name)
    return before === undefined || foldHostSet(before) === foldHostSet(hosts) ? undefined : foldHostSet(before)
  }
  /** The name of a group that the next Enter replaces. */
  let replacing: string | undefined
  app.openDialog(
    promptDialog({
      id: 'save-set',
      title: `Save ${foldHostSet(hosts)} as a group`,
      label: 'Name:',
      submitTitle: 'write to hosts.yaml',
      check: (text) => {
        if (text !== replacing) replacing = undefined
        if (!/^[A-Za-z][\w.-]*$/.test(text)) return { error: 'use letters, digits, _ . and -, and start with a letter' }
        const before = replacedBy(text)
        return before === undefined ? {} : { preview: [{ text: `${text} is ${before} now`, tone: 'warning' }] }
      },
      complete: (text) => ({ from: 0, word: text, kind: [...app.state.groups.keys()] }),
      staysOpen: true,
      onSubmit: async (name) => {
        const before = replacedBy(name)
        if (before !== undefined && name !== replacing) {
          replacing = name
          throw new MusterError('usage', `${name} is ${before} now: Enter again replaces it`)
        }
        const notice = await saveGroup(name, hosts, before !== undefined)
        app.change((state) => ({ groups: new Map(state.groups).set(name, hosts) }))
        app.notice(notice)
      },
    }),
  )
}

const openNoGroup = (app: ConsoleApp, why: string): void =>
  app.openDialog(
    noPrompt({
      id: 'no-group',
      title: 'No group can be saved',
      label: 'Name:',
      help: [{ text: why, tone: 'warning' }],
    }),
  )

/** Where there is no table. */
export const openNoSearch = (app: ConsoleApp): void =>
  app.openDialog(
    noPrompt({
      id: 'no-search',
      title: 'Nothing to search here',
      label: 'Search:',
      help: [{ text: '/ filters tables. To find commands, press Esc, then :', tone: 'muted' }],
    }),
  )

/** In place of a prompt that cannot be opened: the text that is typed for it must reach no host and act as no other key. */
const noPrompt = (prompt: Pick<PromptOptions, 'id' | 'title' | 'label' | 'help'>): DialogFactory =>
  promptDialog({ ...prompt, fallback: '', submitTitle: 'close', isRemembered: () => false, onSubmit: () => {} })

const NEW_TEXT: Draft = { text: '', isComposed: true }

const isOneLine = (text: string): boolean => /^[^\r\n]*(?:\r\n?|\n)?$/.test(text)

/** Shows a text to review: `given`, or the last one that was kept. A kept text stays closed while a host asks for a password. */
export function openPaste(app: ConsoleApp, given?: Draft): void {
  const receiving = liveReceivers(app.state)
  const hosts = receiving.length === 0 ? receiverList(app.state) : receiving
  const addressees = app.addressees(hosts)
  const isAsked = (): boolean => hosts.some((host) => app.asks(host) !== undefined)
  const draft = given ?? (isAsked() ? undefined : app.drafts.at(-1)) ?? NEW_TEXT
  const others = app.drafts.filter((kept) => kept !== draft)
  /** In place of the draft. */
  const kept = (text: string): readonly Draft[] => (text === '' ? [] : [{ ...draft, text }])
  const again = (): string =>
    `${commandLabel(app.state, 'paste')}${isAsked() ? ', then Ctrl-o,' : ''} opens the text again`
  // A kept text was typed before the question, so it does not answer it.
  const isSecret = !app.drafts.includes(draft) && mayBeSecret(app, hosts, draft)
  app.openDialog(
    pasteDialog({
      ...draft,
      isSecret,
      hosts,
      isLive: (host) => addressees.hasItsShell(host) && getsKeys(app.state, host),
      isBracketed: (host) => app.isBracketed(host),
      onSend: (reviewed) => {
        const { live, skipped } = addressees.now()
        const isSent = live.some((host) => getsKeys(app.state, host))
        app.drafts = isSent || isSecret ? others : [...others, ...kept(reviewed)]
        // Who gets nothing, and why.
        app.paste(reviewed, live, skipped)
        if (isSent && !isSecret) app.noteSentText({ ...draft, text: reviewed }, live)
        const { notice } = app.state
        if (!isSent && app.drafts !== others && notice !== undefined)
          app.notice(`${again()}; ${notice.text}`, 'warning', 'receivers')
      },
      onClosed: (text) => {
        app.drafts = [...others, ...kept(text)]
        if (text !== '') app.notice(`not sent; ${again()}`)
        else if (isSecret) app.notice('not sent, and not kept: it may be a password')
      },
      others: others.length,
      onOther: (text) => {
        app.drafts = [...kept(text), ...others]
        openPaste(app, app.drafts.at(-1))
      },
    }),
  )
}

function mayBeSecret(app: ConsoleApp, hosts: readonly string[], { isComposed, text }: Draft): boolean {
  const asking = hosts.flatMap((host) => app.asks(host) ?? [])
  if (asking.includes('password')) return true
  return !isComposed && asking.length > 0 && (asking.length === hosts.length || isOneLine(text))
}

/** What can be done: the keys of the shown tab or view first, then all actions, then the keys of other tabs. */
export function openPalette(app: ConsoleApp, run: (id: ActionId) => void): void {
  const { keymap } = app.state
  const here = keysHere(app)
  const elsewhere = keysElsewhere(app)
  app.openDialog(
    listDialog({
      id: 'palette',
      title: 'Commands',
      label: 'Find:',
      submitTitle: 'run',
      readLine: (text) => app.work.readLine(text) ?? app.rayLine.read(text) ?? app.forwards.readLine(text),
      complete: completeWorkLine,
      emptyText: '',
      items: [
        ...here.items,
        ...actionSpecs.map((spec) => ({
          id: spec.id,
          label: spec.title,
          ...defined({ synonyms: SYNONYMS[spec.id] }),
          keywords: `${spec.section} ${spec.help}`,
          keyHint: keysOf(keymap, spec.id)
            .map((key) => `${app.state.leaderLabel} ${key}`)
            .join(', '),
          disabledReason: spec.disabledReason(app.state),
        })),
        ...elsewhere.map(({ item }) => item),
      ],
      onSubmit: ({ id }) => {
        const other = elsewhere.find(({ item }) => item.id === id)
        if (other !== undefined) return other.show()
        return here.keys.has(id) ? here.press(here.keys.get(id) ?? '') : run(id as ActionId)
      },
    }),
  )
}

/** The keys of the other tabs. They only show their tab: what is selected there is seen before a key changes it. */
function keysElsewhere(app: ConsoleApp): readonly { readonly item: ListItem; show(): void }[] {
  return PAGE_TABS.filter(({ id }) => id !== app.state.tab).flatMap(({ id: tab, title: tabTitle }) => {
    // Without those of one view of the tab, and those that lead back.
    const known = pageKeys[tab].filter(({ help, keys: [key] }) => !IN_VIEW.test(help) && key !== 'Esc')
    const byKey = [...Map.groupBy(known, ({ keys: [key = ''] }) => key)]
    return byKey.flatMap(([key, entries]) => {
      const entry = entries.find(({ isActive }) => isActive?.(app.state) !== false) ?? entries[0]
      if (entry?.title === undefined) return []
      const { id, title, help } = entry
      return {
        item: {
          id: `${tab} key ${id}`,
          label: title,
          detail: `in ${tabTitle}: ${detailOf(title, sentence(entry))}`,
          synonyms: `${tabTitle} ${KEY_SYNONYMS[id] ?? ''}`,
          keywords: help,
          keyHint: `${commandLabel(app.state, `tab-${tab}`)}, ${key}`,
        },
        show: () => {
          app.showTab(tab)
          app.notice(`${key}: ${firstClause(help)}`)
        },
      }
    })
  })
}

type Here = {
  readonly items: readonly ListItem[]
  /** By the id of an item. */
  readonly keys: ReadonlyMap<string, string>
  press(key: string): void
}

/** The keys that do something now on the shown tab or in the view of a run. */
function keysHere(app: ConsoleApp): Here {
  const { state, page } = app
  const { tab, panel } = state
  const listOf = <S>(title: string, table: readonly KeyEntry<S>[], now: S, press: (key: string) => void): Here => {
    const known = table.filter(({ isActive }) => isActive?.(now) !== false)
    // Moving about comes last.
    const active = [
      ...known.filter(({ title: name }) => name !== undefined),
      ...known.filter(({ title: name }) => name === undefined),
    ]
    // What the selected row does not allow is named too, so that nothing else is found by its name.
    const others = table.filter(
      ({ title: name, isActive, help }) =>
        name !== undefined &&
        !IN_VIEW.test(help) &&
        isActive?.(now) === false &&
        !known.some((one) => one.title === name),
    )
    const idOf = (entry: KeyEntry<S>) => `key ${entry.id}`
    const itemOf = (entry: KeyEntry<S>): ListItem => ({
      id: idOf(entry),
      label: entry.title ?? firstClause(sentence(entry)),
      detail: entry.title === undefined ? '' : detailOf(entry.title, sentence(entry)),
      synonyms: `${title} ${KEY_SYNONYMS[entry.id] ?? ''}`,
      keywords: entry.help,
      keyHint: entry.keys.join(' '),
    })
    return {
      items: [
        ...active.map(itemOf),
        ...others.map((entry) => ({ ...itemOf(entry), detail: '', disabledReason: 'not now, or not for this row' })),
      ],
      keys: new Map(active.map((entry) => [idOf(entry), entry.keys[0] ?? ''])),
      press,
    }
  }
  if (page !== undefined && tab !== 'shells')
    return listOf(titleOf(tab), pageKeys[tab], state, (key) => void (handleTableKey(app, key) || page.handleKey(key)))
  if (panel?.hasKeys === true) return listOf('view', panelKeys, panel, (key) => app.work.handleKey(key))
  return { items: [], keys: new Map(), press: () => {} }
}

/** Of the keys of one view of a tab: `Study: show …`. */
const IN_VIEW = /^[^.:]{1,40}: /

/** What it does, without its name at the beginning: `cancel  the running and waiting jobs of this row`. */
function detailOf(title: string, text: string): string {
  const first = firstClause(text)
  return clip(first.startsWith(`${title} `) ? first.slice(title.length + 1) : first, HELP_WIDTH)
}

/** The dot in `hosts.yaml` is not its end. */
const firstClause = (text: string): string => text.split(/[.;](?:\s|$)/)[0] ?? ''

/** Without what it is about. */
const sentence = ({ help }: KeyEntry<never>): string =>
  help.replace(IN_VIEW, '').replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase())

/** Of the sentence beside a command of the shown tab. */
const HELP_WIDTH = 44

export function openHelp(app: ConsoleApp): void {
  const { state } = app
  const sections = helpSections(state)
  app.openDialog(
    textDialog({
      id: 'help',
      title: 'Keys',
      width: 110,
      lines: (columns, text) =>
        wrapHelp(text === '' ? helpLines(sections, state.leaderLabel) : findHelp(sections, text), columns),
      isSearchable: true,
    }),
  )
}

const SETTING_UNITS: Readonly<Record<string, string>> = {
  history: 'lines per host',
  auto_close: 's after a shell ends (0: never)',
  keep_for: 'h',
}

/** The value as preferences.yaml has it, with its unit. */
function settingText(name: string, value: unknown): string {
  if (typeof value !== 'object' || value === null) return [String(value), SETTING_UNITS[name] ?? ''].join(' ').trimEnd()
  if (Object.keys(value).length === 0) return 'none'
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd()
}

export function openSettings(app: ConsoleApp): void {
  const { warnings: _, ...preferences } = app.options.preferences
  const settings = Object.entries(preferences).map(([name, value]) => ({
    text: `${padEnd(name, 14)} ${settingText(name, value)}`,
  }))
  app.openDialog(
    textDialog({
      id: 'settings',
      title: 'Settings',
      width: 90,
      lines: (columns) =>
        wrapHelp(
          [
            { text: `To change them, edit ${preferencesFile(app.ports.environment)}`, tone: 'muted' },
            { text: '' },
            ...settings,
          ],
          columns,
        ),
    }),
  )
}
