/**
 * Problems found before any process starts, each with its cause and fix. Ray itself reports many of them only after minutes, or
 * with exit code 0. Pure.
 */

import { formatBytes } from '../../base/format-bytes.ts'
import { formatDuration } from '../../base/time-text.ts'
import { clockDifference } from '../kernel/clock.ts'
import { type KnownFacts, knownValue } from '../kernel/fact.ts'
import { type Finding, onHost } from '../kernel/finding.ts'
import type { Operation } from '../kernel/operation.ts'
import { ipOf } from './addresses.ts'
import type { FactsOfHosts, RayFacts } from './facts.ts'
import { findingsOfConnections, WHAT_JOINS_NETWORKS } from './findings-of-connections.ts'
import { finding, findingsOfInstallation } from './findings-of-installation.ts'
import { processesOf, takenBy } from './processes.ts'
import { nodesOf, type RayNode, type RayWanted } from './wanted.ts'

type Own = KnownFacts<RayFacts>

/** For a host whose node will start; `before`: operations that are planned first. */
export function findingsBeforeStart(
  wanted: RayWanted,
  node: RayNode,
  facts: FactsOfHosts,
  before: readonly Operation[],
): readonly Finding[] {
  const own = facts.get(node.host)?.facts
  if (own === undefined) return []
  return [
    ...unknownFacts(node, own),
    ...findingsOfResources(node),
    ...findingsOfLabels(node),
    ...findingsOfKeeping(wanted, node, own),
    ...findingsOfAddress(wanted, node, facts, own),
    ...findingsOfInstallation(wanted, node, facts, before),
    ...findingsOfPorts(wanted, node, facts, own),
    ...findingsOfConnections(wanted, node, facts),
    ...findingsOfClock(wanted, node, facts),
    ...findingsOfSpace(wanted, node, own),
  ]
}

/** Risks of what hosts.yaml declares. */
export function findingsOfDeclaration({ head, dashboardHost, hasToken }: RayWanted): readonly Finding[] {
  if (hasToken || /^(127\.|localhost$|::1$)/.test(dashboardHost)) return []
  const cause = `anyone who can reach the dashboard at ${dashboardHost} can run programs on all nodes`
  const hint = 'It has no password. Muster needs it at 127.0.0.1 only: remove dashboard_host, or set ray.auth: token.'
  return [finding(head, 'risk', 'open-dashboard', cause, { hint })]
}

function unknownFacts(node: RayNode, own: Own): Finding[] {
  const needed = ['installed', 'processes', 'addresses'] as const
  return needed.flatMap((name) => {
    const fact = own[name]
    return fact.kind === 'known' ? [] : finding(node, 'blocker', 'unknown', `cannot determine ${name}: ${fact.because}`)
  })
}

function findingsOfResources(node: RayNode): Finding[] {
  return Object.entries(node.custom).flatMap(([name, amount]) => {
    if (Number.isInteger(amount)) return []
    const cause = `a custom resource must be a whole number, not ${amount} ${name}`
    return [finding(node, 'blocker', 'part-of-resource', cause)]
  })
}

/** As Ray reads them, which are Kubernetes' rules. */
const LABEL = /^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/
const LABEL_PREFIX = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/

function findingsOfLabels(node: RayNode): Finding[] {
  return Object.entries(node.labels).flatMap(([name, label]) => {
    const [key = '', prefix] = name.split('/').toReversed()
    const isName = LABEL.test(key) && (prefix === undefined || LABEL_PREFIX.test(prefix)) && !name.startsWith('ray.io/')
    if (isName && name.split('/').length <= 2 && (label === '' || LABEL.test(label))) return []
    const hint =
      'Use at most 63 letters, digits, _ . and -, with a letter or digit at both ends; ray.io/ is reserved for Ray.'
    return [finding(node, 'blocker', 'label', `Ray does not accept the label ${name}=${label}`, { hint })]
  })
}

const NO_SUPERVISE = 'Without ray.supervise in hosts.yaml the node starts all the same, and muster ray up restarts it.'

/** Problems of containers and of supervision. */
function findingsOfKeeping({ isSupervised }: RayWanted, node: RayNode, own: Own): Finding[] {
  const { environment } = node
  if (environment?.kind === 'docker') {
    const isShared = /(^|\s)--net(work)?[= ]host(\s|$)/.test(environment.options)
    const hint = 'Its options in hosts.yaml need --network host (and --shm-size for objects).'
    const apart = `the container ${environment.name} has its own network, where other nodes cannot reach it`
    const supervised = 'systemd cannot supervise a node inside a container'
    return [
      ...(isShared ? [] : [finding(node, 'blocker', 'container-network', apart, { hint })]),
      ...(isSupervised ? [finding(node, 'blocker', 'no-systemd', supervised, { hint: NO_SUPERVISE })] : []),
    ]
  }
  if (!isSupervised || knownValue(own.unit)?.kind !== 'no-systemd') return []
  const cause = 'systemd does not manage services for this login'
  return [finding(node, 'blocker', 'no-systemd', cause, { hint: NO_SUPERVISE })]
}

