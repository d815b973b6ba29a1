/** The header and footer as data: what they say at a given width. Pure. */

import { clip, clipName, textWidth } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { oldestFactMs } from '../bring-up/bring-up-view.ts'
import type { BarPart } from '../components/bar.tsx'
import { actionSpecs, type Keymap, keysOf, specOf } from '../keys/registry.ts'
import { rayWords } from '../ray/ray-view.ts'
import { ageText } from '../rows/time-text.ts'
import { type ConsoleState, isLive, receiverList } from '../state/console-state.ts'
import { pageHints } from '../tabs/page-keys.ts'
import { TABS, titleOf } from '../tabs/tabs.ts'
import type { Theme } from '../theme/theme.ts'
import { panelName } from '../work-views/panel.ts'
import { panelHints } from '../work-views/panel-keys.ts'

export type Bars = { readonly left: readonly BarPart[]; readonly right: readonly BarPart[] }

/** Pages of the shells: which there are, and which hosts the present one shows. */
export type PageInfo = { readonly page: number; readonly pages: number; readonly shown: ReadonlySet<string> }

export function headerBars(state: ConsoleState, theme: Theme, page: PageInfo): Bars {
  const hosts = [...state.hosts.values()]
  const up = hosts.filter((host) => host.session.kind === 'ready').length
  const isAllUp = up === hosts.length
  const name: BarPart = { text: ' muster ', isBold: true, colour: theme.accent }
  const cluster: BarPart = { text: `${clip(state.cluster, 20)} ` }
  const upOfAll: BarPart = {
    text: ` ${up}/${hosts.length} up `,
    colour: isAllUp ? theme.ok : theme.danger,
    isBold: !isAllUp,
  }
  const ray = rayParts(state, theme)
  const wanted = receiverRoom(state, page) + 1
  const left =
    [[name, cluster, upOfAll, ...ray], [name, upOfAll, ...ray], [upOfAll, ...ray], [upOfAll]].find(
      (parts) => partsWidth(parts) + wanted <= state.columns,
    ) ?? []
  const room = state.columns - partsWidth(left) - 1
  // Who receives comes first: everything else at the right gives way to it, step by step.
  const rights = [
    rightParts(state, theme, page, 'full'),
    rightParts(state, theme, page, 'short'),
    rightParts(state, theme, page, 'numbers'),
    rightParts(state, theme, page, 'digits'),
    rightParts(state, theme, page, 'page'),
  ]
  const right = rights.find((parts) => partsWidth(parts) + receiverRoom(state, page) <= room) ?? []
  const parts = [...left, receiverPart(state, theme, page, room - partsWidth(right))]
  return { left: parts, right }
}

function rayParts({ ray }: ConsoleState, theme: Theme): BarPart[] {
  const words = rayWords(ray.view)
  if (words === undefined) return []
  return [{ text: ` ${words.text} `, colour: theme[words.tone], isBold: words.tone === 'danger' }]
}

const partsWidth = (parts: readonly BarPart[]): number => parts.reduce((sum, part) => sum + textWidth(part.text), 0)

/** Ever less: `numbers` names the present tab only, `digits` none, `page` has no tabs. */
type RightLength = 'full' | 'short' | 'numbers' | 'digits' | 'page'

function rightParts(state: ConsoleState, theme: Theme, page: PageInfo, length: RightLength): BarPart[] {
  const parts: BarPart[] = []
  const away = [...state.hosts.values()].filter((host) => host.hasNews && !page.shown.has(host.host)).length
  if (page.pages > 1 && state.tab === 'shells') {
    const news = away === 0 ? '' : length === 'full' ? ` · ${away} with news` : ` · ${away} new`
    const text = `${length === 'full' ? 'page ' : ''}${page.page + 1}/${page.pages}${news}`
    parts.push({ text: ` ${text} `, colour: away > 0 ? theme.warning : theme.muted })
  }
  if (length === 'page') return parts
  if (state.isFolded || (state.showsDifferences && state.equalGroups.length > 0)) {
    parts.push(differencePart(state, theme))
  }
  const oldest = oldestFactMs(state.bringUp)
  if (oldest !== undefined && length !== 'numbers' && length !== 'digits') {
    const age = ageText(state.clockMs - oldest)
    parts.push({ text: length === 'full' ? ` facts ${age} old ` : ` ${age} old `, colour: theme.muted })
  }
  for (const { id, key, title } of TABS) {
    const isCurrent = state.tab === id
    parts.push({
      text: length === 'digits' ? ` ${key}` : length === 'numbers' && !isCurrent ? ` ${key} ` : ` ${key} ${title} `,
      isBold: isCurrent,
      colour: isCurrent ? theme.barText : theme.muted,
      isFilled: isCurrent && theme.name === 'none',
    })
  }
  return parts
}

