/** The engines of `muster job submit --engine` beside Muster itself: a new one is a folder of src/ops and a line in ENGINES. */
import type { Clock } from '../../base/clock.ts'
import type { JsonRecord } from '../../base/json-lines.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import type { Declared } from '../../ops/kernel/area.ts'
import { type LogPiece, NO_FILES } from '../../ops/kernel/host-output.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import { KUBERNETES_ENGINE } from '../../ops/kubernetes/job-engine.ts'
import { checkSharedDirectory, directoryProblem } from '../../ops/nfs/shared-directory.ts'
import { wantedNfs } from '../../ops/nfs/wanted.ts'
import { RAY_ENGINE } from '../../ops/ray/job-engine.ts'
import { SLURM_ENGINE } from '../../ops/slurm/job-engine.ts'
import {
  type ClusterJobDetails,
  type EngineOrder,
  type EngineUsage,
  enginePlace,
  type JobEngine,
  type OutputSearch,
  type ProveStorage,
  placeTitle,
} from '../../scheduler/jobs/engine.ts'
import { engineRanks, isFinal, type Job, type JobSpec } from '../../scheduler/jobs/job.ts'
import { bundleKey } from '../../scheduler/jobs/orders.ts'
import type { dijobOf } from '../../scheduler/launch/dijob.ts'
import type { EngineNode } from '../../scheduler/plans/needs.ts'
import type { CliContext } from '../command-line/verb.ts'

export type EngineKind = Omit<JobEngine, 'locate' | 'round' | 'proveStorage' | 'searchOutput'> & {
  /** For `muster job submit --help`: what places and runs the job. */
  readonly summary: string
  /** Where it is documented how hosts.yaml declares it. */
  readonly docs: string
  /** Options of `muster job submit` that it cannot carry out. */
  readonly refuses: readonly string[]
  /** Options of `muster job submit` that are for engines alone. */
  readonly takes?: readonly string[]
  /** With --needs: its nodes as hosts.yaml declares them; Infinity: unknown. */
  declaredNodes?(inventory: Inventory): readonly EngineNode[]
  /** Hosts of hosts.yaml that it places jobs on. */
  nodeHosts?(inventory: Inventory): readonly string[]
  readonly mostCommandBytes: number
  /** It starts each bundle of a gang itself, as `inGang` of Launcher needs it. */
  readonly startsGangs?: boolean
  /** A program in its gangs can start others on the nodes of all bundles. */
  readonly startsOthers?: boolean
  /** It has `usage`. */
  readonly showsUsage?: boolean
  /** Why it cannot run such a job at all, in a sentence; undefined: it can. */
  whyNot?(spec: JobSpec, inventory: Inventory): string | undefined
  isDeclared(inventory: Inventory): boolean
  /** With it, `--from-env image:NAME` is the image that it runs the job in. */
  readonly runsImages?: boolean
  /** Undefined: it is not declared. */
  open(declared: Declared, context: Pick<CliContext, 'environment' | 'signal'>): OpenEngine | undefined
}

/** Its reads never reject, and are bounded. */
type OpenEngine = Partial<Disposable> & {
  locate(hosts: OpsHosts, signal: AbortSignal): ReturnType<NonNullable<JobEngine['locate']>>
  round(
    orders: readonly EngineOrder[],
    hosts: OpsHosts,
    signal: AbortSignal,
    wantsRoom: boolean,
  ): ReturnType<JobEngine['round']>
  /** With --storage: as `proveStorage` of JobEngine. */
  storageProblems?(
    path: string,
    nodes: readonly string[],
    hosts: OpsHosts,
    signal: AbortSignal,
  ): ReturnType<NonNullable<JobEngine['proveStorage']>>
  /** For --dry-run: what would be handed over, and when it would start, or why never. Never rejects. */
  tryOut?(
    start: Omit<Extract<EngineOrder, { kind: 'start' }>, 'kind'>,
    hosts: OpsHosts,
    signal: AbortSignal,
  ): Promise<EngineTrial>
  /**
   * For --as dijob: as `tryOut`, of the DIJob that `write` makes with the template of pods that run a line for sh. Rejects where
   * `write` throws.
   */
  tryDijob?(
    start: Parameters<NonNullable<OpenEngine['tryOut']>>[0],
    write: (template: (line: string) => JsonRecord) => ReturnType<typeof dijobOf>,
    hosts: OpsHosts,
    signal: AbortSignal,
  ): Promise<EngineTrial>
  /** For pictures of its cluster; a string: why nothing is known. */
  usage?(hosts: OpsHosts, signal: AbortSignal): Promise<EngineUsage | string>
  /** Follows it until disposed, where an engine tells of changes itself; else `usage` is read again and again. */
  watchUsage?(hosts: OpsHosts, clock: Clock, onUsage: (usage: EngineUsage | string) => void): Disposable
  /** More about a job of `usage`; a string: why nothing is known. */
  details?(
    job: Pick<EngineUsage['jobs'][number], 'id' | 'user'>,
    hosts: OpsHosts,
    signal: AbortSignal,
  ): Promise<ClusterJobDetails | string>
  /** A piece of what a bundle printed, stdout and stderr together; empty: there is none. A string: why it cannot be read. */
  log(piece: LogPiece, hosts: OpsHosts, signal: AbortSignal): Promise<Uint8Array | string>
  /** As `searchOutput` of JobEngine. */
  searchOutput(search: OutputSearch, hosts: OpsHosts, signal: AbortSignal): Promise<string | undefined>
}

