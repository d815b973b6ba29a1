/** The present arrangement as a scene, and how one pane looks: frame, title, badges, and its message without a live shell. */
import { messageOf } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { clip, clipName, partsWidth, textWidth, wrapText } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { BOLD, type CellGrid } from '../../terminal/cells.ts'
import type { Screen } from '../../terminal/headless-screen.ts'
import { dialogRect } from '../components/layout-dialog.ts'
import {
  type FrameLines,
  labelStyle,
  mutedStyle,
  type PaneView,
  type Rect,
  type Scene,
  type Span,
  type Style,
  styleOf,
  type Theme,
  themes,
} from '../compositor/scene.ts'
import { keyGrid } from '../keys/key-grid.ts'
import { commandLabel } from '../keys/registry.ts'
import { type ConsoleState, type HostState, isLive, isSolo, isTrouble, type Page } from '../state/console-state.ts'
import { areaOf, layoutPanel } from '../work-views/panel.ts'
import type { ConsoleApp } from './console-app.ts'
import { shellEnd } from './fleet-reducer.ts'
import { noticeBar } from './header.ts'
import { loginWords } from './login-output.ts'

export type PaneInput = {
  readonly state: ConsoleState
  readonly theme: Theme
  /** The hosts of this pane; it shows the screen of the first. */
  readonly hosts: readonly string[]
  readonly rect: Rect
  readonly screen: Screen | undefined
  readonly highlights: PaneView['highlights']
}

export function paneView({ state, theme, hosts, rect, screen, highlights }: PaneInput): PaneView {
  const [lead = ''] = hosts
  const host = state.hosts.get(lead)
  const receiving = hosts.filter((name) => {
    const known = state.hosts.get(name)
    return known !== undefined && state.receivers.has(name) && !known.isLate
  }).length
  const isFocused = state.focus !== undefined && hosts.includes(state.focus)
  const isReceiving = receiving > 0
  const hasTrouble = host !== undefined && isTrouble(host)
  const colour = hasTrouble ? theme.danger : isReceiving ? theme.receiving : isFocused ? theme.accent : theme.frame
  const badges = host ? [...soloBadge(state, theme, hosts, rect.width), ...badgeSpans(state, theme, host, screen)] : []
  const room = rect.width - 4 - partsWidth(badges)
  return {
    host: lead,
    rect,
    screen,
    lines: frameLines(hasTrouble, isReceiving, isFocused),
    frameStyle: styleOf(colour, undefined, isFocused ? BOLD : 0),
    title: titleSpans(state, theme, hosts, { isFocused, receiving, hasTrouble, room }),
    badges,
    notice: host && !isLive(host) ? fitNotice(noticeOf(state, theme, host, rect.width - 2), rect.height - 2) : [],
    isDimmed: !isReceiving,
    highlights,
  }
}

/** The lines show the state too, not only the colour. */
function frameLines(hasTrouble: boolean, isReceiving: boolean, isFocused: boolean): FrameLines {
  if (hasTrouble) return 'dashed'
  if (isReceiving) return isFocused ? 'double' : 'heavy'
  return 'light'
}

type TitleFacts = {
  readonly isFocused: boolean
  readonly receiving: number
  readonly hasTrouble: boolean
  /** Columns. */
  readonly room: number
}

function titleSpans(state: ConsoleState, theme: Theme, hosts: readonly string[], facts: TitleFacts): Span[] {
  const mark = facts.receiving === 0 ? '○' : facts.receiving === hosts.length ? '●' : '◐'
  const count = hosts.length === 1 ? '' : ` (${hosts.length} folded)`
  const room = Math.max(4, facts.room - textWidth(` ${mark} ${count} `))
  const name = (count === '' ? clipName(hosts[0] ?? '', room) : clip(foldHostSet(hosts), room)) + count
  const colour = facts.hasTrouble ? theme.danger : facts.receiving > 0 ? theme.receiving : theme.muted
  const style: Style = facts.isFocused
    ? labelStyle(
        theme,
        facts.hasTrouble ? theme.dangerText : theme.receivingText,
        facts.receiving > 0 || facts.hasTrouble ? colour : theme.accent,
      )
    : styleOf(colour, undefined, BOLD)
  const host = state.hosts.get(hosts[0] ?? '')
  const address = hosts.length === 1 && host ? whereOf(host) : ''
  const where = textWidth(` ${mark} ${name} ${address}`) <= facts.room ? address : ''
  return [
    { text: ` ${mark} ${name} `, style },
    { text: where, style: mutedStyle(theme) },
  ]
}

/** The address of the host, if its name does not say it. */
function whereOf({ host, address, port }: HostState): string {
  const text = port === 22 || address === '' ? address : `${address}:${port}`
  return text === '' || text === host ? '' : ` ${clip(text, 30)} `
}

