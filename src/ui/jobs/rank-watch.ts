/** What the ranks of a job do, read from its hosts every two seconds while they are shown, and what that says over time. */
import { type Clock, hasPassed } from '../../base/clock.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { isActive, type Job } from '../../scheduler/jobs/job.ts'
import {
  parseDeleted,
  parseRankReadings,
  parseRankTails,
  type RankReading,
  type RankTail,
  rankPrograms,
  ranksOf,
  tailPrograms,
  toldApart,
} from '../../scheduler/jobs/ranks.ts'
import { noteSights, type RankSight, type RankTraces } from '../../scheduler/launch/straggler.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import { startScript, type WorkPort } from '../work-views/work-port.ts'
import type { RanksSeen } from './queue-view.ts'

const READ_EVERY_MS = 2_000
const READ_MS = 10_000
const MOST_BYTES = 1024 * 1024
/** Of the ends of all outputs together. */
const TAILS_BYTES = 256 * 1024
/** Of what one host tells. */
const MOST_LINES = 20_000
const LEAST_TAIL_BYTES = 256
const MOST_TAIL_BYTES = 4096
const PUBLISH = { everyMs: 250, gatherMs: 50 }
/** Between readings and tails; a reading has more than one word. */
const BETWEEN = '='

type Reader = { startedMs: number; running: { abandon(): void } | undefined; isComplete: boolean }

export class RankWatch implements Disposable {
  readonly #work: WorkPort
  readonly #clock: Clock
  readonly #publishing: ThrottledAction
  #job: Job | undefined
  #storeId = ''
  #key = ''
  #readers = new Map<string, Reader>()
  #readings = new Map<number, readonly RankReading[]>()
  #tails = new Map<string, readonly RankTail[]>()
  #troubles = new Map<string, string>()
  #deleted = new Map<string, ReadonlySet<number>>()
  #traces: RankTraces = new Map()

  constructor(work: WorkPort, clock: Clock, onRead: (seen: RanksSeen | undefined) => void) {
    this.#work = work
    this.#clock = clock
    this.#publishing = new ThrottledAction({ clock, ...PUBLISH }, () => onRead(this.#seen()))
  }

  /** Called again and again while the job is shown; reads each host that has not been read for two seconds. */
  follow(target: { readonly job: Job; readonly storeId: string } | undefined): void {
    const key = target === undefined ? '' : `${target.storeId} ${target.job.id} ${target.job.attempt}`
    if (key !== this.#key) this.#begin(key)
    if (target === undefined) return
    const wasActive = this.#job !== undefined && isActive(this.#job.state)
    this.#job = target.job
    this.#storeId = target.storeId
    const isOver = !isActive(target.job.state)
    // The last lines were written after the last reading.
    if (wasActive && isOver) for (const reader of this.#readers.values()) reader.isComplete = false
    for (const [host, program] of programsOf(target.job, target.storeId)) {
      const reader = this.#readers.get(host)
      const underWay = [...this.#readers.values()].filter(({ running }) => running !== undefined).length
      if (underWay >= this.#work.fanOut || reader?.running !== undefined || (isOver && reader?.isComplete === true))
        continue
      if (reader === undefined || hasPassed(reader.startedMs, READ_EVERY_MS, this.#clock.now()))
        this.#read(host, program)
    }
  }

  [Symbol.dispose](): void {
    this.#begin('')
    this.#publishing[Symbol.dispose]()
  }

  #begin(key: string): void {
    this.#key = key
    for (const { running } of this.#readers.values()) running?.abandon()
    this.#job = undefined
    this.#readers = new Map()
    this.#readings = new Map()
    this.#tails = new Map()
    this.#troubles = new Map()
    this.#deleted = new Map()
    this.#traces = new Map()
  }

  #seen(): RanksSeen | undefined {
    if (this.#job === undefined) return undefined
    const [readings, troubles] = [new Map(this.#readings), new Map(this.#troubles)]
    return {
      job: this.#job.id,
      readings,
      tails: toldApart([...this.#tails.values()].flat()),
      troubles,
      traces: this.#traces,
      deleted: new Set([...this.#deleted.values()].flatMap((own) => [...own])),
    }
  }

  #read(host: string, program: string): void {
    const key = this.#key
    const reader: Reader = { startedMs: this.#clock.now(), running: undefined, isComplete: false }
    this.#readers.set(host, reader)
    let text = ''
    let hasEnded = false
    const finish = (trouble: string | undefined) => {
      if (hasEnded) return
      hasEnded = true
      timer[Symbol.dispose]()
      reader.running = undefined
      if (key !== this.#key) return
      reader.isComplete = trouble === undefined
      this.#note(host, text, trouble)
    }
    const timer = this.#clock.after(READ_MS, () => {
      reader.running?.abandon()
      finish('the host did not answer in time')
    })
    reader.running = startScript(
      this.#work,
      host,
      program,
      (more) => {
        if (text.length < MOST_BYTES) text += more
      },
      (end) => finish(end.kind === 'exit' ? undefined : formatOutcome(end)),
    )
  }

  #note(host: string, text: string, trouble: string | undefined): void {
    const job = this.#job
    if (job === undefined) return
    const at = `\n${text}`.indexOf(`\n${BETWEEN}\n`)
    if (trouble === undefined && at < 0) trouble = "could not parse the host's answer"
    if (trouble === undefined) this.#troubles.delete(host)
    else this.#troubles.set(host, trouble)
    // The last steps of a bundle that is over stay in view.
    const { places = [], bundles = [] } = 'places' in job.state ? job.state : {}
    for (const [bundle, place] of places.entries())
      if (place.host === host && bundles[bundle]?.kind !== 'ended') this.#readings.delete(bundle)
    if (trouble === undefined) {
      const readings = parseRankReadings(text.slice(0, at), host, job, this.#storeId)
      for (const [bundle, own] of readings) this.#readings.set(bundle, own)
      this.#deleted.set(host, parseDeleted(text.slice(0, at), host, job, this.#storeId))
      this.#tails.set(host, parseRankTails(text.slice(at + BETWEEN.length + 1), host, job, this.#storeId, MOST_LINES))
      this.#traces = noteSights(this.#traces, [...readings.values()].flat().flatMap(sightOf), this.#clock.now())
    }
    this.#publishing.soon()
  }
}

/** By host; none has an apostrophe. */
function programsOf(job: Job, storeId: string): ReadonlyMap<string, string> {
  const share = Math.floor(TAILS_BYTES / Math.max(1, ranksOf(job).length))
  const tails = tailPrograms(job, storeId, Math.max(LEAST_TAIL_BYTES, Math.min(MOST_TAIL_BYTES, share)))
  const readings = rankPrograms(job, storeId)
  return new Map(
    [...tails].map(([host, tail]) => [
      host,
      `${asScript(readings.get(host) ?? ':')}; echo ${BETWEEN}; ${asScript(tail)}`,
    ]),
  )
}

const sightOf = ({ rank, restart, process, step, quietS }: RankReading): readonly RankSight[] =>
  process === undefined
    ? []
    : [
        {
          rank,
          process: `${restart} ${process.pid}`,
          cpuS: process.cpuS,
          quietS,
          ...(step === undefined ? {} : { step }),
        },
      ]

/** Without apostrophes, whatever the program has. */
export const asScript = (program: string): string =>
  `echo ${Buffer.from(program).toString('base64')} | base64 -d | /bin/sh`
