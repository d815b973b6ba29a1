/** What keeps a host out of the cluster, found before anything is changed, each with its fix. Pure. */

import { counted } from '../../base/counted.ts'
import { formatDuration } from '../../base/time-text.ts'
import { clockDifference } from '../kernel/clock.ts'
import { knownValue } from '../kernel/fact.ts'
import { MADE_BY_MUSTER } from '../kernel/files.ts'
import { type Finding, onHost } from '../kernel/finding.ts'
import type { NodeState } from './cluster-fact.ts'
import { KEY_FILE } from './daemons.ts'
import type { FactsOfSlurmHost, FactsOfSlurmHosts } from './facts.ts'
import { FILES, type FileName, hostOf, isNodeName, LOGS, PORTS, type SlurmHost, type SlurmWanted } from './wanted.ts'

const blocker = (
  host: string,
  id: string,
  cause: string,
  more: Pick<Finding, 'detail' | 'hint' | 'fix'> = {},
): Finding => ({ host, gravity: 'blocker', id, cause, ...more })

/** What hosts.yaml leaves out of slurm.conf: then no host can have one. */
export function findingsOfDeclaration(
  { host, address, isNode, cpus, memoryMib }: SlurmHost,
  own?: FactsOfSlurmHost,
): Finding[] {
  const machine = knownValue(own?.machine)
  const there = machine && `resources: { cpu: ${machine.cores}, memory: ${machine.memoryMib}MiB }`
  const hint = `Set them in hosts.yaml${there === undefined ? '' : `; the whole machine is ${there}`}.`
  return [
    ...(isNodeName(host)
      ? []
      : [
          blocker(
            host,
            'no-node-name',
            `${host} cannot be the name of a node: Slurm takes letters, digits, _ and - only`,
          ),
        ]),
    ...(address === undefined
      ? [
          blocker(host, 'no-address', 'hosts.yaml gives no address at which the other hosts reach it', {
            hint: `Set it in hosts.yaml under slurm: node_ips: { ${host}: IP }.`,
          }),
        ]
      : []),
    ...(isNode && (cpus === undefined || memoryMib === undefined)
      ? [
          blocker(host, 'no-resources', 'hosts.yaml does not say how many cores and how much memory jobs may use', {
            hint,
          }),
        ]
      : []),
  ]
}

/** Only blockers. */
export function findingsBeforeStart(wanted: SlurmWanted, own: SlurmHost, facts: FactsOfSlurmHosts): Finding[] {
  const known = facts.get(own.host)?.facts
  if (known === undefined) return []
  return [
    ...unknownFacts(own, known),
    ...foreignFiles(own, known),
    ...hostName(own, known),
    ...versions(wanted, own, facts),
    ...clocks(wanted, own, facts),
    ...devices(own, known),
  ]
}

const NEEDED: Readonly<Partial<Record<keyof FactsOfSlurmHost, string>>> = {
  programs: 'which programs there are',
  slurm: FILES.slurm,
  gres: FILES.gres,
  cgroup: FILES.cgroup,
  key: 'the munge key',
  daemons: 'the processes',
  machine: 'its name and devices',
}

function unknownFacts({ host }: SlurmHost, known: FactsOfSlurmHost): Finding[] {
  return Object.entries(NEEDED).flatMap(([name, what]) => {
    const fact = known[name as keyof FactsOfSlurmHost]
    return fact.kind === 'known' ? [] : blocker(host, 'unknown', `cannot determine ${what}: ${fact.because}`)
  })
}

const USE = 'To use this cluster as it is, declare only its login host: slurm: { login: HOST }.'

