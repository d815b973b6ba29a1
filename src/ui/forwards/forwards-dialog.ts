/** The list of port forwards, and of dashboards that could be forwarded. */

import type { Clock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { clip, textWidth } from '../../base/text-width.ts'
import { leadsTo, listensOn, noteOn, urlOfForward } from '../../ssh/forward/describe-forward.ts'
import { formatSocketAddress } from '../../ssh/forward/forward-spec.ts'
import type { Forward } from '../../ssh/forward/forwards.ts'
import type { KnownDashboard } from '../../ssh/forward/plan-forwards.ts'
import { closeOnce, type DialogFactory, type DialogLine, isCancelKey, windowAround } from '../dialogs/dialog.ts'
import { moveOf } from '../keys/key-table.ts'
import {
  FIRST_TABLE_VIEW,
  filterAfterKey,
  noMatchText,
  orderText,
  pastedFilter,
  shownRows,
  type TableColumn,
  type TableFrame,
  type TableView,
  tableAfterKey,
} from '../rows/table-view.ts'

export type ForwardsList = {
  readonly clock: Clock
  /** The forward that is selected first. */
  readonly selected: number | undefined
  list(): readonly Forward[]
  /** Dashboards without a forward, on hosts of the console. */
  found(): readonly KnownDashboard[]
  /** Calls back when a forward changes. */
  watch(changed: () => void): Disposable
  add(): void
  openFound(dashboard: KnownDashboard): void
  close(forward: Forward): void
  copy(text: string): void
}

type Row =
  | { readonly kind: 'forward'; readonly forward: Forward }
  | { readonly kind: 'found'; readonly dashboard: KnownDashboard }

function keyOf(row: Row | undefined): string {
  if (row?.kind === 'found') return JSON.stringify([row.dashboard.host, row.dashboard.name, row.dashboard.at])
  return String(row?.forward.id ?? '')
}

const tableColumns: readonly TableColumn<Row>[] = [
  { title: 'HOST', text: (row) => (row.kind === 'found' ? row.dashboard : row.forward).host },
  { title: 'PORT', text: portOf },
  { title: 'STATE', text: (row) => (row.kind === 'found' ? 'not forwarded' : stateText(row.forward)) },
  {
    title: 'TRAFFIC',
    text: () => '',
    order: (row) => (row.kind === 'found' ? undefined : row.forward.sentBytes + row.forward.receivedBytes),
    isDescending: true,
  },
]
const FRAME: TableFrame = { id: 'forwards', columns: tableColumns.map(({ title }) => title) }

const WIDTH = 100
/** Rows of the dialog around the list. */
const AROUND_ROWS = 12
/** Of the line with the filter. */
const FILTER_ROWS = 2
const REFRESH_MS = 1000

export const forwardsDialog =
  (ports: ForwardsList): DialogFactory =>
  ({ onClose, onChange }) => {
    /** The selected row, and its place, which the next row takes when it is gone. */
    let selectedKey = String(ports.selected ?? '')
    let selected = 0
    let firstShown = 0
    let shown = ''
    let table = FIRST_TABLE_VIEW
    const allRows = (): readonly Row[] => [
      ...ports.list().map((forward): Row => ({ kind: 'forward', forward })),
      ...ports.found().map((dashboard): Row => ({ kind: 'found', dashboard })),
    ]
    const rows = (): readonly Row[] => shownRows(allRows(), tableColumns, table)
    const showTable = (next: TableView): void => {
      table = next
      selected = 0
      onChange()
    }
    const refresh = (): void => {
      const now = JSON.stringify(rows())
      if (now === shown) return
      shown = now
      onChange()
    }
    // Byte counts change without an event.
    const tick = (): Disposable =>
      ports.clock.after(REFRESH_MS, () => {
        refresh()
        timer = tick()
      })
    let timer = tick()
    const watching = ports.watch(refresh)
    const closing = closeOnce(onClose)
    const close = (): void => {
      timer[Symbol.dispose]()
      watching[Symbol.dispose]()
      closing()
    }
    const at = (all: readonly Row[]): number => {
      const known = all.findIndex((row) => keyOf(row) === selectedKey)
      return known >= 0 ? known : Math.max(0, Math.min(selected, all.length - 1))
    }
    const current = (): Row | undefined => {
      const all = rows()
      return all[at(all)]
    }
    const move = (to: number): void => {
      const all = rows()
      selected = Math.max(0, Math.min(to, all.length - 1))
      selectedKey = keyOf(all[selected])
      onChange()
    }
    const choose = (): void => {
      const row = current()
      if (row?.kind === 'found') ports.openFound(row.dashboard)
      else if (row !== undefined) ports.copy(addressOf(row.forward))
    }
    return {
      view({ columns, rows: height }) {
        const all = rows()
        const width = Math.min(WIDTH, columns - 2)
        const index = at(all)
        const isFiltered = table.isTyping || table.filter.text !== ''
        const room = Math.max(3, height - AROUND_ROWS - (isFiltered ? FILTER_ROWS : 0))
        firstShown = windowAround(index, all.length, room)
        const row = all[index]
        selected = index
        if (row !== undefined) selectedKey = keyOf(row)
        const lines = all.slice(firstShown, firstShown + room).map((each, offset) => ({
          ...lineOf(each, width - 6),
          isSelected: firstShown + offset === index,
        }))
        const more = all.length > room ? `  ${index + 1} of ${all.length}` : ''
        return {
          id: 'forwards',
          title: `Port forwards${orderText(table, tableColumns)}${more}`,
          ...(isFiltered ? { input: { label: 'Filter:', ...table.filter } } : {}),
          lines: [
            ...(all.length > 0
              ? lines
              : isFiltered
                ? [{ text: noMatchText(table, 'forward'), tone: 'warning' as const }]
                : NONE),
            ...(row === undefined ? [] : [{ text: '' }, { text: detailOf(row), tone: 'muted' as const }]),
          ],
          keys: table.isTyping
            ? FILTER_KEYS
            : [
                ['a', 'add'],
                ...(row?.kind === 'forward'
                  ? ([
                      ['Enter', 'copy address'],
                      ['x', 'close'],
                    ] as const)
                  : []),
                ...(row?.kind === 'found' ? [['Enter', 'forward'] as const] : []),
                ...(all.length > 1 || isFiltered ? TABLE_KEYS : []),
                ['Esc', table.filter.text === '' ? 'back' : 'clear filter'],
              ],
          width,
          isSteady: true,
        }
      },
      key(label, event) {
        const moved = moveOf(label)
        const next = table.isTyping ? filterAfterKey(table, label, event) : tableAfterKey(table, FRAME, label)
        if (next !== undefined) return showTable(next)
        if (table.isTyping && label !== 'Up' && label !== 'Down') return
        if (isCancelKey(label) || label === 'q') close()
        else if (label === 'a') ports.add()
        else if (label === 'Enter') choose()
        else if (label === 'x' || label === 'Delete') {
          const row = current()
          if (row?.kind === 'forward') ports.close(row.forward)
        } else if (moved === 'Down' || moved === 'j') move(at(rows()) + 1)
        else if (moved === 'Up' || moved === 'k') move(at(rows()) - 1)
        else if (moved === 'Home') move(0)
        else if (moved === 'End') move(rows().length - 1)
      },
      pick(line) {
        const all = rows()
        if (firstShown + line < all.length) move(firstShown + line)
      },
      paste(text) {
        if (table.isTyping) showTable(pastedFilter(table, text))
      },
      cancel: close,
    }
  }

const TABLE_KEYS = [
  ['/', 'filter'],
  ['>', 'sort'],
] as const
const FILTER_KEYS = [
  ['Enter', 'keep'],
  ['Esc', 'show all'],
] as const

const NONE: readonly DialogLine[] = [
  { text: 'None. A forward leads from a port of this machine to a port of a host, or back.', tone: 'muted' },
]

/** For a browser, or another program. */
export const addressOf = (forward: Forward): string => urlOfForward(forward) ?? formatSocketAddress(forward.listen)

function lineOf(row: Row, width: number): DialogLine {
  if (row.kind === 'found') {
    const { host, source } = row.dashboard
    return fitted(`${printable(host)}  ${portOf(row)}, not forwarded`, source ?? 'in hosts.yaml', width, 'muted')
  }
  const { forward } = row
  const { state, connections, sentBytes, receivedBytes } = forward
  const text = `${printable(forward.host)}  ${portOf(row)}`
  if (state.kind === 'open')
    return fitted(text, `${connections} open  ↑${formatBytes(sentBytes)} ↓${formatBytes(receivedBytes)}`, width)
  return fitted(text, stateText(forward), width, state.kind === 'waiting' ? 'warning' : 'error')
}

function portOf(row: Row): string {
  if (row.kind === 'forward') return `${listensOn(row.forward)} → ${leadsTo(row.forward)}`
  return `${row.dashboard.name} at ${formatSocketAddress(row.dashboard.at)}`
}

const stateText = ({ state: { kind } }: Forward): string => (kind === 'waiting' ? 'waiting for the host' : kind)

function fitted(text: string, right: string, width: number, tone?: DialogLine['tone']): DialogLine {
  return { text: clip(text, width - textWidth(right) - 2), right, ...(tone === undefined ? {} : { tone }) }
}

function detailOf(row: Row): string {
  if (row.kind === 'found') return 'Enter forwards it to this machine.'
  const { forward } = row
  if (forward.state.kind !== 'open') return forward.state.reason
  const note = noteOn(forward)
  const count = `${counted(forward.allConnections, 'connection')} so far`
  return [addressOf(forward), ...(note === undefined ? [] : [note]), count].join('   ')
}
