/**
 * The plan of Slurm: packages, munge key and configuration on every host, then slurmctld, then slurmd on the nodes. All have the
 * same slurm.conf, so a host that cannot have its part keeps the others from changing. Pure.
 */
import { defined } from '../../base/defined.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { AreaFacts, ChangeDirection } from '../kernel/area.ts'
import { changedLines } from '../kernel/block.ts'
import { type KnownFacts, knownValue } from '../kernel/fact.ts'
import { type FileState, MADE_BY_MUSTER, removeFile, writeFile } from '../kernel/files.ts'
import type { Finding } from '../kernel/finding.ts'
import {
  type Action,
  blocked,
  nothing,
  type Operation,
  operationId,
  operationOf,
  type Step,
  steps,
  type Verdict,
} from '../kernel/operation.ts'
import { installVerdict, missingPackages, removalVerdict } from '../kernel/packages.ts'
import type { NodeState } from './cluster-fact.ts'
import {
  bringKey,
  DAEMONS,
  type Daemon,
  KEY_FILE,
  KEY_PATTERN,
  makeKey,
  makePlace,
  READS,
  RECORD,
  removeKey,
  removePlace,
  resume,
  retireController,
  showKey,
  startController,
  startMunged,
  startNode,
  stopController,
  stopNode,
} from './daemons.ts'
import {
  AREA,
  type FactsOfSlurmHost,
  type FactsOfSlurmHosts,
  packageNames,
  pathOf,
  type RemovalFacts,
  type SlurmFacts,
} from './facts.ts'
import { findingsBeforeStart, findingsOfDeclaration, isResumable, recordedKey } from './findings.ts'
import { findingsOfLostJobs, hasState, keptJobs, LOST_JOBS } from './lost-jobs.ts'
import {
  cgroupConf,
  FILES,
  type FileName,
  gresConf,
  PLACE,
  type SlurmHost,
  type SlurmWanted,
  slurmConf,
} from './wanted.ts'

const idOf = (name: string, host: string): string => operationId(AREA, name, host)

export function planSlurm(
  direction: ChangeDirection,
  wanted: SlurmWanted,
  { facts, away }: AreaFacts<SlurmFacts>,
): Operation[] {
  const here = wanted.hosts.filter(({ host }) => facts.has(host))
  if (wanted.spec.cluster === undefined) {
    return here.map(({ host }) =>
      operationOf(AREA, host, 'cluster', 'cluster', nothing("a cluster that is not Muster's: it is only used")),
    )
  }
  if (direction === 'down') return here.flatMap((own) => planRemoval(wanted, own, facts))
  return planUp(wanted, here, facts, away)
}

function planUp(
  wanted: SlurmWanted,
  here: readonly SlurmHost[],
  facts: FactsOfSlurmHosts,
  away: ReadonlyMap<string, string>,
): Operation[] {
  const declared = wanted.hosts.map(
    (own) => [own.host, findingsOfDeclaration(own, facts.get(own.host)?.facts)] as const,
  )
  const incomplete = declared.flatMap(([host, findings]) => (findings.length > 0 ? [host] : []))
  const wrong = new Map(
    here.map((own) => {
      const found = findingsBeforeStart(wanted, own, facts)
      return [own.host, found.length > 0 ? found : lostJobs(wanted, own, facts)] as const
    }),
  )
  const controller = wanted.spec.cluster?.controller ?? ''
  const whyAway = away.get(controller)
  // A new controller that starts beside the old one would be a second cluster.
  const isBusy = [...wrong.values()].some((findings) => findings.some(({ id }) => id === LOST_JOBS))
  const isControllerOut = (wrong.get(controller)?.length ?? 0) > 0 || whyAway !== undefined
  const howOut = whyAway === undefined ? 'cannot be set up now' : `is not reached: ${whyAway}`
  const hostsUp: SlurmHost[] = []
  const refused = here.flatMap((own): Operation[] => {
    const { host } = own
    const findings = [...(declared.find(([name]) => name === host)?.[1] ?? []), ...(wrong.get(host) ?? [])]
    const needs = (cause: string): Finding[] => [{ host, gravity: 'blocker', id: 'needs-other', cause }]
    if (findings.length === 0 && incomplete.length > 0)
      findings.push(...needs(`slurm.conf cannot be made: hosts.yaml lacks something for ${foldHostSet(incomplete)}`))
    if (findings.length === 0 && isBusy && !isControllerOut)
      findings.push(...needs('it waits with the other hosts until no job would be lost'))
    if (findings.length === 0 && isControllerOut && host !== controller)
      findings.push(...needs(`${controller}, the controller, ${howOut}`))
    if (findings.length > 0) return [operationOf(AREA, host, 'host', 'the host', { kind: 'blocked', findings })]
    hostsUp.push(own)
    return []
  })
  const key = keyOf(facts.get(controller)?.facts)
  const plans = hostsUp.map((own) => planHost(wanted, own, facts, key, hostsUp))
  return [...refused, ...plans.flat()]
}