/** How long a bell is shown. */
export const BELL_MS = 2000

/** Narrower panes have no room for it beside the name. */
const MIN_COLUMNS_FOR_LOGIN = 44

/** From this width on the key that goes back is shown, too. */
const MIN_COLUMNS_FOR_KEY = 36

/** A pane that gets the keys alone for a moment, and the way back. Hosts that are folded into one pane are not alone. */
function soloBadge(state: ConsoleState, theme: Theme, hosts: readonly string[], columns: number): Span[] {
  if (!isSolo(state, hosts)) return []
  const press = commandLabel(state, 'receive-solo')
  const style = labelStyle(theme, theme.receivingText, theme.receiving)
  // Beside another focus the key is for that host.
  const isBack = state.focus !== undefined && hosts.includes(state.focus)
  const words = [
    ...(hosts.length === 1 ? ['alone'] : []),
    ...(isBack && columns >= MIN_COLUMNS_FOR_KEY ? [`${press} back`] : []),
  ]
  return words.length === 0 ? [] : [{ text: ` ${words.join(' · ')} `, style, ...(isBack ? { press } : {}) }]
}

function badgeSpans(state: ConsoleState, theme: Theme, host: HostState, screen: Screen | undefined): Span[] {
  const badges: Span[] = []
  const warning = styleOf(theme.warning, undefined, BOLD)
  if (screen && screen.viewOffset > 0)
    badges.push({ text: ` ↑${screen.viewOffset} `, style: styleOf(theme.accent, undefined, BOLD) })
  if (host.loginLines > 0 && screen && screen.columns >= MIN_COLUMNS_FOR_LOGIN)
    badges.push({ text: ` ${loginWords(host.loginLines)} `, style: mutedStyle(theme) })
  if (host.isDifferent) badges.push({ text: ' ≠ ', style: warning })
  if (host.queuedBytes > 0) badges.push({ text: ` behind ${formatBytes(host.queuedBytes)} `, style: warning })
  if (host.bellAtMs !== undefined && state.clockMs - host.bellAtMs < BELL_MS)
    badges.push({ text: ' ♪ ', style: warning })
  if (host.isRecording) badges.push({ text: ' ⏺ REC ', style: styleOf(theme.danger, undefined, BOLD) })
  return badges
}

const seconds = (ms: number): string => `${Math.max(0, Math.ceil(ms / 1000))} s`

type Notice = {
  readonly cause?: readonly Span[][]
  readonly advice?: (rows: number) => readonly Span[][]
  /** What goes on, or which key helps. */
  readonly end: readonly Span[][]
}

/**
 * A message that is taller than its pane: of the cause the beginning stays, since it begins with what is wrong, and of the
 * advice the end, where its command is.
 */
function fitNotice({ cause = [], advice = () => [], end }: Notice, rows: number): readonly Span[][] {
  const room = Math.max(0, rows - end.length)
  const adviceRows = Math.max(Math.floor(room / 3), room - cause.length)
  const advised = advice(adviceRows)
  return [...cutEnd(cause, room - advised.length), ...advised, ...end].slice(0, Math.max(0, rows))
}

function cutEnd(lines: readonly Span[][], rows: number): readonly Span[][] {
  if (lines.length <= rows || rows < 1) return lines.slice(0, rows)
  const last = (lines[rows - 1] ?? []).map((span) => ({ ...span, text: `${span.text}…` }))
  return [...lines.slice(0, rows - 1), last]
}

/** The end of a text, from a word on, in at most so many rows. */
function endOf(text: string, rows: number, columns: number): readonly string[] {
  const words = text.split(' ')
  for (let from = 0; from < words.length; from += 1) {
    const lines = wrapText((from === 0 ? '' : '…') + words.slice(from).join(' '), columns)
    if (lines.length <= rows) return lines
  }
  return []
}

