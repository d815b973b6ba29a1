/** A queue without a file: what the tabs are told of it is made from jobs. */
import { MusterError } from '../../../../src/base/errors.ts'
import { isActive, type Job, type JobSpec, type JobState } from '../../../../src/scheduler/jobs/job.ts'
import { type KnownHost, packHosts } from '../../../../src/scheduler/jobs/packing.ts'
import type { Sweep } from '../../../../src/scheduler/jobs/results.ts'
import type { HostCapacity } from '../../../../src/scheduler/model/resources.ts'
import type {
  ClusterSource,
  EngineLog,
  JobAction,
  JobsPort,
  QueueChanges,
  QueueStatus,
  SubmitWords,
} from '../../../../src/ui/jobs/queue-view.ts'
import type { StudyChange, StudyReading } from '../../../../src/ui/jobs/study-view.ts'
import type { TryOut, WhatIf } from '../../../../src/ui/packing/what-if.ts'
import { testJob } from '../../../support/test-job.ts'

/** The id of its queue. */
export const STORE = 'aa00bb11'

export const jobOf = (id: number, state: JobState, spec: Partial<JobSpec> = {}): Job =>
  testJob(
    {
      name: `train-${id}`,
      command: `python train.py ${id}`,
      request: { cpuMilli: 4000, memoryBytes: 8 * 2 ** 30, gpuCount: 1, gpuMilli: 500 },
      ...spec,
    },
    { id, state },
  )

export const runningOn = (host: string, ...devices: number[]): JobState => ({
  kind: 'running',
  places: [{ host, devices }],
  bundles: [{ kind: 'begun' }],
  startedMs: 0,
})

export const hostSpecs = (count: number, gpus = 4): readonly HostCapacity[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `n${index + 1}`,
    cpuMilli: 16_000,
    memoryBytes: 64 * 2 ** 30,
    gpus: Array.from({ length: gpus }, () => ''),
  }))

const NO_CHANGES: QueueChanges = { change: async () => 0, changeStudy: async () => {} }

/** `arrays`: by the first of its jobs, how many of them there are. */
export function statusOf(
  hosts: readonly KnownHost[],
  jobs: readonly Job[],
  rest: Partial<QueueStatus> & { readonly arrays?: Readonly<Record<number, number>> } = {},
): QueueStatus {
  const counts = new Map([...Map.groupBy(jobs, ({ state }) => state.kind)].map(([kind, own]) => [kind, own.length]))
  const { arrays = {}, ...other } = rest
  const groups = jobs
    .filter(
      ({ id }) => !Object.entries(arrays).some(([first, count]) => id > Number(first) && id < Number(first) + count),
    )
    .map((lead) => {
      const members = jobs.filter(({ id }) => id >= lead.id && id < lead.id + (arrays[lead.id] ?? 1))
      const kinds = [...Map.groupBy(members, ({ state }) => state.kind)]
      return {
        spec: lead.id,
        first: lead.id,
        count: members.length,
        counts: new Map(kinds.map(([kind, own]) => [kind, own.length])),
        lead,
      }
    })
    .toReversed()
  const active = jobs.filter(({ state }) => isActive(state))
  const waiting = jobs.flatMap((job) =>
    job.state.kind === 'queued'
      ? [{ job, first: job.id, last: job.id, count: 1, why: 'n1: too few cores are free', expectedMs: undefined }]
      : [],
  )
  const known = { hosts: packHosts(hosts, active), down: {}, active, waiting, groups, counts }
  return { storeId: STORE, ...known, driver: 'ann@here', changes: NO_CHANGES, ...other }
}

export class FakeQueue implements JobsPort {
  readonly changes: [JobAction, readonly number[]][] = []
  /** As if the jobs had changed since they were shown. */
  refuses = false
  reads = 0
  /** Told once; then nothing has changed. */
  next: QueueStatus | undefined
  trouble: string | undefined
  readonly jobs: Job[]
  readonly #groups: QueueStatus['groups']

  constructor(jobs: readonly Job[], status: QueueStatus) {
    this.jobs = [...jobs]
    this.next = status
    this.#groups = status.groups
  }

  /** Listed only while a page shows one of them. */
  older: QueueStatus['groups'] = []

  async read(shown?: number): Promise<QueueStatus | undefined> {
    this.reads++
    if (this.trouble !== undefined) throw new Error(this.trouble)
    const { next } = this
    this.next = undefined
    const changes: QueueChanges = {
      change: async (action, ids) => {
        this.changes.push([action, ids])
        if (this.refuses) return 0
        return ids.length
      },
      changeStudy: async (id, change) => void this.studyChanges.push([id, change]),
    }
    const also = this.older.filter(({ spec }) => spec === shown)
    return next && { ...next, changes, groups: [...next.groups, ...also] }
  }

  readonly tried: WhatIf[] = []
  trial: TryOut = { places: undefined, why: ['too few cores are free'] }

  readonly away: (readonly string[])[] = []

  async tryOut(whatIf: WhatIf, away: readonly string[]): Promise<TryOut> {
    this.tried.push(whatIf)
    this.away.push(away)
    return this.trial
  }

  async details(id: number) {
    const job = this.jobs.find((one) => one.id === id)
    if (job === undefined) return undefined
    const place = 'places' in job.state ? job.state.places?.[0] : undefined
    const { engine } = job.spec
    const hostLog = place && { host: place.host, program: `cat log-${id}` }
    const log = engine === undefined ? hostLog : { job: id, attempt: job.attempt }
    const why = job.state.kind === 'queued' ? ['n1: too few cores are free'] : []
    return { job, storeId: STORE, why, expectedMs: undefined, log }
  }

  /** By the first job. */
  readonly sweeps = new Map<number, Sweep>()

  readonly submitted: string[] = []
  /** Why nothing can be submitted. */
  refusal: string | undefined

  submitWords = async (): Promise<SubmitWords> => ({ options: ['--gpu', '--gang', '--on'], values: {} })

  async submit(text: string): Promise<readonly string[]> {
    if (this.refusal !== undefined) throw new MusterError('usage', this.refusal)
    this.submitted.push(text)
    return ['submitted job 9', 'warning: no host can ever hold this job.']
  }

  async sweep(id: number): Promise<Sweep | undefined> {
    return this.sweeps.get(id)
  }

  /** By number. */
  readonly studies = new Map<number, StudyReading>()
  sources: readonly ClusterSource[] = []
  readonly studyChanges: [number, StudyChange][] = []

  async study(id: number): Promise<StudyReading | undefined> {
    return this.studies.get(id)
  }

  async clusters(): Promise<readonly ClusterSource[]> {
    return this.sources
  }

  /** Undefined: no answer. */
  engineLog: Uint8Array | string | undefined
  readonly logsRead: EngineLog[] = []

  async readLog(log: EngineLog): Promise<Uint8Array | string> {
    this.logsRead.push(log)
    return this.engineLog ?? (await new Promise(() => {}))
  }

  async members(spec: number, kinds: readonly string[]): Promise<readonly number[]> {
    const { first = 0, count = 0 } = this.#groups.find((group) => group.spec === spec) ?? {}
    const own = this.jobs.filter(({ id }) => id >= first && id < first + count)
    return own.filter(({ state }) => kinds.includes(state.kind)).map(({ id }) => id)
  }
}