/** The key of the controller; undefined: a new one is made. */
function keyOf(own: FactsOfSlurmHost | undefined): string | undefined {
  const key = knownValue(own?.key)
  const recorded = own && recordedKey(own)
  if (own === undefined || recorded === undefined || key === undefined) return undefined
  if (key.kind === 'hidden') return recorded
  return key.kind === 'file' && key.isText ? key.sum : undefined
}

/** As far as the login can tell. */
function hasKey(own: FactsOfSlurmHost, wanted: string | undefined): boolean {
  const key = knownValue(own.key)
  const sum = key?.kind === 'file' ? key.sum : key?.kind === 'hidden' ? recordedKey(own) : undefined
  return wanted !== undefined && sum === wanted && recordedKey(own) !== undefined
}

function planHost(
  wanted: SlurmWanted,
  own: SlurmHost,
  facts: FactsOfSlurmHosts,
  key: string | undefined,
  all: readonly SlurmHost[],
): Operation[] {
  const known = facts.get(own.host)?.facts
  if (known === undefined) return []
  const { host, isController, isNode } = own
  const controller = wanted.spec.cluster?.controller ?? ''
  const operation = (name: string, title: string, verdict: Verdict, after: readonly string[] = []): Operation =>
    operationOf(AREA, host, name, title, verdict, after)
  const isKeyWanted = isController && all.some((other) => !hasKey(facts.get(other.host)?.facts ?? known, key))
  const keyFrom = isController ? [] : [idOf('munge', controller)]
  const configuration = planConfiguration(wanted, own, known)
  const change = configuration.kind === 'steps' ? 'its configuration changes' : undefined
  const drained = resumableNode(wanted, host, facts)
  const staying = all.flatMap((other) => {
    const there = other.isNode ? facts.get(other.host)?.facts : undefined
    const isStaying = there && staleness(there, 'slurmd') === undefined && !isReconfigured(wanted, other, there)
    return isStaying ? [other.host] : []
  })
  return [
    operation('packages', 'packages', planPackages(own, known)),
    operation('munge', 'munge', planMunge(wanted, own, known, key, isKeyWanted), keyFrom),
    operation('configuration', 'configuration', configuration, keyFrom),
    ...(isController
      ? [operation('controller', 'slurmctld', planDaemon(wanted, own, known, 'slurmctld', change, staying))]
      : planRetirement(host, known)),
    ...(isNode
      ? [
          operation('node', 'slurmd', planDaemon(wanted, own, known, 'slurmd', change ?? drained?.reason), [
            idOf('controller', controller),
          ]),
          ...planResumption(wanted, host, facts),
        ]
      : []),
  ]
}

function planPackages(own: SlurmHost, known: FactsOfSlurmHost): Verdict {
  const { host } = own
  const programs = knownValue(known.programs)
  if (programs === undefined) return blocked(host, 'unknown', 'cannot determine which programs there are')
  const { missing, version } = programs
  if (missing.length === 0) return nothing(`Slurm ${version ?? 'of an unknown version'} and munge are installed`)
  const packages = knownValue(known.packages)
  const needs = missing.join(', ')
  if (packages?.manager !== 'apt') {
    const hint =
      'Muster installs Slurm with apt only. Install Slurm and munge by hand, in the version of the controller.'
    return blocked(host, 'no-packages', `it has no ${needs}`, hint)
  }
  const names = missingPackages(packageNames(own), packages)
  if (names.length > 0) return installVerdict(AREA, packages.manager, names)
  return blocked(
    host,
    'no-program',
    `its packages are installed, and there is no ${needs}`,
    'Install them again: apt-get install --reinstall.',
  )
}