/** How many hosts are not in the largest group of equal screens. */
function differencePart({ equalGroups }: ConsoleState, theme: Theme): BarPart {
  const [majority = [], ...others] = equalGroups
  const count = others.flat().length
  if (count === 0) return { text: ' all equal ', colour: theme.ok }
  const text = majority.length === 1 ? ' all differ ' : ` ${count} ${count === 1 ? 'differs' : 'differ'} `
  return { text, colour: theme.warning }
}

type ReceiverText = { readonly start: string; readonly names: string; readonly end: string }

function receiverText(state: ConsoleState, page: PageInfo): ReceiverText {
  const receivers = receiverList(state)
  if (receivers.length === 0) return { start: ' TYPING INTO NOBODY ', names: '', end: '' }
  const live = receivers.filter((host) => {
    const known = state.hosts.get(host)
    return known !== undefined && isLive(known)
  }).length
  const unseen = receivers.filter((host) => !page.shown.has(host)).length
  const count = live === receivers.length ? `${live}` : `${live} of ${receivers.length}`
  const all = live === state.hosts.size && state.hosts.size > 1 ? 'ALL ' : ''
  const alone = receivers.length === 1 && state.hosts.size > 1 ? ' alone' : ''
  return {
    start: receivers.length === 1 ? ' TYPING INTO ' : ` TYPING INTO ${all}${count}: `,
    names: foldHostSet(receivers),
    end: `${alone}${unseen > 0 ? ` · ${unseen} not in view` : ''} `,
  }
}

/** What is left of the sentence on a terminal that is too narrow for it. */
function shortText(state: ConsoleState): string {
  const receivers = receiverList(state)
  const [only] = receivers
  if (only === undefined) return ' INTO NOBODY '
  if (receivers.length === 1) return ` INTO ${only} `
  return ` INTO ${receivers.length === state.hosts.size ? 'ALL ' : ''}${receivers.length} `
}

/** Names may be cut to this, the rest of the sentence may not. */
const NAMES_WIDTH = 14

function receiverRoom(state: ConsoleState, page: PageInfo): number {
  const elsewhere = keysElsewhere(state)
  if (elsewhere !== undefined) return textWidth(elsewhereText(state, elsewhere))
  const { start, names, end } = receiverText(state, page)
  return textWidth(start) + Math.min(NAMES_WIDTH, textWidth(names)) + textWidth(end)
}

/** Where keys go instead of the shells, if they do. */
function keysElsewhere({ panel, tab }: ConsoleState): string | undefined {
  if (tab !== 'shells') return titleOf(tab)
  return panel?.hasKeys ? panelName(panel) : undefined
}

/** That no host receives keys now, and who would. */
function elsewhereText(state: ConsoleState, where: string): string {
  const receivers = receiverList(state)
  const whom = receivers.length === 0 ? 'NOBODY' : foldHostSet(receivers)
  const article = state.tab === 'shells' || state.tab === 'log' ? 'THE ' : ''
  return ` KEYS GO TO ${article}${where.toUpperCase()}, not to ${clip(whom, NAMES_WIDTH)} `
}

/** Who receives: the one thing on this screen that must not be overlooked. */
function receiverPart(state: ConsoleState, theme: Theme, page: PageInfo, room: number): BarPart {
  const elsewhere = keysElsewhere(state)
  if (elsewhere !== undefined) {
    const text = clip(elsewhereText(state, elsewhere), room)
    return { text, isBold: true, isFilled: true, colour: theme.bar, fill: theme.accent }
  }
  const { start, names, end } = receiverText(state, page)
  const isShort = textWidth(start) + textWidth(end) + Math.min(NAMES_WIDTH, textWidth(names)) > room
  const text = isShort
    ? clip(shortText(state), room + 1)
    : clip(start + clip(names, Math.max(4, room - textWidth(start) - textWidth(end))) + end, room)
  if (state.receivers.size === 0) return { text, colour: theme.muted, isBold: true }
  const isDanger = [...state.receivers].some((host) => !page.shown.has(host))
  return {
    text,
    isBold: true,
    isFilled: true,
    colour: isDanger ? theme.dangerText : theme.receivingText,
    fill: isDanger ? theme.danger : theme.receiving,
  }
}

