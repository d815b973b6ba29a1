/** What squeue and the directory of a job say about it, and what follows from that. Pure. */
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { FULL_CODE, UNSHARED_CODE } from './script.ts'

/** A line of squeue. */
export type SlurmJob = {
  readonly id: string
  /** As squeue writes it: PENDING, RUNNING, COMPLETING … */
  readonly state: string
  /** wait(2) */
  readonly status: number
  /** Why it waits, or why it failed. */
  readonly reason: string
  /** When it started, or is expected to; in seconds since the epoch. */
  readonly startS?: number
  /** When it ended, or has to. */
  readonly endS?: number
  /** Empty while it waits. */
  readonly nodes: string
  readonly name: string
}

/** The width of each column: what is longer is cut. Names are keys of Muster. */
const COLUMNS = {
  ...{ JobID: 20, State: 24, exit_code: 12, Reason: 120, StartTime: 24, EndTime: 24, NodeList: 128, Name: 80 },
} as const

/** For `squeue -O` and `sinfo -O`. */
export const columnFormat = (columns: Readonly<Record<string, number>>): string =>
  Object.entries(columns)
    .map(([name, width]) => `${name}:.${width}`)
    .join()

export const SQUEUE_FORMAT = columnFormat(COLUMNS)

/**
 * Prints `job` and the columns of each job with tabs between them, `? LINE` for any other line, and at the end `? whole` if squeue
 * succeeded. The last column may contain anything, also line breaks: the rest of it is too short to pass for a line.
 */
export function squeueRows(columns: Readonly<Record<string, number>>, before = ''): string {
  const widths = Object.values(columns)
  const headWidth = widths.slice(0, -1).reduce((sum, width) => sum + width, 0)
  return `{ LC_ALL=C SLURM_TIME_FORMAT=%s ${before}squeue -h -a -O '${columnFormat(columns)}' 2>&1 && echo whole; } | LC_ALL=C awk '
  BEGIN { columns = split("${widths.join(' ')}", width, " ") }
  length($0) < ${headWidth} { print "? " $0; next }
  {
    line = "job"; from = 1
    for (i = 1; i <= columns; i++) {
      cell = substr($0, from, width[i]); from += width[i]
      gsub(/^ +| +$/, "", cell); gsub(/\t/, " ", cell)
      line = line "\t" cell
    }
    print line
  }'`
}

export type Gres = 'gpu' | 'shard'

