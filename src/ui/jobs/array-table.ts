/** The table of jobs that were submitted together. Pure. */
import { isFinal } from '../../scheduler/jobs/job.ts'
import { durationText, hostsText, ranMs } from '../../scheduler/jobs/job-columns.ts'
import type { Sweep, SweepRow } from '../../scheduler/jobs/results.ts'
import type { ResultsTable, TableRow } from './results-table.ts'

/** `count`: how many jobs there are; `rows` may have fewer. */
export type ArrayTable = ResultsTable & Pick<Sweep, 'count'>

export const arrayTable = ({ metrics, parameters, rows, count }: Sweep, nowMs: number): ArrayTable => ({
  ...{ metrics, parameters, count },
  notes: ['ON', 'RAN', 'WHY'],
  rows: rows.map((row) => arrayRow(row, nowMs)),
})

function arrayRow({ id, state, parameters, values }: SweepRow, nowMs: number): TableRow {
  const ran = ranMs(state, nowMs)
  return {
    ...{ id, kind: state.kind, parameters, values },
    notes: {
      ON: hostsText({ state }) ?? '',
      RAN: ran === undefined ? '' : durationText(ran),
      WHY: (state.kind === 'queued' ? state.last : isFinal(state) ? state.reason : undefined) ?? '',
    },
    amounts: { RAN: ran },
  }
}
