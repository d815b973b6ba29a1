/**
 * A launcher is the shape of a gang: which bundles it has, what each of them does next, and what counts as done. It is pure: what a
 * bundle does next follows from what all bundles of its attempt have said so far, so a scheduler that carries on after a crash
 * decides the same. Docs: docs/launch.md; why: docs/decisions/0010-launchers.md.
 */
import type { ResourceRequest } from '../model/resources.ts'
import type { Needs } from '../plans/needs.ts'
import type { RingDirection } from './ring.ts'

/** A launcher that is only words and variables (rows.ts). */
export type LauncherRow = {
  /** Words that start a bundle; the command of the job follows, unless `{command}` stands here or in `first`. */
  readonly command: readonly string[]
  /** Words for the first bundle, if it differs. */
  readonly first?: readonly string[]
  readonly per: 'bundle' | 'host'
  /** TCP ports asked for on the first bundle's host. */
  readonly ports: number
  readonly environment: Readonly<Record<string, string>>
  /** `first`: the job is done when the first bundle is, and the others are stopped then. */
  readonly done: 'all' | 'first'
}

/** Bundles that ask for the same and do the same; ranks of bundles follow the order of roles. */
export type Role = {
  readonly name: string
  readonly count: number
  readonly request: ResourceRequest
  /** In each of its bundles, where that differs from role to role; undefined: as in the launcher's shape. */
  readonly ranks?: number
}

/** What a job keeps of its launcher: texts and numbers as `--OPTION VALUE` gave them. */
export type LaunchSpec = {
  readonly kind: string
  readonly options: Readonly<Record<string, string>>
  /** TCP ports that a firewall lets through: the first and the last one. */
  readonly ports: readonly [number, number]
  /** Ranks in each bundle; undefined: each bundle is one rank. */
  readonly ranks?: number
  /** In an engine: how many ranks the command, which runs once for all bundles, starts in each of them. */
  readonly ownRanks?: number
  /** The launcher itself, if it is one of hosts.yaml. */
  readonly row?: LauncherRow
  /** A line for sh that comes before everything: it enters an environment. */
  readonly setUp?: string
  /** Variables of every rank that the user did not set. */
  readonly environment?: Readonly<Record<string, string>>
}

/** The role of bundles that are all alike. */
export const HOST_ROLE = 'host'

export type LaunchShape = {
  readonly roles: readonly Role[]
  /** The job is done when these bundles are; the others are stopped then. Undefined: when all are. */
  readonly leaders?: readonly number[]
  /** Each bundle is one program on its host, which cannot share it with another one of the gang. */
  readonly isOnePerHost?: boolean
  /** Ranks in each bundle; undefined: each bundle is one rank. */
  readonly ranks?: number
}

/** The fact of a host on which the job cannot start: why. */
export const REFUSED = 'refuse'

/** Facts by name, as its host told them: believed about that host alone. */
export type Said = Readonly<Record<string, string>>

export type LaunchedBundle = {
  readonly role: string
  /** Among the bundles of its role. */
  readonly index: number
  readonly host: string
  /** At which the others reach it: an IP address, or a name. */
  readonly address: string
  readonly devices: readonly number[]
  readonly request: ResourceRequest
  readonly ranks: number
  readonly said: Said
  readonly hasBegun: boolean
}

export type LaunchedGang = {
  /** `JOB.ATTEMPT`: different for each start. */
  readonly id: string
  /** A line for sh: what the user wants to run. */
  readonly command: string
  /** Variables that the user set for the job. */
  readonly environment: Readonly<Record<string, string>>
  readonly spec: LaunchSpec
  readonly bundles: readonly LaunchedBundle[]
}

/**
 * `ask`: a program for sh runs on the bundle's host and tells facts (asking.ts); the question is not repeated once a fact of its
 * name was told. `refuse`: nothing begins, and the job fails with this reason.
 */