function planMunge(
  wanted: SlurmWanted,
  { isController }: SlurmHost,
  known: FactsOfSlurmHost,
  key: string | undefined,
  isKeyWanted: boolean,
): Verdict {
  const path = pathOf(wanted)
  const controller = wanted.spec.cluster?.controller ?? ''
  const isThere = recordedKey(known) !== undefined
  const isSame = hasKey(known, key)
  const state = isThere ? 'differs' : 'missing'
  if (isController && (key === undefined || !isSame)) {
    const because = isThere ? 'its munge key was changed' : undefined
    const step = keyStep('make the munge key of the cluster', isThere ? '~' : '+', makeKey(path))
    return { ...steps(state, [step]), ...defined({ because }) }
  }
  if (!isController && !isSame) {
    const run: Action = {
      ...bringKey(path),
      stdin: [{ output: `${idOf('munge', controller)}/key`, pattern: KEY_PATTERN }],
    }
    const because = isThere ? `its munge key is not the one of ${controller}` : undefined
    return {
      ...steps(state, [keyStep(`bring the munge key from ${controller}`, isThere ? '~' : '+', run)]),
      ...defined({ because }),
    }
  }
  const why = staleness(known, 'munged')
  const restart: Step | false = why !== undefined && {
    id: 'start',
    title: 'start munged',
    changes: [`~ ${why}`, ...bootChange(known, 'munged')],
    run: startMunged(path),
  }
  const hand: Step | false = isKeyWanted && {
    id: 'key',
    title: 'read the munge key for the other hosts',
    changes: [],
    run: showKey,
  }
  const verdict = steps('differs', [restart, hand], 'munged runs with the key of the cluster')
  return verdict.kind === 'steps' ? { ...verdict, because: why ?? 'another host needs its key' } : verdict
}

const keyStep = (title: string, sign: string, run: Action): Step => {
  return { id: 'key', title, changes: [`${sign} ${KEY_FILE}`, '~ munged restarts with it'], run }
}

/** Why it has to be started; undefined: it runs with the present files. */
function staleness(known: FactsOfSlurmHost, daemon: Daemon, change?: string): string | undefined {
  const { processes, changedS, hasSystemd, enabled } = knownValue(known.daemons) ?? {
    processes: [],
    changedS: new Map<string, number>(),
    hasSystemd: false,
    enabled: [],
  }
  const running = processes.filter((each) => each.daemon === daemon)
  if (running.length === 0) return `${daemon} is not running`
  // A start and a change in the same second are in this order.
  const startS = Math.max(...running.map((each) => each.startS)) + 1
  const file = READS[daemon].find((path) => (changedS.get(path) ?? 0) > startS)
  if (change !== undefined) return change
  if (file !== undefined) return `${daemon} started before ${file} was written`
  if (hasSystemd && !enabled.includes(daemon)) return `${daemon} does not start at boot`
  return undefined
}

function bootChange(known: FactsOfSlurmHost, daemon: Daemon): string[] {
  const { hasSystemd = false, enabled = [] } = knownValue(known.daemons) ?? {}
  return hasSystemd && !enabled.includes(daemon) ? [`+ ${DAEMONS[daemon].unit} at boot`] : []
}

function planConfiguration(wanted: SlurmWanted, { host }: SlurmHost, known: FactsOfSlurmHost): Verdict {
  const machine = knownValue(known.machine)
  const hasSystemd = knownValue(known.daemons)?.hasSystemd ?? false
  if (machine === undefined) return blocked(host, 'unknown', 'cannot determine its directories')
  const contents: Readonly<Record<FileName, string>> = {
    slurm: slurmConf(wanted),
    gres: gresConf(wanted),
    cgroup: cgroupConf(machine.cgroup, hasSystemd),
  }
  const names = Object.keys(FILES) as FileName[]
  const differing = names.filter((name) => textOf(knownValue(known[name])) !== contents[name])
  const writes = differing.map((name): Step => {
    const was = knownValue(known[name]) ?? { kind: 'none' }
    const path = FILES[name]
    const run = writeFile({ path, was, asRoot: true }, { content: [contents[name]], mode: '644', copy: 'drop' })
    return { id: name, title: `write ${path}`, changes: changedLines(textOf(was) ?? '', contents[name]), run }
  })
  const place: Step | false = !machine.hasPlace && {
    id: 'place',
    title: `create ${PLACE}`,
    changes: [`+ ${PLACE}: state, logs and history of jobs`],
    run: makePlace,
    check: { script: `[ -d ${PLACE}/state ]`, lack: `there is no ${PLACE}/state` },
  }
  const isThere = names.some((name) => textOf(knownValue(known[name])) !== undefined)
  const verdict = steps(
    isThere ? 'differs' : 'missing',
    [place, ...writes],
    'slurm.conf, gres.conf and cgroup.conf are as declared',
  )
  const because = differing.map((name) => FILES[name]).join(' and ')
  return verdict.kind === 'steps' && isThere && because !== ''
    ? { ...verdict, because: `${because} ${differing.length === 1 ? 'differs' : 'differ'} from hosts.yaml` }
    : verdict
}

