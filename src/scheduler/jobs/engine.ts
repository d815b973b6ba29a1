/**
 * Engines (Ray) place and run jobs in Muster's stead. Such a job has one bundle, on a place named after the engine; the
 * queue keeps its number, turn, retries, limit and dependencies.
 */
import { defined } from '../../base/defined.ts'
import type { Said } from '../launch/launcher.ts'
import type { EngineNode } from '../plans/needs.ts'
import { type BundleEnd, type BundleState, type BundleTimes, ENDED_SILENTLY, type JobSpec } from './job.ts'

export const enginePlace = (engine: string): string => `@${engine}`

/** A place as people read it: a host by its name, `@ray` as Ray. */
export const placeTitle = (place: string): string =>
  place.startsWith('@') ? place.slice(1, 2).toUpperCase() + place.slice(2) : place

/** `key` is made of queue, job and attempt, so the engine starts it once, also for another scheduler. */
export type EngineOrder =
  | {
      readonly kind: 'start'
      readonly key: string
      readonly spec: JobSpec
      /** In the queue; higher ones go first. */
      readonly priority: number
      /** The variables of its specification and Muster's own. */
      readonly environment: Readonly<Record<string, string>>
    }
  /** `awaits`: the job is a service that has not said yet where it answers. */
  | { readonly kind: 'check' | 'stop'; readonly key: string; readonly awaits?: true }

/**
 * An exit code, a word, or how it ended. `waiting`: not started, or started again. `unable`: given up before it began, so it is
 * queued again. `barred`: stopped before the engine had it. `lost`: ended without an exit code. `forgotten`: it ran, and the
 * engine no longer knows it.
 */
export type EngineReport =
  | number
  | 'waiting'
  | 'running'
  | 'unable'
  | 'barred'
  | 'cancelled'
  | keyof typeof GONE
  | BundleEnd

/** Why a job waits in its engine, in a sentence, and when it is expected to start, in seconds since the epoch. */
export type EngineWait = { readonly why: string; readonly startS?: number }

/** What an engine said of its nodes, and what its jobs already have. */
export type EngineRoom = {
  readonly nodes: readonly EngineNode[]
  /** By key of a running job: how many bundles its placement groups have. */
  readonly taken: Readonly<Record<string, number>>
}

/** A problem of a directory on a host, with what to do about it; `isUnsure`: the host could not be asked. */
export type StorageProblem = { readonly words: string; readonly isUnsure: boolean }

/** Proves that a directory is the same one on these nodes; empty: it is. Never rejects. */
export type ProveStorage = (
  path: string,
  nodes: readonly string[],
  signal: AbortSignal,
) => Promise<readonly StorageProblem[]>

/** What the cluster of an engine has, and who holds it. */
export type EngineUsage = {
  /** What could not be read, in a sentence. */
  readonly note?: string
  readonly nodes: readonly {
    readonly name: string
    readonly cpuMilli: number
    readonly cpuUsedMilli: number
    readonly memoryBytes: number
    readonly memoryUsedBytes: number
    readonly gpus: number
    /** GPUs that the node itself says are held, as an engine may not tell the devices of each job. */
    readonly heldDevices?: readonly number[]
    /** Why it takes no jobs; empty: it does. */
    readonly trouble: string
    /** What it has in all is not known, only what is held. */
    readonly isBlind?: true
  }[]
  /** Of everybody. */
  readonly jobs: readonly {
    /** In the engine. */
    readonly id: string
    /** What its users call it, such as `8_3` of an array; undefined: its id. */
    readonly label?: string
    readonly name: string
    readonly user: string
    /** Of the user as whom Muster asks: its name may be a key of the queue. */
    readonly isOwn: boolean
    /** Why it waits, or the part of it that has no shares; undefined: nothing of it waits. */
    readonly waits?: string
    /** When what waits is expected to start, in seconds since the epoch. */
    readonly startS?: number
    readonly shares: readonly {
      readonly node: string
      readonly cpuMilli: number
      readonly memoryBytes: number
      readonly devices: readonly number[]
    }[]
  }[]
}

/** What can be done with a job of an engine's cluster that is not of the queue. */
export type ClusterAction = 'delete' | 'suspend' | 'resume'

