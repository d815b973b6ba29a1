/** What `muster left` shows: a row for each thing, or an object. */
import { formatBytes } from '../../base/format-bytes.ts'
import { formatDuration } from '../../ops/kernel/finding.ts'
import type { HostLeftover } from '../../ops/kernel/left.ts'
import { formatTable } from '../output/table.ts'

const HEADER = ['HOST', 'AREA', 'STATE', 'SIZE', 'CHANGED', 'WHAT']

export function formatLeft(items: readonly HostLeftover[], nowMs: number): string {
  return formatTable(
    HEADER,
    items.map((item) => rowOf(item, nowMs)),
  )
}

function rowOf({ host, area, what, bytes, changedS, state }: HostLeftover, nowMs: number): readonly string[] {
  const why = state.kind === 'left' ? '' : ` (${state.because})`
  const age = changedS === undefined ? '' : `${formatDuration(Math.max(0, nowMs - changedS * 1000))} ago`
  return [host, area, state.kind, bytes === undefined ? '' : formatBytes(bytes), age, `${what}${why}`]
}

/** docs/schema/bring-up.schema.json */
export function leftEvent({ host, area, what, bytes, changedS, state }: HostLeftover): object {
  const because = state.kind === 'left' ? null : state.because
  const changed = changedS === undefined ? null : new Date(changedS * 1000).toISOString()
  return { type: 'left', host, area, state: state.kind, what, bytes: bytes ?? null, changed, because }
}
