/**
 * A study: which points to try, how to choose them, and when to stop; and its trials, each of which runs one point. Pure.
 */
import type { Metric, MetricValues } from '../jobs/metric.ts'
import { makeSpace, type Point, parseCondition, parseParameter, type Space } from './space.ts'

export type StudySpec = {
  /** As for `--param`; those of `--if` begin with `if `. In the order in which they were given. */
  readonly parameters: readonly string[]
  /** Significant digits of numbers that may be any. */
  readonly digits?: number
  /** A method of ask.ts, `pbt`, or a sampler of Optuna: `tpe`, `optuna:CmaEsSampler`. */
  readonly method: string
  readonly seed: number
  /** What it optimises; several make a front. Also when nothing is optimised, as in a grid, they are read. */
  readonly metrics: readonly Metric[]
  /** How often each point is tried. */
  readonly repeat: number
  /** At most so many trials at the same time; undefined: as many as run, and one that waits. */
  readonly atOnce?: number
  /** No trial begins later than this after the first. */
  readonly limitS?: number
  /** It stops when this many trials in a row have failed. */
  readonly failures: number
  readonly prune?: PruneSpec
  readonly pbt?: PbtSpec
  /** Where Optuna runs. */
  readonly sampler?: SamplerPlace
  /** Programs ask for its points and tell their values; it has no jobs. */
  readonly isAsked?: boolean
  /** It runs elsewhere, and is only read. */
  readonly source?: StudySource
}

/** `rule`: median, or halving by this factor. */
export type PruneSpec = {
  readonly rule: 'median' | 'halving'
  /** Of halving: one of so many goes on. */
  readonly factor?: number
  /** The metric that counts steps; undefined: `step`. */
  readonly stepMetric: string
  /** No trial is stopped before this step, */
  readonly fromStep: number
  /** or before so many others have reached it. */
  readonly fromTrials: number
}

/** The words of Ray Tune's PopulationBasedTraining. */
export type PbtSpec = {
  readonly population: number
  readonly timeAttr: string
  readonly perturbationInterval: number
  readonly quantileFraction: number
  readonly resampleProbability: number
  /** `NAME=uniform:0:1`, `NAME=loguniform:1e-5:1e-1`, `NAME=choice:8,16,32`; a parameter without one is never changed. */
  readonly mutate: readonly string[]
  /** A command line that reads parameters as JSON and prints others. */
  readonly explore?: string
  /** A directory that all hosts share; undefined: checkpoints are copied from host to host. */
  readonly checkpoints?: string
}

/** `setUp`: lines of sh that make `python3` that of an environment; `environment`: its name, for people. */
export type SamplerPlace = {
  readonly host: string
  readonly environment?: string
  readonly setUp: string
  readonly options: Readonly<Record<string, string>>
}

/** `kind`: an Optuna storage, or the directory of a Ray Tune experiment. */
export type StudySource = {
  readonly kind: 'optuna' | 'ray'
  readonly url: string
  /** The study in that storage. */
  readonly name?: string
  /** Where it is read; undefined: on this machine. */
  readonly host?: string
  /** Lines of sh that make its Python the first one of PATH. */
  readonly setUp?: string
  /** Of parameters that have another name there, by their names here. */
  readonly names?: Readonly<Record<string, string>>
  /** Of Ray: the metrics, by their names there. */
  readonly metrics?: readonly string[]
  /** When its first trial began, by which another study in its place is noticed. */
  readonly beganMs?: number
  /** The state of its files at the last reading. */
  readonly mark?: string
}

export type StudyState = {
  /** `stopped`: by its user; `done`: by itself. */
  readonly kind: 'running' | 'stopped' | 'done'
  /** How many trials it may have; undefined: until all points are tried. */
  readonly trials?: number
  /** Why it is stopped or done. */
  readonly reason?: string
  readonly endedMs?: number
  /** When its first trial was stored, or the first one after it was continued. */
  readonly beganMs?: number
  /** It was continued: failures of trials before this one count no more. */
  readonly failuresFrom?: number
  /** How often users let ended trials run again: trials alone do not show that they did. */
  readonly retries?: number
  /** Why it has no next point yet. */
  readonly trouble?: string
  /** Suggestions of points that were tried already, and how many were replaced by another point. */
  readonly repeated: number
  readonly replaced: number
  readonly population?: PopulationState
}

