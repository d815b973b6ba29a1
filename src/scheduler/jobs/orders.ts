/** What has to be done for a job on its places, from its state alone. */

import { shellQuote } from '../../base/shell-quote.ts'
import { linesByHand } from '../launch/by-hand.ts'
import { type HandLine, HOST_ROLE, type LaunchedGang, type LaunchStep } from '../launch/launcher.ts'
import { launcherOf } from '../launch/launcher-of.ts'
import { commandFor } from '../launch/one-command.ts'
import { type PreflightFinding, preflightFindings } from '../launch/preflight.ts'
import { type BundleOrder, enterDirectory } from './host-program.ts'
import {
  type ActiveState,
  type BundlePlace,
  type BundleState,
  isActive,
  type Job,
  type JobEvent,
  type JobSpec,
  requestsOf,
} from './job.ts'

const GRACE_MS = 10_000
/** Where rank 0 listens (PyTorch and others); spread so that gangs do not collide. */
const FIRST_PORT = 20_000
const PORTS = 10_000

export type PlacedOrder = { readonly host: string; readonly rank: number; readonly order: BundleOrder }

export type BundleName = Attempt & { readonly rank: number }
type Attempt = Pick<Job, 'id' | 'attempt' | 'stamp'>

/** The name of a bundle's directory on its host, and of a job in its engine. */
export function bundleKey(storeId: string, { id, attempt, stamp }: Attempt, rank: number): string {
  return [storeId, id, attempt, rank, ...(stamp === undefined ? [] : [stamp])].join('-')
}

/** Undefined: not of this queue. */
export function parseBundleKey(storeId: string, key: string): BundleName | undefined {
  const [, own, id, attempt, rank, stamp] = KEY.exec(key) ?? []
  if (own !== storeId) return undefined
  return { id: Number(id), attempt: Number(attempt), rank: Number(rank), stamp }
}

const KEY = /^([^-]+)-(\d{1,15})-(\d{1,15})-(\d{1,15})(?:-([0-9a-z]{1,15}))?$/

/** An older copy of a queue that is put back gives numbers out once more: bundles of what had them before are not meant. */
export const isOfAttempt = (name: Attempt, { id, attempt, stamp }: Attempt): boolean =>
  name.id === id && name.attempt === attempt && name.stamp === stamp

/**
 * Which job of the queue a job of this name in an engine is. Anybody may choose the name of another job, or a login host lie: none is
 * meant that the queue has not given to this engine, or in another attempt. `active`: the jobs that the queue has given to anything.
 */
export function jobsInEngine(
  storeId: string,
  engine: string,
  active: readonly Job[],
): (name: string) => number | undefined {
  const own = new Map(active.filter(({ spec }) => spec.engine === engine).map((job) => [job.id, job]))
  return (name) => {
    const key = parseBundleKey(storeId, name)
    const job = key && own.get(key.id)
    return key && job && isOfAttempt(key, job) ? job.id : undefined
  }
}

/** `addresses`: how hosts reach each other, by name. */
export function ordersFor(
  job: Job,
  storeId: string,
  addresses: ReadonlyMap<string, string>,
  nowMs: number,
): readonly PlacedOrder[] {
  const { state } = job
  if (!isActive(state)) return []
  const gang = launchedGang({ ...job, ...state }, addresses)
  return state.bundles.flatMap((bundle, rank): PlacedOrder[] => {
    const place = state.places[rank]
    if (bundle.kind === 'ended' || place === undefined) return []
    const key = bundleKey(storeId, job, rank)
    const on = (order: BundleOrder): PlacedOrder[] => [{ host: place.host, rank, order }]
    if (state.kind === 'ending')
      // Also where the clock was set back meanwhile.
      return on({ kind: 'stop', key, signal: Math.abs(nowMs - state.sinceMs) > GRACE_MS ? 'KILL' : 'TERM' })
    if (bundle.kind === 'begun') return on({ kind: 'check', key })
    const step = stepOf(gang, rank, job.spec)
    if (step?.kind === 'wait' || step?.kind === 'refuse') return []
    if (step?.kind === 'ask')
      return on({ kind: 'ask', key, name: step.name, program: asQuestion(job.spec, step.program) })
    const { directory, isUnlimited } = job.spec
    const request = requestsOf(job.spec)[rank] ?? job.spec.request
    const isLimited = request.memoryBytes > 0 && !isUnlimited
    return on({
      kind: 'start',
      key,
      run: {
        command: step === undefined ? job.spec.command : inEnvironment(job.spec, step.command),
        directory,
        environment: environmentOf(job, rank, state, addresses, step?.environment),
        limits: isLimited ? request : undefined,
        ...(step === undefined ? {} : { isLaunched: true }),
      },
    })
  })
}