/** Why there is no live shell, and which key to press. */
function noticeOf(state: ConsoleState, theme: Theme, host: HostState, columns: number): Notice {
  // A blank on the left, and room for the mark of a cut on the right.
  const width = Math.max(8, columns - 2)
  const spansOf = (lines: readonly string[], style: Style): Span[][] =>
    lines.map((line) => [{ text: ` ${line}`, style }])
  const wrapped = (text: string, style: Style): Span[][] => spansOf(wrapText(text, width), style)
  const strong = (text: string): Span[][] => wrapped(text, styleOf(theme.danger, undefined, BOLD))
  const plain = (text: string): Span[][] => wrapped(text, mutedStyle(theme))
  // Marked as its words, as in the dialog of a login.
  const said = (text: string | undefined): Span[][] =>
    text === undefined ? [] : wrapped(`The server says: ${text}`, styleOf(theme.text))
  const reconnect = commandLabel(state, 'reconnect')
  const again = plain(`${reconnect} reconnects`)
  const { session, shell, lossReason } = host
  const loss = lossReason === undefined ? [] : strong(`lost: ${lossReason}`)
  switch (session.kind) {
    case 'idle':
      return { end: plain('waiting to connect') }
    case 'connecting': {
      const attempt = session.attempt > 1 ? ` (attempt ${session.attempt})` : ''
      return { cause: [...loss, ...said(session.says)], end: plain(`connecting: ${session.phase}${attempt} …`) }
    }
    case 'verifying':
      return { cause: loss, end: plain('its host key needs your answer …') }
    case 'authenticating':
      return { cause: [...loss, ...said(session.says)], end: plain(`authenticating as ${clip(host.user, 30)} …`) }
    case 'lost':
      return { cause: strong(`lost: ${session.reason}`), end: again }
    case 'waiting': {
      const wait = `next attempt (${session.attempt}) in ${seconds(session.retryAtMs - state.clockMs)}`
      const reason = session.reason === lossReason ? [] : strong(`no connection: ${session.reason}`)
      // In a low pane the end is cut: why it does not come back says more than how it went.
      return { cause: [...reason, ...loss], end: plain(`${wait} · ${reconnect} connects now`) }
    }
    case 'failed': {
      const { reason, hint } = session.failure
      const advice = (rows: number) => spansOf(endOf(hint ?? '', rows, width), mutedStyle(theme))
      return { cause: strong(reason), ...(hint === undefined ? {} : { advice }), end: again }
    }
    case 'closed':
      return { cause: plain('closed'), end: again }
    case 'ready':
      if (shell.kind === 'opening' || shell.kind === 'none') return { end: plain('opening a shell …') }
      if (shell.kind !== 'ended') return { end: [] }
      return { cause: strong(shellEnd(shell.end)), end: plain(`${reconnect} opens a new shell`) }
  }
}

/** A page that cannot be drawn says so; the other tabs are not affected. */
function pagePanes(page: Page, rect: Rect, theme: Theme, onFault: (error: unknown) => void): readonly PaneView[] {
  try {
    return page.panes(rect, theme)
  } catch (error) {
    onFault(error)
    const style = styleOf(theme.danger, undefined, BOLD)
    const lines = wrapText(`This page cannot be drawn: ${messageOf(error)}`, Math.max(8, rect.width - 4))
    return [
      {
        host: 'fault',
        rect,
        screen: undefined,
        lines: 'dashed',
        frameStyle: styleOf(theme.danger),
        title: [{ text: ' error in Muster ', style }],
        badges: [],
        notice: lines.slice(0, Math.max(0, rect.height - 2)).map((line) => [{ text: ` ${printable(line)}`, style }]),
        isDimmed: false,
        highlights: [],
      },
    ]
  }
}

/** `drawn`: the state that the chrome shows, which may be a moment older than the console's. */
export function buildScene(
  app: ConsoleApp,
  chrome: CellGrid,
  drawn: ConsoleState,
  onFault: (error: unknown) => void,
): Scene {
  const { state } = app
  const theme = themes[state.themeName]
  const notice = noticeBar(drawn, theme)
  const grid = keyGrid(drawn)
  const overlays: Rect[] = [
    ...(notice === undefined ? [] : [notice.rect]),
    ...(drawn.mode.kind === 'dialog' ? [dialogRect(drawn.mode.dialog, drawn.columns, drawn.rows)] : []),
    ...(grid === undefined ? [] : [grid.rect]),
  ]
  const { columns, rows } = state
  if (app.page) {
    const panes = pagePanes(app.page, areaOf(state), theme, onFault)
    return { columns, rows, chrome, panes, overlays, cursor: undefined }
  }
  const panes = app.arrangement.placed.map(({ hosts, rect }) => {
    const [lead = ''] = hosts
    return paneView({
      state,
      theme,
      hosts,
      rect,
      screen: app.views.screen(lead),
      highlights: [
        ...(state.showsDifferences ? app.comparison.highlights(lead, theme) : []),
        ...app.scroll.highlights(lead, theme),
        ...app.selection.highlights(lead, theme),
      ],
    })
  })
  const focused = panes.find(
    (_, index) => state.focus !== undefined && app.arrangement.placed[index]?.hosts.includes(state.focus),
  )
  const isTyping = state.mode.kind === 'typing' && state.panel?.hasKeys !== true
  const cursor = isTyping && focused && state.receivers.size > 0 ? { pane: focused.host } : undefined
  const { panel: panelRect } = layoutPanel(state)
  const panel = panelRect && app.work.pane(panelRect, theme)
  return { columns, rows, chrome, panes: panel ? [...panes, panel] : panes, overlays, cursor }
}