/** `trouble`: it could not be asked. */
export type EngineTrial = {
  readonly script: string
  readonly words?: string
  readonly isNever?: boolean
  readonly trouble?: string
}

export const ENGINES: readonly EngineKind[] = [RAY_ENGINE, SLURM_ENGINE, KUBERNETES_ENGINE]

/** Hosts on which the own queue and an engine place jobs, each without knowing of the other's: a sentence for each engine. */
export const sharedHostsWords = (inventory: Inventory): readonly string[] =>
  ENGINES.flatMap(({ name, nodeHosts }) => {
    const hosts = nodeHosts?.(inventory) ?? []
    if (hosts.length === 0) return []
    const runs = hosts.length === 1 ? 'also runs' : 'also run'
    return [`${foldHostSet(hosts)} ${runs} jobs of ${placeTitle(enginePlace(name))}, which knows nothing of this queue`]
  })

export type Engine = EngineKind & OpenEngine

export type Engines = ReadonlyMap<string, Engine>

/** Those that hosts.yaml declares, by name. Disposing ends what they keep open. */
export async function openEngines(inventory: Inventory, context: CliContext): Promise<Engines & Disposable> {
  const kinds = ENGINES.filter((kind) => kind.isDeclared(inventory))
  const declared = kinds.length === 0 ? undefined : await declaredOf(inventory, context)
  const engines = new Map(
    kinds.flatMap((kind) => {
      const opened = declared && kind.open(declared, context)
      return opened === undefined ? [] : [[kind.name, { ...kind, ...opened }]]
    }),
  )
  return Object.assign(engines, {
    [Symbol.dispose]() {
      for (const engine of engines.values()) engine[Symbol.dispose]?.()
    },
  })
}

async function declaredOf(inventory: Inventory, { environment, signal }: CliContext): Promise<Declared> {
  const resolved = await resolveEndpoints(inventory, inventory.hosts, { env: environment, signal })
  return { inventory, endpoints: new Map(resolved.map((endpoint) => [endpoint.host, endpoint])) }
}

/** For jobs that Muster launches itself. */
export const hostStorage =
  (inventory: Inventory, hosts: OpsHosts, context: CliContext): ProveStorage =>
  async (path, nodes, signal) => {
    const shares = wantedNfs(await declaredOf(inventory, context))?.shares ?? []
    return (await checkSharedDirectory(path, nodes, { hosts, signal, shares })).map(directoryProblem)
  }

/** As the driver needs them. */
export const driverEngines = (engines: Engines, hosts: OpsHosts): readonly JobEngine[] =>
  [...engines.values()].map((engine) => ({
    ...engine,
    locate: (signal) => engine.locate(hosts, signal),
    round: (orders, signal, wantsRoom) => engine.round(orders, hosts, signal, wantsRoom),
    searchOutput: (search, signal) => engine.searchOutput(search, hosts, signal),
    ...(engine.storageProblems === undefined
      ? {}
      : {
          proveStorage: (path, nodes, signal) =>
            engine.storageProblems?.(path, nodes, hosts, signal) ?? Promise.resolve([]),
        }),
  }))

/** Reads pieces of what a bundle printed, as `log`; undefined: Muster runs the job itself, or hosts.yaml no longer declares its engine. */
export function engineLog(engines: Engines, storeId: string, job: Job, rank: number) {
  const engine = engines.get(job.spec.engine ?? '')
  const own = { key: bundleKey(storeId, job, 0), rank: engineRanks(job.spec) > 1 ? rank : undefined }
  return (
    engine &&
    (async (piece: Pick<LogPiece, 'fromByte' | 'mostBytes'>, hosts: OpsHosts, signal: AbortSignal) => {
      const read = await engine.log({ ...own, ...piece }, hosts, signal)
      // Of one that has not ended, there are none yet.
      return read === NO_FILES && !isFinal(job.state) ? new Uint8Array() : read
    })
  )
}