/** How many of one kind `gpu:a100:2(S:0),shard:8` are. */
export function countOfGres(gres: string, kind: Gres): number {
  const found = gres.matchAll(/(?:^|,)(gpu|shard)(?::[^:,(]+)?:(\d{1,6})/g)
  return [...found].reduce((sum, [, name, count]) => sum + (name === kind ? Number(count) : 0), 0)
}

export const LINE_WIDTH = Object.values<number>(COLUMNS).reduce((sum, width) => sum + width)

/** The year 2100. */
const MOST_S = 4_102_444_800
/** Slurm takes a job without a time limit for one of a year. */
const FAR_S = 300 * 86_400

/** Of text whose characters are bytes, as the widths of columns are. */
export const decoded = (bytes: string): string => printable(Buffer.from(bytes, 'latin1').toString())

/** A character of the line is a byte. Undefined: another line. */
export function parseJob(line: string, nowS?: number): SlurmJob | undefined {
  if (line.length !== LINE_WIDTH) return undefined
  let from = 0
  const cells = Object.values(COLUMNS).map((width) => {
    from += width
    return line.slice(from - width, from).trim()
  })
  const [id = '', state = '', status = '', reason = '', start = '', end = '', nodes = '', name = ''] = cells
  if (!/^\d{1,12}$/.test(id) || !/^[A-Z_]{2,24}$/.test(state) || !/^-?\d{1,10}$/.test(status)) return undefined
  const own = { id, state, status: Number(status), reason: decoded(reason), nodes: decoded(nodes), name }
  return { ...own, ...defined({ startS: startOf(start, nowS), endS: startOf(end, nowS) }) }
}

/** The clock of the host that printed it: `now SECONDS`. */
export function nowOf(text: string): number | undefined {
  const digits = /^now (\d{1,11})$/m.exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Undefined: unknown, or so far away as behind jobs without a time limit. */
export const startOf = (text: string, nowS = MOST_S): number | undefined =>
  /^\d{1,11}$/.test(text) && Number(text) < Math.min(MOST_S, nowS + FAR_S) ? Number(text) : undefined

/** What a round found of a job. */
export type SlurmSight = {
  /** Those with its name: more than one if a submission was repeated. */
  readonly jobs: readonly SlurmJob[]
  /** The number of the one that runs it, or `barred`. */
  readonly claim?: string | undefined
  /** What its script noted at its end. */
  readonly end?: string | undefined
  /** Why it failed, as its launcher told. */
  readonly why?: string | undefined
  /** By the clock of its node when it began, and how long that node had been up then and at its end, all in seconds. */
  readonly times?: string | undefined
  /** Slurm has it, and what it says of it could not be parsed. */
  readonly isUnclear?: boolean
  /** It was submitted before. */
  readonly isKnown: boolean
  /** It was submitted in this round, after squeue was asked. */
  readonly isHanded?: boolean
  /** What sbatch said when it refused it. */
  readonly refusal?: string | undefined
}

type SlurmEnd =
  | { readonly kind: 'exit'; readonly code: number; readonly isOutOfMemory?: boolean; readonly why?: string }
  | { readonly kind: 'unable' | 'refused'; readonly reason: string }
  | { readonly kind: 'gone'; readonly reason: string; readonly isCancelled?: boolean; readonly isTimedOut?: boolean }

export type SlurmReport = 'waiting' | 'running' | 'barred' | 'lost' | 'forgotten' | SlurmEnd

export const BARRED = 'barred'

const gone = (reason: string) => ({ kind: 'gone', reason }) as const
const CANCELLED = { kind: 'gone', reason: 'cancelled in Slurm', isCancelled: true } as const
const TIMED_OUT = { kind: 'gone', reason: 'stopped by Slurm at its time limit', isTimedOut: true } as const
const PREEMPTED = { kind: 'unable', reason: 'stopped by Slurm for a job of higher priority' } as const

const WAITING = ['PENDING', 'CONFIGURING', 'REQUEUED', 'REQUEUE_FED', 'REQUEUE_HOLD', 'SPECIAL_EXIT', 'RESV_DEL_HOLD']
const RUNNING = ['RUNNING', 'SUSPENDED', 'STOPPED', 'SIGNALING', 'STAGE_OUT', 'RESIZING', 'COMPLETING']

/** The job that counts: the one with the claim, else one that has not ended. */
export function jobOf({ jobs, claim }: Pick<SlurmSight, 'jobs' | 'claim'>): SlurmJob | undefined {
  if (claim !== undefined) return jobs.find(({ id }) => id === claim)
  return jobs.find(({ state }) => [...WAITING, ...RUNNING].includes(state)) ?? jobs[0]
}

export type SlurmTimes = { readonly agoMs: number; readonly ranMs?: number }

/**
 * How long ago it began and how long it ran, of one that runs or has ended: as its script measured it, else in Slurm's whole seconds.
 * `nowS`: by the clock of the login host.
 */
export function timesOf(sight: Pick<SlurmSight, 'jobs' | 'claim' | 'times'>, nowS: number): SlurmTimes | undefined {
  const of = (beganS: number, ranS = -1) => ({
    agoMs: (nowS - beganS) * 1000,
    ...(ranS < 0 ? {} : { ranMs: Math.round(ranS * 1000) }),
  })
  const measured = /^(\d{1,11}) (\d{1,10}(?:\.\d{1,6})?) (\d{1,10}(?:\.\d{1,6})?)$/.exec(sight.times ?? '')?.slice(1)
  if (measured !== undefined) {
    const [beganS = 0, from = 0, to = 0] = measured.map(Number)
    return of(beganS, to - from)
  }
  const { state = '', startS, endS, nodes = '' } = jobOf(sight) ?? {}
  // One that was cancelled before it began has both times, but no nodes.
  if (startS === undefined || nodes === '' || WAITING.includes(state)) return undefined
  return RUNNING.includes(state) || endS === undefined ? of(startS) : of(startS, endS - startS)
}

/** Undefined: nothing is known yet. */
export function reportOf(kind: 'start' | 'check' | 'stop', sight: SlurmSight): SlurmReport | undefined {
  const report = reportOfSight(kind, sight)
  if (typeof report !== 'object' || report.kind !== 'exit' || report.code === 0) return report
  const why = decoded(sight.why ?? '').trim()
  return why === '' ? report : { ...report, why }
}

function reportOfSight(kind: 'start' | 'check' | 'stop', sight: SlurmSight): SlurmReport | undefined {
  const { claim, end, isKnown, refusal } = sight
  if (claim === BARRED) return 'barred'
  if (sight.isUnclear) return undefined
  const job = jobOf(sight)
  const noted = end === undefined ? undefined : endOf(end)
  if (job !== undefined) {
    const report = reportOfJob(job, noted, claim !== undefined)
    // Its job knows why it was stopped.
    return kind === 'stop' && report === CANCELLED ? 'lost' : report
  }
  if (noted !== undefined) return noted
  if (sight.isHanded) return 'waiting'
  if (refusal !== undefined) return isPassing(refusal) ? undefined : { kind: 'refused', reason: refusalWords(refusal) }
  if (claim !== undefined) return 'lost'
  if (kind === 'start') return isKnown ? 'forgotten' : undefined
  return kind === 'check' || isKnown ? 'forgotten' : 'barred'
}

function reportOfJob(job: SlurmJob, noted: SlurmEnd | undefined, hasBegun: boolean): SlurmReport {
  const { state, nodes } = job
  if (WAITING.includes(state)) return 'waiting'
  switch (state) {
    case 'COMPLETED':
      return noted ?? { kind: 'exit', code: 0 }
    case 'FAILED':
      return noted ?? failureOf(job, hasBegun)
    case 'CANCELLED':
    case 'REVOKED':
      return CANCELLED
    case 'TIMEOUT':
      return TIMED_OUT
    case 'DEADLINE':
      return gone('its deadline in Slurm passed')
    case 'OUT_OF_MEMORY':
      return { kind: 'exit', code: 137, isOutOfMemory: true }
    case 'PREEMPTED':
      return PREEMPTED
    case 'NODE_FAIL':
      // A controller that comes back late takes nodes for failed that it has not heard of meanwhile.
      return noted?.kind === 'exit' && noted.code === 0
        ? noted
        : gone(`a node failed while it ran: ${nodes || 'unknown'}`)
    case 'BOOT_FAIL':
      return gone('a node did not boot')
    default:
      // What something else has ended is told by the state that follows.
      return state === 'COMPLETING' && noted?.kind === 'exit' ? noted : 'running'
  }
}

const SHARE_IT = 'set directory in slurm of hosts.yaml to one that all nodes share'

function failureOf({ status, reason, nodes }: SlurmJob, hasBegun: boolean): SlurmEnd {
  const code = (status & 127) === 0 ? (status >> 8) & 255 : 128 + (status & 127)
  if (reason === 'BadConstraints') return { kind: 'refused', reason: `Slurm refused it: ${REASONS.BadConstraints}` }
  if (!hasBegun && code === UNSHARED_CODE)
    return {
      kind: 'refused',
      reason: `its node cannot use the directory of the job: ${SHARE_IT}`,
    }
  if (!hasBegun && code === FULL_CODE)
    return {
      kind: 'unable',
      reason: 'the disk or the quota of its directory is full: check them with df and quota',
    }
  // slurmd itself cannot write the output there.
  if (!hasBegun && reason === 'JobLaunchFailure') {
    const node = nodes || 'its node'
    return {
      kind: 'refused',
      reason: `${node} could not start it (JobLaunchFailure): the log of slurmd there says why. If it does not see the directory of the job, ${SHARE_IT}`,
    }
  }
  if (!hasBegun && reason !== 'NonZeroExitCode') return gone(`Slurm could not start it: ${reason}`)
  return { kind: 'exit', code }
}

/** `exit CODE`, and of a command that failed the state and its reason, as squeue said then. */
function endOf(text: string): SlurmEnd | undefined {
  const [, digits = '', state = '', reason = ''] =
    /^exit (\d{1,3})(?: ([A-Z_]{1,40})(?: (\S{1,200}))?.*)?$/.exec(text.trim()) ?? []
  if (digits === '') return undefined
  const code = Math.min(255, Number(digits))
  // As long as its script runs, a job is completing only if something has ended it.
  if (code === 0 || state !== 'COMPLETING') return { kind: 'exit', code }
  if (reason === 'TimeLimit') return TIMED_OUT
  return reason === 'NodeDown' ? gone('a node failed while it ran') : CANCELLED
}

/** Messages that do not say that the job itself is wrong. */
const PASSING =
  /contact slurm controller|timed out|temporarily|try again|submit limit|munge|connection|communication|backup|not responding|in standby|zero bytes|authentication|fatal:/i

/** What Slurm's programs write where the cluster cannot be used, and what that means. */
const TROUBLES: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/establish a configuration source|fetch_config/, 'the login host has no slurm.conf'],
  [/start munged|munge\.socket/, 'munged is not running on the login host. Run there: systemctl start munge'],
  [
    /zero bytes were transmitted|authentication error|invalid credential|protocol authentication|(rewound|expired) credential/i,
    'its controller does not accept the login host: their munge keys or clocks differ. Test: munge -n | ssh CONTROLLER unmunge',
  ],
  [/unable to contact slurm controller/i, 'its controller does not answer; jobs that run continue'],
]

