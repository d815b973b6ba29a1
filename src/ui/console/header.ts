/** The header and footer as data, at a given width. Pure. */

import { counted } from '../../base/counted.ts'
import { clip, clipName, textWidth } from '../../base/text-width.ts'
import { timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { oldestFactMs } from '../bring-up/bring-up-view.ts'
import type { BarPart } from '../components/layout-dialog.ts'
import { type Rect, type Theme, toneColour } from '../compositor/scene.ts'
import { type ActionId, commandLabel, disabledReasonOf, keysOf, LEADER_HINTS } from '../keys/registry.ts'
import { rayWords } from '../ray/ray-view.ts'
import {
  areReceivers,
  type ConsoleState,
  divergedReceivers,
  focusedHosts,
  isLive,
  lateReceivers,
  liveReceivers,
  type Mode,
  type Notice,
  receiverList,
  receiversBeforeDifferent,
  TABS,
  titleOf,
} from '../state/console-state.ts'
import { isFileTab, shownTitle } from '../state/files.ts'
import { pageHints } from '../tabs/page-keys.ts'
import { type Panel, panelHints, panelName } from '../work-views/panel.ts'

export type Bars = { readonly left: readonly BarPart[]; readonly right: readonly BarPart[] }

/** Pages of the shells, and the hosts that the current page shows. */
export type PageInfo = { readonly page: number; readonly pages: number; readonly shown: ReadonlySet<string> }

export function headerBars(state: ConsoleState, theme: Theme, page: PageInfo): Bars {
  const hosts = [...state.hosts.values()]
  const up = hosts.filter(isLive).length
  const isAllUp = up === hosts.length
  const name: BarPart = { text: ' muster ', isBold: true, colour: theme.accent }
  const cluster: BarPart = { text: `${clip(state.cluster, 20)} ` }
  const upOfAll: BarPart = {
    text: ` ${up}/${hosts.length} up `,
    colour: isAllUp ? theme.ok : theme.danger,
    isBold: !isAllUp,
  }
  const ray = rayParts(state, theme)
  const receiversWidth = receiverRoom(state, page)
  const asideRoom = state.columns - receiversWidth - textWidth(upOfAll.text)
  const tabWidth = partsWidth(rightParts(state, theme, page, 'alone'))
  const aside = asideText(state, [asideRoom - tabWidth, asideRoom])
  const reserved = receiversWidth + textWidth(aside)
  const wanted = reserved + 1
  const lefts = [
    [name, cluster, upOfAll, ...ray],
    [name, upOfAll, ...ray],
    [upOfAll, ...ray],
  ]
  const leftWith = (width: number) => lefts.find((parts) => partsWidth(parts) + wanted + width <= state.columns)
  const leftBeside = (length: RightLength) => leftWith(partsWidth(rightParts(state, theme, page, length)))
  // The names of the program and the cluster give way to the name of the tab.
  const left =
    leftBeside('numbers') ??
    leftBeside('signs') ??
    leftBeside('name') ??
    leftBeside('alone') ??
    leftWith(0) ??
    (partsWidth([upOfAll]) + wanted <= state.columns ? [upOfAll] : [])
  const room = state.columns - partsWidth(left) - 1
  // The receivers come first: everything to the right of them gets shorter, step by step.
  const right =
    RIGHT_LENGTHS.map((length) => rightParts(state, theme, page, length)).find(
      (parts) => partsWidth(parts) + reserved <= room,
    ) ?? []
  const receivers = receiverPart(state, theme, page, room - partsWidth(right) - textWidth(aside))
  const parts = aside === '' ? [] : [{ text: aside, colour: theme.warning, isBold: true }]
  return { left: [...left, receivers, ...parts], right }
}

/** A waiting question, or the receivers that differ; empty if there is neither. The longest text that fits the first of `rooms` where one does. */
function asideText(state: ConsoleState, rooms: readonly number[]): string {
  const longest = (...texts: string[]) => rooms.flatMap((room) => texts.find((each) => textWidth(each) < room) ?? [])[0]
  const { tab, hasWaitingQuestion } = state
  // The next question waits until the open dialog is closed.
  if (hasWaitingQuestion && keysElsewhere(state) === undefined)
    return longest(' a question waits: stop typing ', ' question waits ') ?? ' ? '
  if (tab !== 'shells') return ''
  const late = lateReceivers(state)
  const parts = [lateTexts(state, late), differTexts(state, late)].filter((texts) => texts.length > 0)
  if (parts.length === 0) return ''
  const [first = [], second = ['']] = parts
  // Both are cut before one is cut twice.
  const together = first.flatMap((text, cut) =>
    second.map((other, also) => ({ text: `${text}${other}`, cuts: cut + also })),
  )
  return longest(...together.toSorted((a, b) => a.cuts - b.cuts).map(({ text }) => text)) ?? ' ≠ '
}

/** New shells that get no keys yet, the longer text first; none if there are none. */
function lateTexts({ hosts }: ConsoleState, late: readonly string[]): readonly string[] {
  if (late.length === 0) return []
  const names = clip(foldHostSet(late), NAMES_WIDTH)
  const why = late.every((host) => hosts.get(host)?.hasMissed) ? 'missed input' : 'new shell'
  return [` ${why}, no keys yet: ${names} `, ` no keys yet: ${names} `, ` not ${names} `]
}

/** What differs among the receivers that get keys. */
function differTexts(state: ConsoleState, late: readonly string[]): readonly string[] {
  const receiving = divergedReceivers(state).filter((host) => !late.includes(host))
  if (receiving.length === 0) return []
  const names = clip(foldHostSet(receiving), NAMES_WIDTH)
  if (receiving.every((host) => !isUp(state, host)))
    return [...downWords(state, receiving).map((word) => ` ${word}: ${names} `), ` ≠ ${names} `]
  const count = `${receiving.length} of ${state.receivers.size - late.length}`
  return [` ${count} ${receiving.length === 1 ? 'differs' : 'differ'}: ${names} `, ` ≠ ${names} `, ` ≠ ${count} `]
}

function isUp({ hosts }: ConsoleState, name: string): boolean {
  const host = hosts.get(name)
  return host !== undefined && isLive(host)
}

/** What hosts without a shell have in common; the longer one first. */
function downWords({ hosts }: ConsoleState, names: readonly string[]): readonly string[] {
  const areConnected = names.map((name) => hosts.get(name)?.session.kind === 'ready')
  if (!areConnected.includes(true)) return ['not connected', 'lost']
  return areConnected.includes(false) ? ['not up'] : ['shell ended', 'ended']
}

function rayParts(state: ConsoleState, theme: Theme): BarPart[] {
  const words = rayWords(state.ray.view)
  if (words === undefined) return []
  const title = shownTitle(state)
  const text = title === undefined ? words.text : `${clip(title, TITLE_WIDTH)}: ${words.text}`
  return [{ text: ` ${text} `, colour: theme[words.tone], isBold: words.tone === 'danger' }]
}

const partsWidth = (parts: readonly BarPart[]): number => parts.reduce((sum, part) => sum + textWidth(part.text), 0)

/**
 * From long to short: `short` does not say when bring-up was checked, `numbers` names only the current tab, `signs` says with a sign how many
 * screens differ, `digits` has fewer blanks, `name` shows only the current tab, `alone` counts neither new output nor screens that differ, `page`
 * has no tabs.
 */
const RIGHT_LENGTHS = ['full', 'short', 'numbers', 'signs', 'digits', 'name', 'alone', 'page'] as const
type RightLength = (typeof RIGHT_LENGTHS)[number]

function rightParts(state: ConsoleState, theme: Theme, page: PageInfo, length: RightLength): BarPart[] {
  const parts: BarPart[] = []
  const away = [...state.hosts.values()].filter((host) => host.hasNews && !page.shown.has(host.host)).length
  if (page.pages > 1 && state.tab === 'shells') {
    const news =
      away === 0 || length === 'alone' ? '' : length === 'full' ? ` · ${away} with new output` : ` · ${away} new`
    const text = `${length === 'full' ? 'page ' : ''}${page.page + 1}/${page.pages}${news}`
    parts.push({ text: ` ${text} `, colour: away > 0 ? theme.warning : theme.muted, action: 'page-next' })
  }
  if (length === 'page') return parts
  if (length !== 'alone' && (state.isFolded || (state.showsDifferences && state.equalGroups.length > 0))) {
    parts.push(differencePart(state, theme, RIGHT_LENGTHS.indexOf(length) >= RIGHT_LENGTHS.indexOf('signs')))
  }
  const oldest = oldestFactMs(state.bringUp)
  if (oldest !== undefined && length === 'full')
    parts.push({ text: ` bring-up checked ${timeText(oldest, state.clockMs)} `, colour: theme.muted })
  for (const { id, key, title } of TABS) {
    const isCurrent = state.tab === id
    if ((length === 'name' || length === 'alone') && !isCurrent) continue
    const isNamed = isCurrent || length === 'full' || length === 'short'
    parts.push({
      text: `${isNamed ? ` ${key} ${title}` : ` ${key}`}${length === 'digits' ? '' : ' '}`,
      action: `tab-${id}`,
      isBold: isCurrent,
      colour: isCurrent ? theme.barText : theme.muted,
      isFilled: isCurrent && theme.name === 'none',
    })
  }
  return parts
}

/** How many hosts are not in the largest group of equal screens, with words or only with a sign. */
function differencePart({ equalGroups, isFolded }: ConsoleState, theme: Theme, isSign: boolean): BarPart {
  const [majority = [], ...others] = equalGroups
  const count = others.flat().length
  const how = isFolded ? 'folded: ' : ''
  if (count === 0) return { text: isSign ? ' equal ' : ` ${how}screens equal `, colour: theme.ok }
  if (isSign) return { text: ` ≠ ${majority.length === 1 ? 'all' : count} `, colour: theme.warning }
  const who =
    majority.length === 1 ? 'all screens differ' : count === 1 ? '1 screen differs' : `${count} screens differ`
  return { text: ` ${how}${who} `, colour: theme.warning }
}

const untilText = ({ lostInput }: ConsoleState): string => (lostInput === 'line' ? 'until Enter ' : '')

function receiverText(state: ConsoleState, page: PageInfo) {
  const receivers = receiverList(state)
  if (receivers.length === 0) return { start: ' TYPING INTO NO HOST ', names: '', end: '' }
  const live = liveReceivers(state)
  if (live.length === 0)
    return lateReceivers(state).length > 0
      ? {
          start: ` TYPING INTO NO HOST ${untilText(state)}`,
          names: '',
          end: '',
        }
      : {
          start: ' TYPING INTO NO HOST: ',
          names: foldHostSet(receivers),
          end: ` ${receivers.length === 1 ? 'is' : 'are'} not up `,
        }
  const unseen = live.filter((host) => !page.shown.has(host)).length
  const count = live.length === receivers.length ? `${live.length}` : `${live.length} of ${receivers.length}`
  const all = live.length === state.hosts.size && state.hosts.size > 1 ? 'ALL ' : ''
  const alone = receivers.length === 1 && state.hosts.size > 1 ? ' alone' : ''
  return {
    start: receivers.length === 1 ? ' TYPING INTO ' : ` TYPING INTO ${all}${count}: `,
    names: foldHostSet(live),
    end: `${alone}${unseen > 0 ? ` · ${unseen} out of view` : ''} `,
  }
}

/** For a terminal that is too narrow for the whole sentence, whose end is `end`. */
function shortText(state: ConsoleState, end: string, room: number): string {
  const receivers = liveReceivers(state)
  const [only] = receivers
  if (only === undefined) return clip(' INTO NO HOST ', room + 1)
  const of = receivers.length === state.receivers.size ? '' : ` of ${state.receivers.size}`
  const all = receivers.length === state.hosts.size ? 'ALL ' : ''
  const who = state.receivers.size === 1 ? only : `${all}${receivers.length}${of}`
  const texts = [` TYPING INTO ${who}${end}`, ` INTO ${who}${end}`, ` INTO ${who} `]
  return texts.find((text) => textWidth(text) <= room) ?? clip(` INTO ${who} `, room + 1)
}

/** Names may be cut to this width; the rest of the sentence is never cut. */
const NAMES_WIDTH = 14

function receiverRoom(state: ConsoleState, page: PageInfo): number {
  const elsewhere = notTyping(state)
  if (elsewhere !== undefined) return textWidth(elsewhereText(elsewhere))
  const { start, names, end } = receiverText(state, page)
  return textWidth(start) + Math.min(NAMES_WIDTH, textWidth(names)) + textWidth(end)
}

/** The header's name for where keys go; undefined: to the receivers. */
export function keysElsewhere(state: ConsoleState): string | undefined {
  const { mode, panel, tab } = state
  if (mode.kind === 'dialog') return mode.dialog.id.replaceAll('-', ' ').toUpperCase()
  if (mode.kind === 'leader') return 'COMMAND'
  if (mode.kind === 'scroll') return `SCROLL ${clipName(mode.host, NAME_WIDTH)}`
  if (tab !== 'shells') {
    const file = isFileTab(tab) ? shownTitle(state) : undefined
    return titleOf(tab).toUpperCase() + (file === undefined ? '' : ` of ${clip(file, TITLE_WIDTH)}`)
  }
  return panel?.hasKeys ? panelName(panel).toUpperCase() : undefined
}

const notTyping = (state: ConsoleState): string | undefined => keysElsewhere(state) ?? (state.held && HELD[state.held])

const HELD = { moment: 'ONE MOMENT', line: 'UNTIL ENTER' } as const

const elsewhereText = (where: string): string => ` ${where} · hosts get no keys `

/** The receivers: the one thing on this screen that must not be overlooked. */
function receiverPart(state: ConsoleState, theme: Theme, page: PageInfo, room: number): BarPart {
  const elsewhere = notTyping(state)
  if (elsewhere !== undefined) {
    const text = clip(elsewhereText(elsewhere), room)
    return { text, isBold: true, isFilled: true, colour: theme.bar, fill: theme.accent }
  }
  const { start, names, end } = receiverText(state, page)
  const isShort = textWidth(start) + textWidth(end) + Math.min(NAMES_WIDTH, textWidth(names)) > room
  const text = isShort
    ? shortText(state, end, room)
    : clip(start + clip(names, Math.max(4, room - textWidth(start) - textWidth(end))) + end, room)
  if (liveReceivers(state).length === 0) return { text, colour: theme.muted, isBold: true }
  const isDanger = [...state.receivers].some((host) => !page.shown.has(host))
  return {
    text,
    isBold: true,
    isFilled: true,
    colour: isDanger ? theme.dangerText : theme.receivingText,
    fill: isDanger ? theme.danger : theme.receiving,
  }
}

type Hints = readonly (readonly [key: string, does: string])[]

const SELECT_HINTS: Hints = [
  ['←↓↑→', 'move'],
  ['Space', 'toggle'],
  ['Esc', 'done'],
  ['any other key', 'type'],
]
const scrollHints = ({ needle, hits }: Extract<Mode, { kind: 'scroll' }>): Hints => [
  ['↑↓ PgUp PgDn', 'scroll'],
  ['Esc', 'back'],
  ['/', 'search'],
  ['y', 'copy'],
  ['v', 'mark lines'],
  ...(needle === '' || hits === 0 ? [] : [['n N', 'previous, next match'] as const]),
]

const FILTER_HINTS: Hints = [
  ['Enter', 'keep'],
  ['Esc', 'clear'],
  ['↑↓', 'select'],
  ['!word', 'without'],
  ['column:word', 'in one column'],
]

/** As many hints as fit, whole ones only. */
function fitting(pairs: Hints, theme: Theme, room: number): BarPart[] {
  const parts: BarPart[] = []
  let width = 0
  for (const [label, text] of pairs) {
    const next = textWidth(label) + textWidth(text) + 3
    if (width + next > room) break
    width += next
    parts.push(
      { text: ` ${label}`, isBold: true, colour: theme.accent, press: label },
      { text: ` ${text} `, colour: theme.barText, press: label },
    )
  }
  return parts
}

/** Of the title of a hosts.yaml. */
const TITLE_WIDTH = 16

/** Of a host's name in the footer. */
const NAME_WIDTH = 24

export function footerBars(state: ConsoleState, theme: Theme): Bars {
  const { mode, notice, panel, leaderLabel } = state
  const room = state.columns - 1
  const labelled = (text: string, hints: Hints, right: readonly BarPart[] = []): Bars => {
    const label = { text: ` ${text} `, isBold: true, isFilled: true, colour: theme.bar, fill: theme.accent }
    const keyRoom = room - textWidth(text) - 2
    const beside = fitting(hints, theme, keyRoom - partsWidth(right))
    // A key says more than what was found.
    return beside.length > 0 || right.length === 0
      ? { left: [label, ...beside], right }
      : { left: [label, ...fitting(hints, theme, keyRoom)], right: [] }
  }
  switch (mode.kind) {
    case 'leader':
      return labelled('COMMAND', leaderHints(state))
    case 'select':
      return labelled('SELECT', SELECT_HINTS)
    case 'filter':
      return labelled('FILTER', FILTER_HINTS)
    case 'scroll':
      return labelled(
        `SCROLL ${clipName(mode.host, NAME_WIDTH)}`,
        scrollHints(mode),
        matchParts(mode.needle, mode, theme),
      )
    // A dialog shows its own keys.
    case 'dialog':
      return { left: notice ? [noticePart(notice, theme, room)] : [], right: [] }
    default: {
      const elsewhere = keysElsewhere(state)
      if (elsewhere !== undefined)
        return state.tab === 'shells' && panel
          ? labelled(elsewhere, panelHints(panel), panelMatches(panel, theme))
          : labelled(elsewhere, pageHints(state))
      const focus = state.focus === undefined ? '' : `${clipName(state.focus, NAME_WIDTH)} `
      const hints: Hints = [
        [leaderLabel, 'command'],
        ...commandHint(state, 'help', 'help'),
        ...narrowHint(state),
        ...(panel ? commandHint(state, 'panel', panelName(panel)) : []),
        ...commandHint(state, 'quit', 'quit'),
      ]
      return { left: fitting(hints, theme, room - textWidth(focus)), right: [{ text: focus, colour: theme.muted }] }
    }
  }
}

/** None if another action has its key. */
const commandHint = (state: ConsoleState, id: ActionId, does: string): Hints =>
  keysOf(state.keymap, id).length === 0 ? [] : [[commandLabel(state, id), does]]

/** How to type only into hosts that differ or into one host for a moment, or how to go back. */
function narrowHint(state: ConsoleState): Hints {
  const hint = (does: string): Hints => commandHint(state, 'receive-different', does)
  const before = receiversBeforeDifferent(state)
  const late = lateReceivers(state)
  const isMute = late.length > 0 && liveReceivers(state).length === 0
  if (before !== undefined && state.receivers.size > 1 && !isMute) return hint(backTo(state, before))
  if (late.length > 0) {
    const letIn = `${isMute ? 'type into' : 'also'} ${clip(foldHostSet(late), NAMES_WIDTH)}`
    const isOther = divergedReceivers(state).some((host) => !late.includes(host) && isUp(state, host))
    return [...commandHint(state, 'receive-all', letIn), ...(isOther ? hint('hosts that differ') : [])]
  }
  const diverged = divergedReceivers(state)
  // Nothing can be typed into a host without a shell.
  const different = diverged.filter((host) => isUp(state, host))
  if (different.length === 0)
    return diverged.length === 0 ? soloHint(state) : commandHint(state, 'reconnect-all', 'reconnect')
  const areByScreen = state.showsDifferences || state.isFolded
  return hint(areByScreen ? 'hosts that differ' : `only ${clip(foldHostSet(different), NAMES_WIDTH)}`)
}

/** Without the new shells that would get no keys there. */
function backTo({ hosts }: ConsoleState, before: ReadonlySet<string>): string {
  const late = [...before].filter((name) => hosts.get(name)?.isLate)
  return `back to ${counted(late.length < before.size ? before.size - late.length : before.size, 'host')}`
}

function soloHint(state: ConsoleState): Hints {
  const { receivers, receiversBeforeSolo: before } = state
  const hosts = focusedHosts(state)
  const [first] = hosts
  if (first === undefined || state.hosts.size < 2) return []
  const hint = (does: string): Hints => commandHint(state, 'receive-solo', does)
  // The host that received alone may be gone.
  if (before !== undefined && (receivers.size === 0 || areReceivers(state, hosts))) return hint(backTo(state, before))
  if (before === undefined && (receivers.size <= 1 || areReceivers(state, hosts))) return []
  return hint(`only ${hosts.length === 1 ? clipName(first, 12) : clip(foldHostSet(hosts), NAMES_WIDTH)}`)
}

const IN_LOG = ' (Log)'

function noticePart({ text, tone, isInLog = false }: Notice, theme: Theme, room: number): BarPart {
  const cut = clip(text, room - 2)
  const shown = cut === text || !isInLog ? cut : `${clip(text, room - 2 - IN_LOG.length)}${IN_LOG}`
  return { text: ` ${shown} `, colour: toneColour(theme, tone), isBold: tone !== 'info' }
}

/** Columns beside a notice. */
const BESIDE_NOTICE = 4

/** Columns for the text of a notice. */
export const noticeColumns = ({ columns }: Pick<ConsoleState, 'columns'>): number => columns - BESIDE_NOTICE - 2

/** The notice and its place, on the lower frame of the panes, where it covers no key. A dialog has it in the footer. */
export function noticeBar(
  { notice, mode, columns, rows }: ConsoleState,
  theme: Theme,
): { readonly part: BarPart; readonly rect: Rect } | undefined {
  if (notice === undefined || mode.kind === 'leader' || mode.kind === 'dialog' || rows < 4) return undefined
  const part = noticePart(notice, theme, columns - BESIDE_NOTICE)
  return { part, rect: { column: 2, row: rows - 2, width: textWidth(part.text), height: 1 } }
}

const leaderHints = (state: ConsoleState): Hints => [
  ['←↓↑→', 'move'],
  ...LEADER_HINTS.flatMap(([id, title]) => {
    const [first] = keysOf(state.keymap, id)
    return first === undefined || disabledReasonOf(id, state) !== undefined ? [] : [[first, title] as const]
  }),
]

function panelMatches({ view }: Panel, theme: Theme): BarPart[] {
  const { needle = '', matches, opened } = view.kind === 'run' ? view : {}
  return matches === undefined || opened === undefined
    ? []
    : matchParts(needle, { hit: matches.at - 1, hits: matches.of }, theme)
}

type Matches = Pick<Extract<Mode, { kind: 'scroll' }>, 'hit' | 'hits'>

function matchParts(needle: string, { hit, hits }: Matches, theme: Theme): BarPart[] {
  if (needle === '') return []
  const text = ` “${clip(needle, 20)}” ${hits === 0 ? 'not found' : `${hit + 1} of ${hits}`} `
  return [{ text, colour: hits === 0 ? theme.warning : theme.barText, isBold: true }]
}
