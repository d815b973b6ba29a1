/** The rows of the Bring-up tab, filtered by host name and status, and sorted by host or by the severity of an area. Pure. */
import { themes } from '../compositor/scene.ts'
import { findHost, shownRows, type TableColumn, type TableFrame } from '../rows/table-view.ts'
import { type ConsoleState, tableView } from '../state/console-state.ts'
import { type BringUpView, cellOf, hasRows, risksOf, rowsOf, STATUS_WORDS } from './bring-up-view.ts'
import { cellText } from './table-document.ts'

/** The id of the pane. */
export const HOSTS = ' table'

/** Undefined: a plan waits for an answer, or the pane beside the table has the keys. */
export function bringUpTable({ bringUp }: ConsoleState): TableFrame | undefined {
  const { columns, hasSideKeys, change } = bringUp
  const isDeciding = change?.phase === 'check' || change?.phase === 'ask'
  if (columns === undefined || !hasRows(bringUp) || hasSideKeys || isDeciding) return undefined
  return { id: HOSTS, columns: columnsOf(bringUp).map(({ title }) => title), sorted: undefined }
}

export const allHosts = ({ bringUp, hosts }: ConsoleState): readonly string[] => rowsOf(bringUp, hosts.keys())

export const shownHosts = (state: ConsoleState): readonly string[] =>
  shownRows(allHosts(state), columnsOf(state.bringUp), tableView(state, HOSTS))

export const columnsOf = (view: BringUpView): readonly TableColumn<string>[] => [
  { title: 'host', text: (host) => host, find: findHost((host: string) => host) },
  ...(view.columns ?? []).map((column): TableColumn<string> => {
    const cellIn = (host: string) => cellOf(view, column, host)
    return {
      title: column.name,
      text: (host) => cellText(cellIn(host), themes.none).text,
      order: (host) => {
        const cell = cellIn(host)
        if (cell.kind === 'changing') return cell.isBad ? 0 : STATUS_WORDS.length
        if (cell.kind !== 'status') return undefined
        // Among the good ones, those with risks come first.
        return STATUS_WORDS.indexOf(cell.status.status) - (risksOf(cell.status) > 0 ? 0.5 : 0)
      },
    }
  }),
]