/** In the directory of the command, with the variables that it will have, as PATH may be one of them. */
export function asQuestion(spec: JobSpec, program: string): string {
  const variables = Object.entries({ ...spec.launch?.environment, ...spec.environment })
  const own = variables.map(([name, value]) => `export ${name}=${shellQuote(value)}\n`).join('')
  return `${enterDirectory(spec.directory)}${own}${inEnvironment(spec, program)}`
}

/** What preflight found on the hosts of a launched job: it has begun all the same, unless one is a blocker. */
export function preflightOf(job: PlacedJob, addresses: ReadonlyMap<string, string>): readonly PreflightFinding[] {
  const gang = job.spec.engine === undefined ? launchedGang(job, addresses) : undefined
  const launcher = gang && launcherOf(gang.spec)
  return gang === undefined ? [] : preflightFindings(gang, launcher?.imports?.(gang.spec.options).module)
}

/** What a launcher runs on hosts, in the environment of its job. */
const inEnvironment = ({ launch }: JobSpec, program: string): string =>
  launch?.setUp === undefined ? program : `${launch.setUp}\n${program}`

export type PlacedJob = Pick<Job, 'id' | 'attempt' | 'spec'> & {
  readonly places: readonly BundlePlace[]
  readonly bundles?: readonly BundleState[] | undefined
}

/** The gang of a job with a launcher; undefined: it has none. */
export function launchedGang(
  { id, attempt, spec, places, bundles: states = [] }: PlacedJob,
  addresses: ReadonlyMap<string, string>,
): LaunchedGang | undefined {
  const { launch } = spec
  if (launch === undefined) return undefined
  const roles = (spec.roles ?? [{ name: HOST_ROLE, count: spec.bundles, ranks: undefined }]).flatMap(
    ({ name, count, ranks = launch.ranks ?? 1 }) =>
      Array.from({ length: count }, (_, index) => ({ role: name, index, ranks })),
  )
  const requests = requestsOf(spec)
  const bundles = places.map(({ host, devices }, rank) => {
    const bundle = states[rank]
    const said = bundle?.said ?? {}
    const role = roles[rank] ?? { role: HOST_ROLE, index: rank, ranks: launch.ranks ?? 1 }
    return {
      ...role,
      host,
      address: addresses.get(host) ?? host,
      devices,
      said,
      request: requests[rank] ?? spec.request,
      hasBegun: bundle?.kind === 'begun',
    }
  })
  return { id: `${id}.${attempt}`, command: spec.command, environment: spec.environment, spec: launch, bundles }
}

function stepOf(gang: LaunchedGang | undefined, rank: number, job: JobSpec): LaunchStep | undefined {
  if (gang === undefined) return undefined
  const reason = `this version does not know the launcher ${gang.spec.kind}`
  const launcher = launcherOf(gang.spec)
  // One that an earlier version took, or that somebody wrote into the queue's file.
  const taken = launcher && commandFor(launcher, gang.command)
  if (taken?.reason !== undefined) return { kind: 'refuse', reason: taken.reason }
  if (job.engine === undefined) return launcher?.next(gang, rank) ?? { kind: 'refuse', reason }
  const command = launcher?.onEngine?.command(gang) ?? inGang(job)
  return command === undefined ? { kind: 'refuse', reason } : { kind: 'start', command, environment: {} }
}