const key = (label: string, theme: Theme): BarPart => ({ text: ` ${label}`, isBold: true, colour: theme.accent })
const does = (text: string, theme: Theme): BarPart => ({ text: ` ${text} `, colour: theme.barText })

const SHORT: Readonly<Record<string, string>> = {
  'receive-toggle': 'toggle',
  'receive-all': 'all',
  'receive-none': 'none',
  'receive-expression': 'host set',
  'receive-solo': 'alone',
  'receive-group': 'group',
  fold: 'fold',
  differences: 'differ',
  scroll: 'scroll',
  reconnect: 'reconnect',
  palette: 'palette',
  run: 'run',
}

/** As many hints as fit, whole ones only. */
function fitting(pairs: readonly (readonly [string, string])[], theme: Theme, room: number): BarPart[] {
  const parts: BarPart[] = []
  let width = 0
  for (const [label, text] of pairs) {
    const next = textWidth(label) + textWidth(text) + 3
    if (width + next > room) break
    width += next
    parts.push(key(label, theme), does(text, theme))
  }
  return parts
}

/** Of a host's name in the footer. */
const NAME_WIDTH = 24

export function footerBars(state: ConsoleState, theme: Theme, keymap: Keymap): Bars {
  const { mode, notice } = state
  const room = state.columns - 1
  const label = (text: string): BarPart => ({
    text: ` ${text} `,
    isBold: true,
    isFilled: true,
    colour: theme.bar,
    fill: theme.accent,
  })
  switch (mode.kind) {
    case 'leader': {
      const specs = actionSpecs.filter((spec) => 'footer' in spec).sort((a, b) => a.footer - b.footer)
      const pairs = specs.flatMap((spec) => {
        const [first] = keysOf(keymap, spec.id)
        return first === undefined || specOf(spec.id).disabledReason?.(state) !== undefined
          ? []
          : [[first, SHORT[spec.id] ?? spec.title] as const]
      })
      return { left: [label('COMMAND'), ...fitting([['←↓↑→', 'move'], ...pairs], theme, room - 9)], right: [] }
    }
    case 'select':
      return {
        left: [
          label('SELECT'),
          ...fitting(
            [
              ['←↓↑→', 'move'],
              ['Space', 'toggle'],
              ['Esc', 'done'],
              ['any other key', 'types'],
            ],
            theme,
            room - 8,
          ),
        ],
        right: [],
      }
    case 'scroll': {
      const host = clipName(mode.host, NAME_WIDTH)
      const hits =
        mode.needle === ''
          ? ''
          : mode.hits === 0
            ? `“${clip(mode.needle, 20)}” not found`
            : `“${clip(mode.needle, 20)}” ${mode.hit + 1} of ${mode.hits}`
      return {
        left: [
          label(`SCROLL ${host}`),
          ...fitting(
            [
              ['↑↓ PgUp PgDn', 'scroll'],
              ['Esc', 'back'],
              ['/', 'search'],
              ['n N', 'hits'],
            ],
            theme,
            room - 10 - textWidth(host) - textWidth(hits),
          ),
        ],
        right:
          hits === ''
            ? []
            : [{ text: ` ${hits} `, colour: mode.hits === 0 ? theme.warning : theme.barText, isBold: true }],
      }
    }
    default: {
      if (notice) {
        const colour =
          notice.tone === 'error' ? theme.danger : notice.tone === 'warning' ? theme.warning : theme.barText
        return {
          left: [{ text: ` ${clip(notice.text, room - 2)} `, colour, isBold: notice.tone !== 'info' }],
          right: [],
        }
      }
      // All keys are the dialog's.
      if (mode.kind === 'dialog') return { left: [], right: [] }
      const { panel } = state
      const elsewhere = keysElsewhere(state)
      if (elsewhere !== undefined) {
        const name = elsewhere.toUpperCase()
        const hints = state.tab === 'shells' && panel ? panelHints(panel) : pageHints(state)
        return { left: [label(name), ...fitting(hints, theme, room - textWidth(name) - 2)], right: [] }
      }
      const focus = state.focus === undefined ? '' : `${clipName(state.focus, NAME_WIDTH)} `
      return {
        left: fitting(
          [
            [state.leaderLabel, 'command'],
            [`${state.leaderLabel} ?`, 'help'],
            [`${state.leaderLabel} q`, 'quit'],
            ...(state.panel ? [[`${state.leaderLabel} o`, panelName(state.panel)] as const] : []),
          ],
          theme,
          room - textWidth(focus),
        ),
        right: [{ text: focus, colour: theme.muted }],
      }
    }
  }
}