/** What population-based training remembers; all else follows from its trials. */
export type PopulationState = {
  readonly marks: readonly MemberMark[]
  /** Where the checkpoints of members are, as their hosts were when they last ran. */
  readonly hosts: Readonly<Record<number, string>>
  /** Members that are being replaced, at most one each. */
  readonly replacements: readonly Replacement[]
}

/**
 * Of a member when it last came an interval further: its value (none: its training diverged), and the time attribute then. `isWaiting`: it
 * will be compared when the others have come as far.
 */
export type MemberMark = {
  readonly member: number
  readonly value?: number
  readonly step: number
  readonly isWaiting?: true
}

/**
 * One member continues from a checkpoint of another. Each phase may be repeated: `exploring`: the command of --explore is asked for
 * its point; `copying`: the checkpoint is copied beside the member's; `stopping`: its job is stopped; `moving`: the copy takes the
 * place of its checkpoint, and then its next trial begins. `dropping`: it is given up, and what was copied is removed.
 */
export type Replacement = {
  readonly phase: 'exploring' | 'copying' | 'stopping' | 'moving' | 'dropping'
  readonly member: number
  /** Its trial that is stopped. */
  readonly victim: number
  /** The member whose checkpoint it takes, that member's trial, and how far that is. */
  readonly source: number
  readonly parent: number
  readonly step: number
  /** Hosts of the checkpoints. */
  readonly from: string
  readonly to: string
  readonly point: Point
  /** For the trial that is stopped. */
  readonly reason: string
  /** The finished copy: its name, and a digest of its files. */
  readonly copy?: { readonly name: string; readonly digest: string }
}

export type Study = {
  readonly id: number
  readonly name: string
  readonly user: string
  readonly priority: number
  readonly createdMs: number
  /** Part of the name of its checkpoints' directory; undefined: an earlier version made it. */
  readonly stamp?: string | undefined
  readonly spec: StudySpec
  readonly state: StudyState
  /** The number of its jobs' specification; undefined: it has no jobs. */
  readonly jobSpec: number | undefined
}

/** `open`: it waits or runs, and its job tells which. */
export type TrialKind = 'open' | TrialEnd['kind']

/** `pruned`: stopped by its study; `cancelled`: by a person. */
export const ENDED_KINDS = ['done', 'pruned', 'failed', 'cancelled'] as const

export type TrialEnd = {
  readonly kind: (typeof ENDED_KINDS)[number]
  /** By name, as printed. */
  readonly values: MetricValues
  /** Why it failed, was pruned or cancelled. */
  readonly reason?: string
  readonly host?: string
  readonly devices?: readonly number[]
  readonly startedMs?: number
  readonly endedMs: number
}

export type Trial = {
  /** From 0. */
  readonly number: number
  readonly point: Point
  /** From 0: with `repeat`, which time it is that the point is tried. */
  readonly repetition: number
  /** Undefined: a program asked for it, or it ran elsewhere. */
  readonly job: number | undefined
  readonly end: TrialEnd | undefined
  /** It took the place of a suggestion that had been tried. */
  readonly isReplaced?: boolean
  /** Why it is being stopped by its study: it will be pruned, not failed. */
  readonly stopping?: string
  /** Of a population: whose place it has, and the trial from which its checkpoint comes. */
  readonly member?: number
  readonly parent?: number
  /** The time attribute of that checkpoint. */
  readonly parentStep?: number
  /** The program that asked for it. */
  readonly asker?: TrialAsker
}

/** `token`: what the program shows when it comes back. */
export type TrialAsker = {
  readonly token: string
  readonly sinceMs: number
  /** It is the program's until it is told, or until `untilMs`; else while the program is connected. */
  readonly isKept?: boolean
  readonly untilMs?: number
}

/** What it printed is no result. */
export const isWithoutResult = (end: TrialEnd | undefined): boolean =>
  end?.kind === 'failed' || end?.kind === 'cancelled'

/** A value that a trial printed while it ran. */
export type TrialStep = { readonly step: number; readonly value: number }

const spaces = new WeakMap<StudySpec, Space>()

/** @throws MusterError 'usage' */
export function spaceOf(spec: StudySpec): Space {
  const known = spaces.get(spec)
  if (known !== undefined) return known
  const space = makeSpace(
    spec.parameters.map((text) => (text.startsWith('if ') ? parseCondition(text.slice(3)) : parseParameter(text))),
    spec.digits,
  )
  spaces.set(spec, space)
  return space
}

/** The metric that counts steps; undefined: nothing is noted on the way. */
export const stepMetricOf = ({ prune, pbt }: StudySpec): string | undefined => prune?.stepMetric ?? pbt?.timeAttr