export type LaunchStep =
  | { readonly kind: 'ask'; readonly name: string; readonly program: string }
  | { readonly kind: 'start'; readonly command: string; readonly environment: Readonly<Record<string, string>> }
  | { readonly kind: 'wait' }
  | { readonly kind: 'refuse'; readonly reason: string }

/** `flags`: as in `slots <n>`, without dashes. `isRepeatable`: its values are joined by spaces. */
export type LaunchOption = {
  readonly flags: string
  readonly summary: string
  readonly values?: RegExp
  readonly isRepeatable?: boolean
  /** Its value is a number of jobs, submitted together. */
  readonly isCopies?: boolean
}

/** Of launchers that have a `ringDirection`. */
export const ORDER: LaunchOption = {
  flags: 'order <name>',
  summary: 'order ranks as-placed, or by the measured links: ring (default)',
  values: /^(ring|as-placed)$/,
}

export interface Launcher {
  /** As in `--launch`. */
  readonly name: string
  readonly summary: string
  readonly options: readonly LaunchOption[]
  /** `perHost`: as in `--per-host`. @throws MusterError 'usage' when options contradict each other. */
  shape(options: LaunchSpec['options'], bundles: number, request: ResourceRequest, perHost?: number): LaunchShape
  next(gang: LaunchedGang, bundle: number): LaunchStep
  /**
   * The command stands between words of the launcher, so it has to be one simple command (one-command.ts). `hint`: what to write in
   * place of several. Undefined: the launcher runs any line for sh as a whole.
   */
  readonly inserts?: { readonly hint: string } | undefined
  /** What ranks import, for preflight. `python`: lines for sh that set MUSTER_PYTHON; undefined: python3. */
  imports?(options: LaunchSpec['options']): { readonly module: string; readonly python?: string }
  /** Of a service: where it answers, once it is ready. */
  endpoint?(gang: LaunchedGang): string | undefined
  /** The rank to which each rank sends in a ring all-reduce; undefined, or without it: nothing follows the order of bundles. */
  ringDirection?(options: LaunchSpec['options'], request: ResourceRequest): RingDirection | undefined
  /**
   * The launcher chooses which bundle has which ranks. Without it, the first bundle has the first ranks, the second one those that
   * follow, and so on.
   */
  choosesRanks?(options: LaunchSpec['options']): boolean
  /** What a person types to start the same without Muster; undefined: what `next` starts on each host. */
  byHand?(gang: LaunchedGang): readonly HandLine[]
  /** Undefined: it cannot run as one program of an engine. */
  readonly onEngine?: EngineLauncher
  /**
   * A line for sh that each bundle runs where an engine starts all of them. It finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_PORT,
   * MUSTER_HOSTS and MUSTER_ADDRESSES (by rank, at which the others reach a bundle); MUSTER_WHY names a file for the reason of a
   * failure, of which the first line counts; MUSTER_OUTPUT, where it runs once, begins the names of files for what each further rank
   * prints (`.1`, `.2` and so on). Undefined: it cannot run there.
   */
  inGang?(gang: GangOnEngine): string
  /** `inGang` runs once, where the engine lets it start programs on the nodes of the other bundles (`ownRanks`). */
  readonly startsOthers?: boolean
  /** Options that it does not have in an engine's gang. */
  readonly refusesInGang?: readonly string[]
}

export type GangOnEngine = Pick<LaunchedGang, 'command' | 'spec'> & { readonly roles: readonly Role[] }

/** Of a launcher whose program asks an engine (Ray) for bundles itself. */
export type EngineLauncher = {
  /** What it will ask for. @throws MusterError 'usage' when options contradict each other. */
  needs(options: LaunchSpec['options'], bundles: number, request: ResourceRequest): Needs
  /** Begins it on the node that the engine chose. It prints `readyLine` (base/ready-line.ts) once it answers, if it is a service. */
  command(gang: LaunchedGang): string
}

export type HandLine = { readonly host: string; readonly command: string }