/** What Muster did not make is never changed. */
function foreignFiles({ host }: SlurmHost, known: FactsOfSlurmHost): Finding[] {
  const files = (Object.entries(FILES) as [FileName, string][]).flatMap(([name, path]): Finding[] => {
    const file = knownValue(known[name])
    if (file === undefined || file.kind === 'none') return []
    if (file.kind === 'other') return [blocker(host, 'not-a-file', `${path}: ${file.because}`)]
    if (file.text.startsWith(`${MADE_BY_MUSTER}\n`)) return []
    const hint = `${USE} To replace it, move it away on this host: mv ${path} ${path}.old`
    return [blocker(host, 'foreign-cluster', `${path} is not Muster's, and Muster does not change it`, { hint })]
  })
  const slurm = knownValue(known.slurm)
  const running = (knownValue(known.daemons)?.processes ?? []).find(
    ({ daemon }) => daemon === 'slurmd' || daemon === 'slurmctld',
  )
  if (files.length === 0 && slurm?.kind === 'none' && running !== undefined && recordedKey(known) === undefined) {
    const cause = `${running.daemon} runs here with a configuration that is not Muster's`
    files.push(blocker(host, 'foreign-cluster', cause, { hint: USE, detail: `process ${running.pid}` }))
  }
  const key = knownValue(known.key)
  const isKeyThere = key !== undefined && key.kind !== 'absent'
  const isOwnKey = recordedKey(known) !== undefined
  const isFromPackage = knownValue(known.packages)?.own.includes('munge') === true
  // The package makes a key when it is installed; where it is not installed, the login sees no directory that it may not read.
  if (isKeyThere && !isOwnKey && !isFromPackage) {
    const hint = `Other programs may use it. If none does, remove it on this host: sudo rm ${KEY_FILE}`
    files.push(blocker(host, 'foreign-key', `${KEY_FILE} is not Muster's, and Muster does not change it`, { hint }))
  }
  return files
}

/** The sum of the key that Muster put there; undefined: none. */
export function recordedKey(known: Pick<FactsOfSlurmHost, 'record'>): string | undefined {
  const record = knownValue(known.record)
  return record?.kind === 'file' ? /^key ([0-9a-f]{64})$/m.exec(record.text)?.[1] : undefined
}

/** slurmd looks itself up by the name of its host, and slurmctld too. */
function hostName({ host, isController, isNode }: SlurmHost, known: FactsOfSlurmHost): Finding[] {
  const name = knownValue(known.machine)?.hostName
  if (name === undefined || name === host || !(isController || isNode)) return []
  const program = isController ? 'slurmctld' : 'slurmd'
  const cause = `its host name is ${name}, so ${program} would not find ${host} in slurm.conf`
  const hint = 'Or give the host this name in hosts.yaml.'
  return [blocker(host, 'host-name', cause, { hint, fix: onHost(`sudo hostnamectl set-hostname ${host}`) })]
}

/** In the order in which they came out. */
const RELEASES = '20.11 21.08 22.05 23.02 23.11 24.05 24.11 25.05 25.11'.split(' ')
const OLDEST = 2

const releaseOf = (known: FactsOfSlurmHost | undefined): string | undefined =>
  /^\d\d\.\d\d/.exec(knownValue(known?.programs)?.version ?? '')?.[0]

function versions({ spec }: SlurmWanted, { host, isController }: SlurmHost, facts: FactsOfSlurmHosts): Finding[] {
  const controller = spec.cluster?.controller ?? ''
  const [own, others] = [releaseOf(facts.get(host)?.facts), releaseOf(facts.get(controller)?.facts)]
  if (isController || own === undefined || others === undefined || own === others) return []
  const [here, there] = [RELEASES.indexOf(own), RELEASES.indexOf(others)]
  const detail = `${own}, ${controller} has ${others}`
  if (here < 0 || there < 0 ? own > others : here > there) {
    const cause = `its Slurm is newer than the one on ${controller}, which refuses it`
    return [blocker(host, 'version', cause, { detail, hint: `Upgrade Slurm on ${controller} first.` })]
  }
  if (here >= 0 && there >= 0 && there - here <= OLDEST) return []
  const cause = `its Slurm is more than ${OLDEST} releases older than the one on ${controller}, which refuses it`
  return [blocker(host, 'version', cause, { detail, hint: 'Upgrade it.' })]
}

/** A credential of munge is valid for so long. */
const CREDENTIAL_MS = 300_000

function clocks({ spec }: SlurmWanted, { host }: SlurmHost, facts: FactsOfSlurmHosts): Finding[] {
  const controller = spec.cluster?.controller ?? ''
  const difference = host === controller ? undefined : clockDifference(facts.get(host), facts.get(controller))
  if (difference === undefined || difference.limitMs < CREDENTIAL_MS) return []
  const cause = `the clock is ${difference.isAhead ? 'ahead of' : 'behind'} that of ${controller}, and munge refuses credentials of another time`
  const detail = `more than ${formatDuration(difference.limitMs)}`
  return [blocker(host, 'clock-off', cause, { detail, fix: onHost('sudo timedatectl set-ntp true') })]
}