/** With the command that an engine gets. */
export function asHandedOver(spec: JobSpec): JobSpec {
  const command = inGang(spec)
  return command === undefined ? spec : { ...spec, command: inEnvironment(spec, command) }
}

/** What each bundle of a launched job runs where an engine starts all of them; undefined: its launcher cannot. */
function inGang({ launch, roles, command, bundles, request }: JobSpec): string | undefined {
  const all = roles ?? [{ name: HOST_ROLE, count: bundles, request }]
  return launch && launcherOf(launch)?.inGang?.({ command, spec: launch, roles: all })
}

/** How a person would start a job on these places without Muster; none where it has no launcher. */
export function handLinesOf(job: PlacedJob, addresses: ReadonlyMap<string, string>): readonly HandLine[] {
  const gang = job.spec.engine === undefined ? launchedGang(job, addresses) : undefined
  const launcher = gang && launcherOf(gang.spec)
  return launcher === undefined || gang === undefined ? [] : linesByHand(launcher, gang)
}

/** What follows for a launched job from what its bundles told: that it cannot start, or that it is ready. */
export function launchEvent(job: Job, addresses: ReadonlyMap<string, string>): JobEvent | undefined {
  const { state, spec } = job
  if (spec.launch === undefined || !isActive(state) || state.kind === 'ending') return undefined
  const gang = launchedGang({ ...job, ...state }, addresses)
  if (gang === undefined) return undefined
  for (const [rank, bundle] of state.bundles.entries()) {
    const step = bundle.kind === 'sent' ? stepOf(gang, rank, spec) : undefined
    if (step?.kind === 'refuse') return { kind: 'refused', reason: step.reason }
  }
  const endpoint = state.endpoint === undefined ? launcherOf(gang.spec)?.endpoint?.(gang) : undefined
  return endpoint === undefined ? undefined : { kind: 'ready', endpoint }
}

/** Muster sets these variables for each rank, so users cannot set them. */
export const isOwnVariable = (name: string): boolean =>
  /^(MUSTER_.*|RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT)$/.test(name)

function environmentOf(
  { id, attempt, spec }: Job,
  rank: number,
  { places, endpoints }: Pick<ActiveState, 'places' | 'endpoints'>,
  addresses: ReadonlyMap<string, string>,
  launched: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const request = requestsOf(spec)[rank] ?? spec.request
  const devices = places[rank]?.devices.join() ?? ''
  const reached = places.map(({ host }) => addresses.get(host) ?? host)
  return {
    CUDA_VISIBLE_DEVICES: devices,
    ROCR_VISIBLE_DEVICES: devices,
    ...spec.environment,
    MUSTER_JOB: String(id),
    MUSTER_ATTEMPT: String(attempt),
    MUSTER_RANK: String(rank),
    MUSTER_WORLD_SIZE: String(places.length),
    MUSTER_HOSTS: places.map(({ host }) => host).join(),
    MUSTER_ADDRESSES: reached.join(),
    ...(endpoints === undefined ? {} : { MUSTER_ENDPOINTS: endpoints.join() }),
    MUSTER_GPU_MILLI: String(request.gpuCount === 0 ? 0 : request.gpuMilli),
    RANK: String(rank),
    WORLD_SIZE: String(places.length),
    LOCAL_RANK: String(places.slice(0, rank).filter(({ host }) => host === places[rank]?.host).length),
    MASTER_ADDR: reached[0] ?? '',
    MASTER_PORT: String(FIRST_PORT + ((id * 7 + attempt) % PORTS)),
    // What the user set stays.
    ...Object.fromEntries(
      Object.entries({ ...launched, ...spec.launch?.environment }).filter(
        ([name]) => !Object.hasOwn(spec.environment, name),
      ),
    ),
  }
}