/** Of text whose characters are bytes. */
export function troubleWords(text: string): string {
  return TROUBLES.find(([pattern]) => pattern.test(text))?.[1] ?? decoded(text.trim().slice(-MOST_WORDS))
}

export const isPassing = (refusal: string): boolean => refusal === '' || PASSING.test(refusal)

const MOST_WORDS = 300

/** What helps against words of sbatch. */
const ADVICE: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/invalid partition/i, 'Correct partition in slurm of hosts.yaml'],
  [
    /invalid account/i,
    'Set account in slurm of hosts.yaml to one of yours. To list them, run: sacctmgr show associations',
  ],
  [/invalid qos/i, 'Correct qos in slurm of hosts.yaml'],
  [/feature specification|reservation|invalid node name/i, 'Correct options in slurm of hosts.yaml'],
  [
    /configuration is not available|can not be satisfied|generic resource|more processors/i,
    'To see what its nodes have, run: muster pack --engine slurm',
  ],
]

/** What sbatch wrote to stderr, without its own name, and what helps. */
export function refusalWords(text: string): string {
  const parts = text
    .split(/\bs(?:batch|run): (?:error: )?|\n/)
    .map((part) => part.replace(/^Batch job submission failed: /, '').trim())
    .filter((part) => part !== '')
  const words = decoded([...new Set(parts)].join('; ')).slice(0, MOST_WORDS) || 'no reason given'
  const advice = ADVICE.find(([pattern]) => pattern.test(words))?.[1]
  return `Slurm refused it: ${words}${advice === undefined ? '' : `. ${advice}`}`
}

