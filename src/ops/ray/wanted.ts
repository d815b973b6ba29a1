/** What hosts.yaml declares about Ray: the head, its workers, and their resources. Pure. */
import { isIPv4 } from 'node:net'
import { defined } from '../../base/defined.ts'
import type { Host } from '../../inventory/host.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { type EnvironmentSpec, section as envSection } from '../env/section.ts'
import type { Declared } from '../kernel/area.ts'
import { type RaySpec, section } from './section.ts'

export type RayNode = {
  readonly host: string
  readonly isHead: boolean
  /** The IP address that it announces, if hosts.yaml has one; undefined: the address at which SSH reaches the host. */
  readonly ip?: string
  /** Where the other nodes connect to it: an address or a name. */
  readonly address: string
  /** Whole units; undefined: Ray counts by itself. */
  readonly cpu?: number
  readonly gpu?: number
  readonly memoryBytes?: number
  readonly custom: Readonly<Record<string, number>>
  readonly labels: Readonly<Record<string, string>>
  /** Where Ray is on the host; undefined: in the PATH of the login. */
  readonly environment?: EnvironmentSpec
}

/** Undefined in `ports` and `objectStoreBytes`: Ray's choice. */
export type RayWanted = Omit<RaySpec, 'head' | 'workers' | 'nodeIps' | 'labels' | 'tempDirectory'> & {
  readonly head: RayNode
  readonly workers: readonly RayNode[]
  readonly tempDirectory: string
  /** The file of the environment; undefined: it follows another host's, or Muster does not make it. */
  readonly source?: EnvironmentSource
}

export const DEFAULT_TEMP_DIRECTORY = '/tmp/ray'

export function wantedRay(declared: Declared): RayWanted | undefined {
  const { inventory, endpoints } = declared
  const ray = sectionOf(inventory, section)
  if (ray === undefined) return undefined
  const { head, workers, nodeIps, labels, tempDirectory = DEFAULT_TEMP_DIRECTORY, ...shared } = ray
  const environment = sectionOf(inventory, envSection)
  const source = sourceOf(declared)
  const byName = new Map(inventory.hosts.map((host) => [host.name, host]))
  const node = (name: string): RayNode => {
    const address = nodeIps[name] ?? endpoints.get(name)?.address ?? name
    const isLocal = endpoints.get(name)?.transport === 'local' && nodeIps[name] === undefined
    return {
      host: name,
      isHead: name === head,
      address,
      ...(isIPv4(address) && !isLocal ? { ip: address } : {}),
      ...resourcesOf(byName.get(name)),
      labels: labelsOf(byName.get(name), labels),
      ...(environment?.hosts.includes(name) ? { environment } : {}),
    }
  }
  return {
    ...shared,
    head: node(head),
    workers: workers.filter((name) => name !== head).map(node),
    tempDirectory,
    ...(source === undefined ? {} : { source }),
  }
}

/** Ray takes whole numbers of processors only. */
function resourcesOf(host: Host | undefined) {
  const { cpu, gpu, memoryBytes, custom = {} } = host?.resources ?? {}
  return { custom, ...defined({ cpu: cpu && Math.floor(cpu), gpu, memoryBytes }) }
}

function labelsOf(host: Host | undefined, names: readonly string[]): Record<string, string> {
  const labels = new Map(Object.entries(host?.labels ?? {}))
  return Object.fromEntries(
    names.flatMap((name) => {
      const label = labels.get(name)
      return label === undefined ? [] : [[name, label]]
    }),
  )
}

export function nodesOf({ head, workers }: RayWanted): readonly RayNode[] {
  return [head, ...workers]
}

export function nodeOf(wanted: RayWanted, host: string): RayNode | undefined {
  return nodesOf(wanted).find((node) => node.host === host)
}

/** The first port of Ray's workers; a firewall treats the following ones alike. */
const WORKER_PORT = 10_002

/** The ports at which other nodes must reach a node, as far as they are known before it runs. */
export function portsOf({ port, ports }: RayWanted, { isHead }: RayNode): readonly number[] {
  const { nodeManager, objectManager, workers: [first] = [WORKER_PORT] } = ports
  return [...(isHead ? [port] : []), nodeManager ?? [], objectManager ?? [], first].flat()
}

/** Where the head asks its own dashboard. */
export function dashboardAddress({ dashboardHost, dashboardPort }: RayWanted): string {
  const host = dashboardHost === '0.0.0.0' || dashboardHost === '::' ? '127.0.0.1' : dashboardHost
  return `${host.includes(':') ? `[${host}]` : host}:${dashboardPort}`
}

/** The file that the environment is made from, and whether it names Ray. */
export type EnvironmentSource = {
  /** As hosts.yaml has it. */
  readonly path: string
  /** `unknown`: it was not read, or does not list packages. */
  readonly namesRay: 'yes' | 'no' | 'unknown'
  /** It names every package; else dependencies may bring more. */
  readonly isComplete: boolean
}

export function sourceOf({ inventory, files }: Declared): EnvironmentSource | undefined {
  const environment = sectionOf(inventory, envSection)
  const path = environment?.file
  if (environment === undefined || path === undefined) return undefined
  const file = files?.get(path)
  const isComplete = (environment.kind === 'venv' && path.endsWith('.toml')) || path.endsWith('uv.lock')
  const text = file?.kind === 'text' ? file.text : ''
  if (text === '' || environment.kind === 'docker') return { path, namesRay: 'unknown', isComplete }
  const names = environment.kind === 'conda' ? CONDA : isComplete ? LOCK : REQUIREMENT
  return { path, namesRay: names.test(text) ? 'yes' : 'no', isComplete }
}

/** A requirement of pip, also one by its file or address. */
const REQUIREMENT = /^\s*(ray\s*($|[[=<>!~;@#])|.*\bray-\d)/im
/** `name = "ray"` of uv.lock and pylock.toml. */
const LOCK = /^\s*name\s*=\s*["']ray["']/m
/** `- ray-default=2.9`, `- conda-forge::ray-core`, `- ray[default]` for pip; lists of packages have a line each. */
const CONDA = /^\s*(-\s*)?["']?([\w-]+::)?ray(-[a-z]+)?\s*["']?\s*($|[[=<>!~;@#\s])|\/ray-(core|default|all)-\d/m