function lostJobs(wanted: SlurmWanted, own: SlurmHost, facts: FactsOfSlurmHosts): readonly Finding[] {
  const known = facts.get(own.host)?.facts
  if (known === undefined) return []
  const isRestarted = own.isController && staleness(known, 'slurmctld') !== undefined
  const isAffected = isRestarted || isReconfigured(wanted, own, known) || !hasState(wanted, facts)
  return isAffected ? findingsOfLostJobs(wanted, own, facts) : []
}

const isReconfigured = (wanted: SlurmWanted, own: SlurmHost, known: FactsOfSlurmHost): boolean =>
  planConfiguration(wanted, own, known).kind === 'steps'

const textOf = (file: FileState | undefined): string | undefined => (file?.kind === 'file' ? file.text : undefined)

function planDaemon(
  wanted: SlurmWanted,
  { host }: SlurmHost,
  known: FactsOfSlurmHost,
  daemon: 'slurmctld' | 'slurmd',
  /** Why it restarts, whatever it runs with. */
  change: string | undefined,
  /** Nodes whose slurmd runs on: a new slurmctld has to hear them first. */
  staying: readonly string[] = [],
): Verdict {
  const why = staleness(known, daemon, change)
  if (why === undefined) return nothing(`${daemon} is running`)
  const isRunning = (knownValue(known.daemons)?.processes ?? []).some((each) => each.daemon === daemon)
  const path = pathOf(wanted)
  const step: Step = {
    id: 'start',
    title: isRunning ? `restart ${daemon} (jobs go on)` : `start ${daemon}`,
    changes: [`${isRunning ? '~' : '+'} ${daemon}`, ...bootChange(known, daemon)],
    run:
      daemon === 'slurmd'
        ? startNode(path, host)
        : startController(path, staying, keptJobs(wanted, knownValue(known.cluster))),
  }
  const isNew = !isRunning && textOf(knownValue(known.slurm)) === undefined
  return { ...steps(isNew ? 'missing' : 'differs', [step]), ...(isNew ? {} : { because: why }) }
}

/** Another host is the controller now. */
function planRetirement(host: string, known: FactsOfSlurmHost): Operation[] {
  const running = (knownValue(known.daemons)?.processes ?? []).filter(({ daemon }) => daemon === 'slurmctld')
  if (running.length === 0) return []
  const step: Step = {
    id: 'stop',
    title: 'stop slurmctld: another host is the controller',
    changes: running.map(({ daemon, pid }) => `- ${daemon} (process ${pid})`),
    run: retireController(),
  }
  const because = 'slurmctld runs, and another host is the controller'
  return [
    operationOf(AREA, host, 'controller', 'slurmctld', { kind: 'steps', state: 'differs', because, steps: [step] }),
  ]
}

/** Slurm keeps a node drained after what was wrong with it is mended. */
function planResumption(wanted: SlurmWanted, host: string, facts: FactsOfSlurmHosts): Operation[] {
  const node = resumableNode(wanted, host, facts)
  if (node === undefined) return []
  const step: Step = {
    id: 'resume',
    title: `resume ${host}`,
    changes: [`~ Slurm drained it: ${node.reason}`],
    run: resume(pathOf(wanted), host),
  }
  const because = `${node.state}: ${node.reason}`
  return [operationOf(AREA, host, 'resume', 'state', { kind: 'steps', state: 'differs', because, steps: [step] })]
}