/** More about a job of an engine's cluster. Its texts are printable. */
export type ClusterJobDetails = {
  /** What it is, for questions: `Job train in team-a`. */
  readonly title: string
  /** Why it waits, or how it ended: sentences. */
  readonly because: readonly string[]
  /** Oldest first. */
  readonly events: readonly { readonly atMs: number; readonly text: string }[]
  /** Those that the engine allows this user. */
  readonly actions: readonly ClusterAction[]
  /** Does it to the job that was read, not to another one that has its name by now. Undefined: done; else why not. Never rejects. */
  act(action: ClusterAction, signal: AbortSignal): Promise<string | undefined>
}

export type OutputSearch = {
  readonly jobs: readonly { readonly key: string; readonly isGang: boolean }[]
  /** How much of the end of what a job's first bundle printed is searched. */
  readonly mostBytes: number
  /** A program of sh; `tails`: by key, a program of sh that prints that end, and fails if it cannot be read. */
  programOf(tails: ReadonlyMap<string, string>): string
}

export interface JobEngine {
  /** As in `--engine` and in the queue's file. */
  readonly name: string
  /** How many of its jobs may wait inside it at once; the others wait in the queue, in its order. */
  readonly mostWaiting: number
  /** Between two rounds: `soon` after something changed, then longer and longer, up to `late`. */
  readonly pollMs: { readonly soon: number; readonly late: number }
  /**
   * Where its cluster is, as people would write it; undefined: not known now. A job that was handed over elsewhere is looked for, and
   * neither started nor given up for lost. Never rejects.
   */
  locate?(signal: AbortSignal): Promise<string | undefined>
  /**
   * Carries out orders, each of which may be given twice, and reports by key; missing keys are asked about again. Never
   * rejects. `trouble`: why the engine cannot be used now. `room`: if it was wanted and could be read.
   */
  round(
    orders: readonly EngineOrder[],
    signal: AbortSignal,
    wantsRoom: boolean,
  ): Promise<{
    readonly trouble: string | undefined
    readonly reports: ReadonlyMap<string, EngineReport>
    readonly room?: EngineRoom
    /** Of services that answer now, by key: the facts `ready`, `node` and `port`. */
    readonly said?: ReadonlyMap<string, Said>
    /** Of jobs that wait in it, by key. */
    readonly waits?: ReadonlyMap<string, EngineWait>
    /** Where jobs run or ran, by key, as a set of nodes such as `n[1-2]`. */
    readonly nodes?: ReadonlyMap<string, string>
    /** How long ago jobs began, by key, and how long those ran that have ended. */
    readonly times?: ReadonlyMap<string, { readonly agoMs: number; readonly ranMs?: number }>
  }>
  /** Runs a program where it can read what jobs printed, for their metrics; undefined: it could not run. Never rejects. */
  searchOutput?(search: OutputSearch, signal: AbortSignal): Promise<string | undefined>
  readonly proveStorage?: ProveStorage
}

/** It has the job, also if it was handed over at another address. */
export const isSighting = (report: EngineReport): boolean =>
  report === 'waiting' ||
  report === 'running' ||
  typeof report === 'number' ||
  (typeof report === 'object' && report.kind === 'exit')

const GONE = {
  lost: () => ENDED_SILENTLY,
  forgotten: (title: string) => `${title} no longer knows it`,
  refused: (title: string) => `${title} refused it`,
}

/** `on`: nodes. */
export function engineBundle(
  report: EngineReport,
  engine: string,
  on?: string,
  { beganMs, ranMs }: BundleTimes = {},
): BundleState {
  const nodes = defined({ nodes: on === '' ? undefined : on })
  if (report === 'waiting') return { kind: 'sent' }
  if (report === 'running') return { kind: 'begun', ...nodes, ...defined({ beganMs }) }
  const title = placeTitle(enginePlace(engine))
  const ended = (end: BundleEnd): BundleState => ({ kind: 'ended', end, ...nodes, ...defined({ beganMs, ranMs }) })
  if (typeof report === 'object') return ended(report)
  if (typeof report === 'number') return ended({ kind: 'exit', code: report })
  if (report === 'unable' || report === 'barred') return ended({ kind: report })
  if (report === 'cancelled') return ended({ kind: 'gone', reason: `cancelled in ${title}`, isCancelled: true })
  return ended({ kind: 'gone', reason: GONE[report](title) })
}
