/** Logs in the Standard Workload Format under a queue policy: how long jobs wait, and how much of the machine is used. */
import type { ResultOf } from '../../base/calculation.ts'
import { MusterError } from '../../base/errors.ts'
import type { QueuedJob, QueuePolicy, RunningJob } from '../queue/queue-policies.ts'
import { TimeQueue, waitFigures } from './time-queue.ts'

export type SwfResult = ResultOf<ReturnType<typeof runLog>>

const MOMENTS = 120

/** `tooWide`: jobs wider than the machine, which are left out. */
export function* runLog(log: readonly TimedJob[], processors: number, policy: QueuePolicy) {
  const jobs = log.filter(({ width }) => width <= processors)
  const startsS = new Map<number, number>()
  const ends = new TimeQueue<{ readonly job: TimedJob; readonly running: RunningJob }>()
  const running = new Set<RunningJob>()
  let waiting: TimedJob[] = []
  let free = processors
  let next = 0
  for (;;) {
    yield
    const nowS = ends.next(jobs[next]?.submitS)
    if (nowS === Number.POSITIVE_INFINITY) break
    let hasEndedEarly = false
    for (let end = ends.first(); end?.timeS === nowS; end = ends.first()) {
      const { job, running: ended } = end.value
      ends.removeFirst()
      running.delete(ended)
      free += job.width
      hasEndedEarly ||= ended.estimatedEndS > nowS
    }
    for (let job = jobs[next]; job?.submitS === nowS; job = jobs[++next]) waiting.push(job)
    const chosen = new Set<QueuedJob>(policy.choose({ nowS, free, running: [...running], waiting, hasEndedEarly }))
    if (chosen.size === 0) continue
    for (const job of waiting.filter((one) => chosen.has(one))) {
      const entry = { width: job.width, estimatedEndS: nowS + job.estimateS }
      running.add(entry)
      free -= job.width
      startsS.set(job.order, nowS)
      ends.add(nowS + job.runS, { job, running: entry })
    }
    if (free < 0) throw new MusterError('internal', 'a queue policy began more than the machine holds')
    waiting = waiting.filter((job) => !chosen.has(job))
  }
  if (waiting.length > 0) throw new MusterError('internal', 'a queue policy left jobs waiting on an empty machine')
  return { ...summarise(jobs, startsS, processors), tooWide: log.length - jobs.length }
}

function summarise(jobs: readonly TimedJob[], startsS: ReadonlyMap<number, number>, processors: number) {
  const { figures, firstS, spanS } = waitFigures(jobs, startsS)
  const used = jobs.reduce((sum, { width, runS }) => sum + width * runS, 0)
  const changes = new Int32Array(MOMENTS + 1)
  const momentOf = (timeS: number) => Math.ceil(((timeS - firstS) / spanS) * MOMENTS)
  for (const { order, submitS } of jobs) {
    const from = momentOf(submitS)
    const to = momentOf(startsS.get(order) ?? submitS)
    changes[from] = (changes[from] as number) + 1
    changes[to] = (changes[to] as number) - 1
  }
  let length = 0
  return {
    ...figures,
    /** Of processors × time from the first submission to the last end. */
    utilisationPercent: (100 * used) / (processors * spanS),
    /** Waiting jobs at 120 evenly spread moments. */
    queueLengths: [...changes.subarray(0, MOMENTS)].map((change) => {
      length += change
      return length
    }),
  }
}

export type TimedJob = QueuedJob & { readonly runS: number }

/**
 * `processors`: `MaxProcs`, or else `MaxNodes`, of the header; `leftOut`: lines without a length or without processors.
 * Processors and time are those requested, or else those used; an estimate is never below the run time.
 * @throws MusterError 'configuration' with the line of the mistake.
 */
export function parseWorkloadLog(text: string) {
  const header = new Map<string, number>()
  const rows: Omit<TimedJob, 'order'>[] = []
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
    jobs: rows.map((row, order): TimedJob => ({ ...row, order })),
    leftOut,
  }
}

/** The same jobs submitted faster (below 1) or slower. */
export function scaleSubmitTimes(jobs: readonly TimedJob[], factor: number): readonly TimedJob[] {
  return jobs.map((job) => ({ ...job, submitS: Math.floor(job.submitS * factor) }))
}