/** Without its device files Slurm sets the node to `inval`, and drains it. */
function devices({ host, gpus }: SlurmHost, known: FactsOfSlurmHost): Finding[] {
  const there = knownValue(known.machine)?.gpus ?? []
  const missing = Array.from({ length: gpus }, (_, index) => index).filter((index) => !there.includes(index))
  if (missing.length === 0) return []
  const cause = `hosts.yaml declares ${counted(gpus, 'GPU')}, and there is no /dev/nvidia${missing[0]}`
  const detail = there.length === 0 ? 'it has none' : `it has ${there.map((index) => `/dev/nvidia${index}`).join(', ')}`
  const hint = `Load the driver, or set resources: { gpu: ${there.length} } in hosts.yaml.`
  return [blocker(host, 'no-device', cause, { detail, hint, fix: onHost('sudo nvidia-smi') })]
}

/** What is declared beyond what the machine has, and devices that are not declared. */
export function findingsOfMachine(
  { host, isNode, cpus = 0, memoryMib = 0, gpus }: SlurmHost,
  known: FactsOfSlurmHost,
): Finding[] {
  const machine = knownValue(known.machine)
  if (machine === undefined || !isNode) return []
  const more = (what: string, declared: string, there: string): Finding => {
    const cause = `hosts.yaml declares more ${what} than it has: jobs get in each other's way`
    return { host, gravity: 'risk', id: 'too-much', cause, detail: `${declared} declared, ${there} there` }
  }
  const others = machine.gpus.length - gpus
  return [
    ...(cpus > machine.cores ? [more('cores', `${cpus}`, `${machine.cores}`)] : []),
    ...(memoryMib > machine.memoryMib ? [more('memory', `${memoryMib} MiB`, `${machine.memoryMib} MiB`)] : []),
    ...(others > 0
      ? [{ host, gravity: 'note' as const, id: 'spare-gpus', cause: `${others} of its GPUs are not declared` }]
      : []),
  ]
}

/** Drained by Slurm for a cause that the plan has removed by then, or by Muster itself. */
export const isResumable = ({ state, reason }: NodeState): boolean =>
  /^(drain|inval)/.test(state) && /^(gres\/|Low (RealMemory|CPUs|socket)|muster down slurm)/.test(reason)

/** A node that takes no jobs; undefined: it does. `host`: where this is said. */
export function findingOfNode(wanted: SlurmWanted, host: string, node: NodeState): Finding | undefined {
  const { name, state, isSilent, reason } = node
  const { cluster } = wanted.spec
  const gravity = cluster === undefined ? 'risk' : 'blocker'
  const who = host === name ? 'Slurm' : `Slurm on ${host}`
  const detail = reason === '' ? undefined : reason
  const of = (id: string, cause: string, more: Pick<Finding, 'hint' | 'fix'>): Finding => {
    return { host, gravity, id, cause, ...(detail === undefined ? {} : { detail }), ...more }
  }
  if (isSilent || state === 'unknown' || /^down/.test(state)) {
    const controller = cluster?.controller ?? host
    const hint =
      cluster === undefined
        ? `scontrol show node ${name} says more.`
        : `slurmd runs there? ${LOGS}/slurmd.log says more. ${controller} connects to its port ${PORTS.slurmd}, and it to port ${PORTS.slurmctld} of ${controller}.`
    return of('node-down', `${name} is ${state}: ${who} gets no answer from it`, { hint })
  }
  if (/^drain/.test(state)) {
    const hint = 'Once the reason is gone:'
    return of('node-drained', `${name} is ${state} and takes no new jobs`, {
      hint,
      fix: onHost(`sudo scontrol update nodename=${name} state=resume`),
    })
  }
  if (/^(inval|fail|error|maint|reserved|future|power)/.test(state)) {
    const hint =
      state === 'inval'
        ? 'It reports less than slurm.conf declares. Compare resources in hosts.yaml with the machine.'
        : `scontrol show node ${name} says more.`
    return of('node-out', `${name} is ${state} and takes no jobs`, { hint })
  }
  return undefined
}

export const memberOf = (wanted: SlurmWanted, { name }: NodeState): boolean => hostOf(wanted, name)?.isNode === true