function resumableNode(wanted: SlurmWanted, host: string, facts: FactsOfSlurmHosts): NodeState | undefined {
  const cluster = knownValue(facts.get(wanted.spec.cluster?.controller ?? '')?.facts.cluster)
  const nodes = cluster?.kind === 'answers' ? cluster.nodes : []
  return nodes.find((node) => node.name === host && isResumable(node))
}

function planRemoval(wanted: SlurmWanted, own: SlurmHost, facts: FactsOfSlurmHosts): Operation[] {
  const known = facts.get(own.host)?.facts
  const nodes = wanted.hosts.filter(({ host, isNode }) => isNode && host !== own.host && facts.has(host))
  return known === undefined
    ? []
    : removalOf(own.host, known, pathOf(wanted), own.isController ? nodes.map(({ host }) => idOf('node', host)) : [])
}

/** `afterNodes`: what comes before the controller stops. */
export function removalOf(
  host: string,
  known: KnownFacts<RemovalFacts>,
  path = '',
  afterNodes: readonly string[] = [],
): Operation[] {
  const operation = (name: string, title: string, verdict: Verdict, after: readonly string[] = []): Operation =>
    operationOf(AREA, host, name, title, verdict, after)
  for (const name of ['slurm', 'gres', 'cgroup', 'record', 'daemons', 'machine'] as const) {
    const fact = known[name]
    if (fact.kind === 'known') continue
    const cause = `cannot determine what Muster set up: ${fact.because}`
    return [operation('host', 'the host', blocked(host, 'unknown', cause))]
  }
  // Without a package manager that it knows, Muster has installed nothing.
  const packages = knownValue(known.packages)
  const files = (Object.keys(FILES) as FileName[]).filter((name) =>
    textOf(knownValue(known[name]))?.startsWith(`${MADE_BY_MUSTER}\n`),
  )
  const hasKey = recordedKey(known) !== undefined
  const isOwnConfiguration = files.includes('slurm') || (hasKey && knownValue(known.slurm)?.kind === 'none')
  const { processes = [] } = knownValue(known.daemons) ?? {}
  const running = (...names: readonly string[]) =>
    isOwnConfiguration ? processes.filter(({ daemon }) => names.includes(daemon)) : []
  const stop = (name: string, title: string, run: Action, ...daemons: readonly string[]): Step | false =>
    running(...daemons).length > 0 && {
      id: name,
      title,
      changes: running(...daemons).map(({ daemon, pid }) =>
        daemon === 'slurmstepd' ? `- a job (process ${pid})` : `- ${daemon} (process ${pid})`,
      ),
      run,
    }
  const key: Step | false = hasKey && {
    id: 'key',
    title: 'stop munged, and remove its key',
    changes: [`- ${KEY_FILE}`, `- ${RECORD}`],
    run: removeKey(),
  }
  const removals = files.map((name): Step => {
    const was = knownValue(known[name]) as FileState
    return {
      id: name,
      title: `remove ${FILES[name]}`,
      changes: [`- ${FILES[name]}`],
      run: removeFile({ path: FILES[name], was, asRoot: true }),
    }
  })
  const place: Step | false = knownValue(known.machine)?.hasPlace === true && {
    id: 'place',
    title: `remove ${PLACE}`,
    changes: [`- ${PLACE}: state, logs and history of jobs`],
    run: removePlace,
  }
  const notRunning = (daemon: string) =>
    isOwnConfiguration ? `${daemon} is not running` : 'Muster set up no Slurm here'
  return [
    operation(
      'node',
      'slurmd',
      steps(
        'differs',
        [stop('stop', 'end its jobs, and stop slurmd', stopNode(path), 'slurmd', 'slurmstepd')],
        notRunning('slurmd'),
      ),
    ),
    operation(
      'controller',
      'slurmctld',
      steps('differs', [stop('stop', 'stop slurmctld', stopController(), 'slurmctld')], notRunning('slurmctld')),
      afterNodes,
    ),
    operation('munge', 'munge', steps('differs', [key], 'Muster put no munge key here')),
    operation(
      'configuration',
      'configuration',
      steps('differs', [...removals, place], 'Muster wrote no configuration here'),
    ),
    ...(packages === undefined
      ? []
      : [operation('packages', 'packages', removalVerdict(AREA, packages, 'Muster installed no package for Slurm'))]),
  ]
}