function findingsOfAddress(wanted: RayWanted, node: RayNode, facts: FactsOfHosts, own: Own): Finding[] {
  const ip = ipOf(node, facts)
  const declare = `Set the address in hosts.yaml under ray: node_ips: { ${node.host}: IP }.`
  if (ip === undefined) {
    const cause = 'hosts.yaml has no IP address that the node can announce'
    return [finding(node, 'blocker', 'no-ip', cause, { hint: declare })]
  }
  if (ip.startsWith('127.') && nodesOf(wanted).length > 1) {
    const cause = `it would announce ${ip}, a loopback address, at which other nodes reach themselves`
    return [finding(node, 'blocker', 'loopback-ip', cause, { hint: declare })]
  }
  const addresses = knownValue(own.addresses)?.own ?? []
  if (addresses.length === 0 || addresses.includes(ip)) return []
  const others = addresses.filter((address) => !address.startsWith('127.'))
  const cause = `${ip} is not an address of the host, so its node cannot listen on it`
  const hint = `It is behind a router or a bridge that translates addresses (NAT, WSL2). ${declare} It must be an address of the host that the others can reach: they need ${WHAT_JOINS_NETWORKS}.`
  return [finding(node, 'blocker', 'foreign-ip', cause, { detail: `it has ${others.join(', ')}`, hint })]
}

function findingsOfPorts(wanted: RayWanted, node: RayNode, facts: FactsOfHosts, own: Own): Finding[] {
  const { port, ports, dashboardPort, dashboardHost } = wanted
  const listeners = knownValue(own.listeners) ?? []
  const processes = knownValue(own.processes) ?? []
  // Ours are stopped before the head starts.
  const headIp = ipOf(wanted.head, facts) ?? ''
  const ours = new Set(processesOf(processes, headIp, port).map(({ pid }) => pid))
  // Without ss the owner of a port is unknown; it may be ours.
  const isBlind = ours.size > 0 && listeners.every(({ pid }) => pid === undefined)
  const everywhere = '0.0.0.0'
  const needed = [
    [node.isHead ? port : undefined, everywhere, 'port', 'the head'],
    [node.isHead ? dashboardPort : undefined, dashboardHost, 'dashboard_port', 'the dashboard'],
    [ports.nodeManager, everywhere, 'ports.node_manager', 'the raylet'],
    [ports.objectManager, everywhere, 'ports.object_manager', 'objects'],
  ] as const
  return needed.flatMap(([needs, address, key, what]): Finding[] => {
    const taken = needs === undefined ? undefined : takenBy(listeners, needs, address)
    if (taken === undefined || isBlind || ours.has(taken.pid ?? 0)) return []
    const cluster = processes.find(({ pid }) => pid === taken.pid)?.cluster
    const holder = taken.pid === undefined ? 'a process of another user' : `${taken.name} (process ${taken.pid})`
    const cause = `port ${needs} for ${what} is in use by ${holder}${cluster === undefined ? '' : `, of the Ray cluster at ${cluster}`}`
    const hint = `Stop it, or set another port (ray.${key} in hosts.yaml).`
    return [finding(node, 'blocker', 'port-taken', cause, { hint })]
  })
}

function findingsOfClock({ head }: RayWanted, node: RayNode, facts: FactsOfHosts): Finding[] {
  const difference = node.isHead ? undefined : clockDifference(facts.get(node.host), facts.get(head.host))
  if (difference === undefined) return []
  const cause = `the clock is ${difference.isAhead ? 'ahead of' : 'behind'} that of ${head.host}`
  const fix = onHost('timedatectl set-ntp true')
  const detail = `more than ${formatDuration(difference.limitMs)}`
  return [finding(node, 'risk', 'clock-off', cause, { detail, fix })]
}

/** What Ray takes for objects where nothing is declared; beyond the second it takes what fits (resolve_object_store_memory). */
const USUAL_SHARE = 0.3
const USUAL_MOST_BYTES = 10e9
/** Something is left for others. */
const SHARE_OF_SHM = 0.9
/** Ray stores no objects from this usage on. */
const FULL_PERCENT = 95

function findingsOfSpace({ objectStoreBytes, tempDirectory }: RayWanted, node: RayNode, own: Own): Finding[] {
  const space = knownValue(own.space)
  if (space === undefined) return []
  const findings: Finding[] = []
  if (!space.isTempWritable) {
    const hint = 'Another user owns it: set ray.temp_dir in hosts.yaml to another directory.'
    findings.push(finding(node, 'blocker', 'temp-dir', `cannot write to ${tempDirectory}`, { hint }))
  }
  if (space.tempUsedPercent >= FULL_PERCENT) {
    const cause = `the disk of ${tempDirectory} is full: Ray stores no objects from ${FULL_PERCENT} % on`
    findings.push(finding(node, 'risk', 'disk-full', cause, { detail: `${space.tempUsedPercent} %` }))
  }
  const wantedBytes = objectStoreBytes ?? Math.min(space.memoryBytes * USUAL_SHARE, USUAL_MOST_BYTES)
  if (space.sharedBytes < wantedBytes) {
    const size = Math.ceil(wantedBytes / SHARE_OF_SHM)
    const cause = `/dev/shm is smaller than the object store, which will use the disk instead`
    const what = objectStoreBytes === undefined ? "Ray's choice" : 'object_store'
    const detail = `${formatBytes(space.sharedBytes)}, ${what} is ${formatBytes(wantedBytes)}`
    const more =
      node.environment?.kind === 'docker'
        ? { hint: `Lower ray.object_store, or add --shm-size ${size} to the container's options.` }
        : { fix: onHost(`mount -o remount,size=${size} /dev/shm`) }
    findings.push(finding(node, 'risk', 'small-shm', cause, { detail, ...more }))
  }
  return findings
}
