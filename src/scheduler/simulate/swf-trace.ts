/** Logs of the Parallel Workloads Archive in the Standard Workload Format (18 numbers a line, `;` before the header). */
import { MusterError } from '../../base/errors.ts'
import type { QueuedJob } from '../queue/free-profile.ts'

export type TimedJob = QueuedJob & { readonly runS: number }

export type WorkloadLog = {
  /** `MaxProcs`, or else `MaxNodes`, of the header. */
  readonly processors: number | undefined
  readonly jobs: readonly TimedJob[]
  /** Lines without a length or without processors. */
  readonly leftOut: number
}

/**
 * Processors and time are those requested, or else those used; an estimate is never below the run time.
 * @throws MusterError 'configuration' with the line of the mistake.
 */
export function parseWorkloadLog(text: string): WorkloadLog {
  const header = new Map<string, number>()
  const rows: { submitS: number; runS: number; width: number; estimateS: number }[] = []
  let leftOut = 0
  text.split('\n').forEach((line, index) => {
    const trimmed = line.trim()
    if (trimmed === '') return
    if (trimmed.startsWith(';')) {
      const [, key, value] = /^;\s*(MaxProcs|MaxNodes):\s*(\d+)/.exec(trimmed) ?? []
      if (key !== undefined) header.set(key, Number(value))
      return
    }
    const fields = trimmed.split(/\s+/).map(Number)
    if (fields.length < 9 || fields.some((field) => !Number.isFinite(field)))
      throw new MusterError('configuration', `line ${index + 1} is not a job in Standard Workload Format`)
    const [, submitS = 0, , runS = 0, used = 0, , , asked = 0, askedS = 0] = fields.map(Math.trunc)
    const width = asked > 0 ? asked : used
    if (runS <= 0 || width <= 0 || submitS < 0) leftOut++
    else rows.push({ submitS, runS, width, estimateS: Math.max(askedS, runS) })
  })
  rows.sort((one, other) => one.submitS - other.submitS)
  return {
    processors: header.get('MaxProcs') ?? header.get('MaxNodes'),
    jobs: rows.map((row, order) => ({ ...row, order })),
    leftOut,
  }
}

/** The same jobs submitted faster (below 1) or slower. */
export function scaleSubmitTimes(jobs: readonly TimedJob[], factor: number): readonly TimedJob[] {
  return jobs.map((job) => ({ ...job, submitS: Math.floor(job.submitS * factor) }))
}