/** Codes of squeue(1), in words. */
const REASONS: Readonly<Record<string, string>> = {
  None: 'Slurm has not considered it yet',
  Resources: 'waiting for other jobs to free what it asks for',
  Priority: 'jobs of higher priority go first',
  PartitionConfig: 'it asks for more than any node of the partition has: it never starts',
  PartitionNodeLimit: 'it asks for more nodes than the partition has or allows: it never starts',
  PartitionTimeLimit: 'its time limit is longer than that of the partition: it never starts',
  PartitionDown: 'the partition is down',
  PartitionInactive: 'the partition takes no jobs',
  DependencyNeverSatisfied: 'a job that it depends on failed: it never starts',
  Dependency: 'waiting for a job that it depends on',
  ReqNodeNotAvail: 'nodes that it needs are down, drained or reserved',
  Reservation: 'waiting for its reservation',
  Licenses: 'waiting for licenses',
  JobHeldUser: 'held in Slurm. Run: scontrol release',
  JobHeldAdmin: 'held in Slurm by an administrator',
  BeginTime: 'its start time in Slurm has not come',
  QOSMaxJobsPerUserLimit: 'you run as many jobs as the QOS allows',
  AssocGrpGRES: 'your account uses all GPUs that it may',
  AssocGrpCpuLimit: 'your account uses all cores that it may',
  AssocMaxJobsLimit: 'you run as many jobs as your account may',
  BadConstraints: 'no node of the partition can ever hold it',
  NodeDown: 'a node that it needs is down',
  Nodes_required_for_job_are_DOWN: 'nodes that it needs are down, drained or reserved',
  Prolog: 'its nodes are being prepared',
  Cleaning: 'its last run is being cleaned up',
  InvalidAccount: 'the account is not valid: it never starts',
  InvalidQOS: 'the QOS is not valid: it never starts',
}

/** Why a job does not go on that has begun. */
export const SUSPENDED = 'suspended in Slurm'

/** Why a job waits, in a sentence with Slurm's own code. */
export function reasonWords(reason: string): string {
  // Reasons such as `Nodes required for job are DOWN, …` are sentences already; ReqNodeNotAvail may name nodes.
  const [code = ''] = reason.split(/[,(\s]/)
  const words = Object.hasOwn(REASONS, code) ? REASONS[code] : undefined
  return words === undefined ? `Slurm: ${reason || 'no reason given'}` : `${words} (${reason})`
}
