/** The engines of `muster job submit --engine` beside Muster itself: a new one is a folder of src/ops and a line in ENGINES. */
import type { Inventory } from '../../inventory/inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import type { Declared } from '../../ops/kernel/area.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import { checkSharedDirectory, directoryProblem } from '../../ops/nfs/shared-directory.ts'
import { wantedNfs } from '../../ops/nfs/wanted.ts'
import { RAY_ENGINE } from '../../ops/ray/job-engine.ts'
import { isSuccess } from '../../ops/run/outcome.ts'
import { SLURM_ENGINE } from '../../ops/slurm/job-engine.ts'
import type { EngineOrder, EngineUsage, JobEngine, ProveStorage } from '../../scheduler/jobs/engine.ts'
import type { Job, JobSpec } from '../../scheduler/jobs/job.ts'
import { bundleKey } from '../../scheduler/jobs/orders.ts'
import type { EngineNode } from '../../scheduler/plans/needs.ts'
import type { CliContext } from '../command-line/verb.ts'

export type EngineKind = Omit<JobEngine, 'round' | 'proveStorage'> & {
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
  readonly mostCommandBytes: number
  /** It has `usage`. */
  readonly showsUsage?: boolean
  /** Why it cannot run such a job at all, in a sentence; undefined: it can. */
  whyNot?(spec: JobSpec, inventory: Inventory): string | undefined
  isDeclared(inventory: Inventory): boolean
  /** Undefined: it is not declared. */
  open(declared: Declared): OpenEngine | undefined
}

type OpenEngine = {
  /** Where the output of its jobs is read. */
  readonly host: string
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
  /** For pictures of its cluster: a program for its host, and what it says; a string: why nothing is known. */
  readonly usage?: { readonly program: string; parse(text: string): EngineUsage | string }
  /** Prints a piece of what a bundle printed, stdout and stderr together; fails if that cannot be read. */
  log(piece: {
    readonly key: string
    /** Undefined: the job has one bundle. */
    readonly rank: number | undefined
    /** Below 0: from the end. */
    readonly fromByte: number
    readonly mostBytes: number
  }): string
}

/** `trouble`: it could not be asked. */
export type EngineTrial = {
  readonly script: string
  readonly words?: string
  readonly isNever?: boolean
  readonly trouble?: string
}

export const ENGINES: readonly EngineKind[] = [RAY_ENGINE, SLURM_ENGINE]

export type Engine = EngineKind & OpenEngine

export type Engines = ReadonlyMap<string, Engine>

/** Those that hosts.yaml declares, by name. */
export async function openEngines(inventory: Inventory, context: CliContext): Promise<Engines> {
  const kinds = ENGINES.filter((kind) => kind.isDeclared(inventory))
  if (kinds.length === 0) return new Map()
  const declared = await declaredOf(inventory, context)
  return new Map(
    kinds.flatMap((kind) => {
      const opened = kind.open(declared)
      return opened === undefined ? [] : [[kind.name, { ...kind, ...opened }]]
    }),
  )
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

const OUTPUT_MS = 60_000

/** As the driver needs them. */
export const driverEngines = (engines: Engines, hosts: OpsHosts): readonly JobEngine[] =>
  [...engines.values()].map((engine) => ({
    ...engine,
    round: (orders, signal, wantsRoom) => engine.round(orders, hosts, signal, wantsRoom),
    output: {
      tail: (key, isGang, mostBytes) =>
        engine.log({ key, rank: isGang ? 0 : undefined, fromByte: -mostBytes, mostBytes }),
      run: async (program, signal) => {
        const stdin = Buffer.from(program)
        const { outcome, stdout } = await hosts.exec(engine.host, 'exec sh -s', { stdin, timeoutMs: OUTPUT_MS, signal })
        const text = Buffer.from(stdout).toString()
        if (isSuccess(outcome)) return text
        // What it has printed in time.
        const length = text.lastIndexOf('\n') + 1
        return length === 0 ? undefined : text.slice(0, length)
      },
    },
    ...(engine.storageProblems === undefined
      ? {}
      : {
          proveStorage: (path, nodes, signal) =>
            engine.storageProblems?.(path, nodes, hosts, signal) ?? Promise.resolve([]),
        }),
  }))

/** Undefined: Muster runs the job itself, or hosts.yaml does not declare its engine any more. */
export function engineLog(
  engines: Engines,
  storeId: string,
  job: Job,
  { rank, ...piece }: { readonly rank: number; readonly fromByte: number; readonly mostBytes: number },
) {
  const engine = engines.get(job.spec.engine ?? '')
  const key = bundleKey(storeId, job, 0)
  return (
    engine && {
      host: engine.host,
      script: engine.log({ key, rank: job.spec.bundles > 1 ? rank : undefined, ...piece }),
    }
  )
}
