/** One job: its request, where it runs, why it waits, and its log. Pure. */
import { printable } from '../../base/printable.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { formatBundle, isFinal } from '../../scheduler/jobs/job.ts'
import { requestText } from '../../scheduler/jobs/job-columns.ts'
import { documentOf, type Row, type RowDocument, wrapRows } from '../rows/rows-pane.ts'
import { timeText } from '../rows/short-text.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import type { JobDetails } from './jobs-port.ts'
import { colourOf } from './list-document.ts'
import type { LogView } from './queue-view.ts'

const MOST_PLACES = 8

export function jobDocument(
  details: JobDetails,
  log: LogView | undefined,
  columns: number,
  theme: Theme,
  nowMs: number,
): RowDocument {
  const { job, why, expectedMs } = details
  const { state, spec } = job
  const muted = mutedStyle(theme)
  const say = (text: string, style = styleOf(theme.text)): readonly Row[] =>
    wrapRows(printable(text), columns, ' ', style)
  const rows: Row[] = [
    [
      { text: ` ${state.kind}`, style: boldStyle(colourOf(state.kind, theme)) },
      { text: `  ${requestText(job)}, attempt ${job.attempt}, priority ${job.priority}`, style: muted },
    ],
    ...say(spec.command),
  ]
  if (isFinal(state) && state.reason !== undefined) rows.push(...say(state.reason, styleOf(theme.danger)))
  if ('places' in state && state.places !== undefined) {
    state.places.slice(0, MOST_PLACES).forEach(({ host, devices }, rank) => {
      const bundle = state.bundles?.[rank]
      const how = bundle === undefined ? '' : formatBundle(bundle)
      const gpu = devices.length > 0 ? `, GPU ${devices.join(',')}` : ''
      rows.push(...say(`bundle ${rank}: ${placeTitle(host)}${gpu}: ${how}`, muted))
    })
    if (state.places.length > MOST_PLACES) rows.push(...say(`and ${state.places.length - MOST_PLACES} more`, muted))
  }
  if (expectedMs !== undefined) rows.push(...say(`expected to start ${timeText(expectedMs, nowMs)}`))
  for (const line of why) rows.push(...say(line, styleOf(theme.warning)))
  if (log?.trouble !== undefined) rows.push(...say(`log: ${log.trouble}`, styleOf(theme.danger)))
  if (log !== undefined && log.lines.length > 0) {
    rows.push([{ text: ` ${'─'.repeat(Math.max(0, columns - 2))}`, style: muted }])
    rows.push(...log.lines.map((line): Row => [{ text: ` ${printable(line)}`, style: styleOf(theme.text) }]))
  }
  return documentOf(rows)
}
