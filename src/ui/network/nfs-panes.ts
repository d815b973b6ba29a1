/** An NFS measurement as charts. Pure. */
import { defined } from '../../base/defined.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { formatMs } from '../../ops/net/mesh/link.ts'
import { type NfsRecord, nfsPlace, silentText } from '../../ops/net/nfs/measure-nfs.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect } from '../compositor/scene.ts'
import { documentOf, type Row, rowsPane, splitColumns, splitRows, wrapRows } from '../rows/rows-pane.ts'
import { conclusionRows } from './conclusion-rows.ts'
import type { LiveRun } from './network-view.ts'
import type { PaneContext } from './pane-screen.ts'

const BESIDE_COLUMNS = 100
/** Small files on a fast disk take less than a millisecond. */
const LEAST_TOP = 0.1

/** Rates second by second, the time of each small file, and words. */
export function nfsPanes(run: LiveRun<NfsRecord>, { rect, theme, chart }: PaneContext): readonly PaneView[] {
  const { record, isMeasuring } = run
  const { test } = run.conclusion ?? {}
  // At the end, a rate over less than a second counts, too.
  const { writes, reads, smallFiles } = test?.kind === 'nfs' ? test.record : record
  const columns = rect.width - 2
  const words = [
    ...wrapRows(printable(nfsPlace(record)), columns, ' ', boldStyle(theme.accent)),
    ...conclusionRows(run, columns, theme),
    ...(isMeasuring ? [[{ text: ` ${phaseOf(record)}`, style: mutedStyle(theme) }]] : []),
    ...(isMeasuring && record.isSilent
      ? wrapRows(printable(silentText(record)), columns, ' ', boldStyle(theme.warning))
      : []),
  ]
  // Without values there is nothing to chart, and the text says why.
  const isEmpty = !isMeasuring && [writes, reads, smallFiles].every(({ length }) => length === 0)
  const [top, charts] = splitRows(rect, isEmpty ? rect.height : Math.min(words.length + 2, rect.height))
  const isWide = rect.width >= BESIDE_COLUMNS
  const [first, rest] = isWide
    ? splitColumns(charts, Math.floor(charts.width / 3))
    : splitRows(charts, Math.floor(charts.height / 3))
  const [second, third] = isWide
    ? splitColumns(rest, Math.floor(rest.width / 2))
    : splitRows(rest, Math.floor(rest.height / 2))
  const draw = (
    id: string,
    title: string,
    values: readonly number[],
    place: Rect,
    latest: string,
    tickText?: (value: number) => string,
  ): PaneView[] => {
    const length = values.length
    if (place.height < 4) return []
    const line: readonly Row[] =
      chart?.({
        columns: place.width - 2,
        rows: place.height - 2,
        theme,
        seconds: [1, Math.max(2, length)],
        series: [{ values }],
        least: LEAST_TOP,
        ...defined({ tickText }),
      }) ?? []
    const isShort = !isMeasuring && length < 2
    const rows = isShort ? wrapRows('too short for a chart', place.width - 2, ' ', mutedStyle(theme)) : line
    const badges = length === 0 ? [] : [{ text: ` ${latest} `, style: boldStyle(theme.accent) }]
    return [rowsPane({ id, title, document: documentOf(rows), badges, rect: place, theme, hasKeys: false })]
  }
  const rate = (values: readonly number[]) => `${formatBytes(values.at(-1) ?? 0)}/s`
  return [
    ...draw(' nfs-write', 'write, bytes per second', writes, first, rate(writes)),
    ...draw(' nfs-read', 'read, bytes per second', reads, second, rate(reads)),
    ...draw(' nfs-small', 'small files, ms', smallFiles, third, `${formatMs(smallFiles.at(-1) ?? 0)}`, fileText),
    rowsPane({
      id: ' nfs',
      title: `NFS on ${record.host}`,
      document: documentOf(words),
      rect: top,
      theme,
      hasKeys: true,
      isBusy: isMeasuring,
    }),
  ]
}

const fileText = (number: number): string => `file ${number}`

function phaseOf({ directory, pending, smallFiles }: NfsRecord): string {
  if (directory === undefined) return 'finding the mount…'
  if (smallFiles.length > 0) return 'writing small files…'
  return pending.read.bytes > 0 || pending.read.seconds > 0 ? 'reading…' : 'writing…'
}
