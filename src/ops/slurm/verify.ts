/**
 * Whether the cluster works: a credential of each host is decoded on each other one, Slurm takes jobs on all nodes, and for `check`
 * a command really runs on each of them, and one on a GPU. What hosts print is bounded, and believed about themselves alone.
 */
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { AreaFacts, HostExec } from '../kernel/area.ts'
import { knownValue } from '../kernel/fact.ts'
import { type Finding, onHost } from '../kernel/finding.ts'
import { reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome } from '../run/outcome.ts'
import type { SlurmView } from './cluster-fact.ts'
import { pathOf, type SlurmFacts } from './facts.ts'
import { findingOfNode, findingsOfMachine, memberOf } from './findings.ts'
import { LOGS, PORTS, type SlurmWanted } from './wanted.ts'

const CREDENTIAL_MS = 20_000
const SRUN_MS = 60_000
/** Of what a host says about a credential. */
const MOST_CHARACTERS = 300
/** Seconds that srun waits for free nodes. */
const PATIENCE_S = 15

export async function verifySlurm(
  wanted: SlurmWanted,
  { facts }: AreaFacts<SlurmFacts>,
  hostExec: HostExec,
  depth: 'status' | 'check',
): Promise<readonly Finding[]> {
  const view = findingsOfView(wanted, { facts })
  if (wanted.spec.cluster === undefined) return view
  const hosts = wanted.hosts.flatMap(({ host }) => (facts.has(host) ? [host] : []))
  const machines = wanted.hosts.flatMap((own) => {
    const known = facts.get(own.host)?.facts
    return known === undefined ? [] : findingsOfMachine(own, known)
  })
  const credentials = await findingsOfCredentials(wanted, hosts, hostExec)
  const found = [...view, ...machines, ...credentials]
  if (depth === 'status' || found.some(({ gravity }) => gravity === 'blocker')) return found
  return [...found, ...(await findingsOfRuns(wanted, new Set(hosts), hostExec))]
}

/** What the controller says about its nodes. */
function findingsOfView(wanted: SlurmWanted, { facts }: Pick<AreaFacts<SlurmFacts>, 'facts'>): Finding[] {
  const asked = wanted.spec.cluster?.controller ?? wanted.spec.login
  const fact = facts.get(asked)?.facts.cluster
  const view = knownValue(fact)
  if (fact === undefined || view?.kind === 'unasked') return []
  if (view?.kind !== 'answers') {
    const detail = view?.because ?? (fact.kind === 'unknown' ? fact.because : '')
    const cause = wanted.spec.cluster === undefined ? 'Slurm does not answer here' : 'slurmctld does not answer'
    return [{ host: asked, gravity: 'blocker', id: 'no-controller', cause, detail }]
  }
  const isForeign = wanted.spec.cluster === undefined
  // A host that is away, blocked or not set up yet is reported as such.
  const nodes = view.nodes.flatMap((node) =>
    isForeign || (memberOf(wanted, node) && facts.has(node.name))
      ? (findingOfNode(wanted, isForeign ? asked : node.name, node) ?? [])
      : [],
  )
  const unknown = isForeign
    ? []
    : wanted.hosts.flatMap(({ host, isNode }): Finding[] => {
        if (!isNode || view.nodes.some(({ name }) => name === host)) return []
        return [{ host: asked, gravity: 'blocker', id: 'no-node', cause: `Slurm does not know the node ${host}` }]
      })
  const memory: Finding[] =
    view.hasDefaultMemory || (!isForeign && wanted.spec.coreMemoryBytes === 0)
      ? []
      : [
          {
            host: asked,
            gravity: 'note',
            id: 'no-default-memory',
            cause: 'it has no DefMemPerCPU: a job without --mem gets the whole memory of its node',
            hint: 'Jobs that Muster submits always ask for memory.',
          },
        ]
  const none: Finding[] =
    isForeign && view.nodes.length === 0
      ? [{ host: asked, gravity: 'risk', id: 'no-nodes', cause: 'sinfo lists no nodes here' }]
      : []
  return [...findingsOfUse(wanted, asked, view), ...none, ...nodes, ...unknown, ...memory]
}

/** Of partitions, in a sentence. */
const MOST_NAMES = 10

/** What would keep jobs from being submitted or from starting. */
function findingsOfUse(
  { spec }: SlurmWanted,
  host: string,
  { partitions, missing }: Extract<SlurmView, { kind: 'answers' }>,
): Finding[] {
  const programs = missing.map((program): Finding => {
    const hint = program === 'flock' ? 'Install util-linux there.' : 'Set bin in slurm of hosts.yaml.'
    return { host, gravity: 'blocker', id: 'no-program', cause: `it has no ${program}, which jobs need`, hint }
  })
  const names = [...partitions.keys()]
  const wanted = names.length === 0 ? [] : (spec.partition?.split(',') ?? [])
  return [
    ...(host === spec.login ? programs : []),
    ...wanted.flatMap((name): Finding[] => {
      const state = partitions.get(name)
      if (state === 'up') return []
      if (state !== undefined) {
        const fix = onHost(`sudo scontrol update partitionname=${name} state=up`)
        return [
          {
            host,
            gravity: 'risk',
            id: 'partition',
            cause: `jobs cannot start in partition ${name}`,
            detail: `its state is ${state}`,
            fix,
          },
        ]
      }
      const detail = `it has ${names.slice(0, MOST_NAMES).join(', ')}`
      const hint = 'Correct partition in slurm of hosts.yaml.'
      return [{ host, gravity: 'blocker', id: 'no-partition', cause: `Slurm has no partition ${name}`, detail, hint }]
    }),
  ]
}

const CREDENTIAL = /^MUNGE:[A-Za-z0-9+/=]{1,2000}:$/

/** One credential of each host, decoded on all others at once. */
async function findingsOfCredentials(
  wanted: SlurmWanted,
  hosts: readonly string[],
  hostExec: HostExec,
): Promise<readonly Finding[]> {
  const path = pathOf(wanted)
  const made = await Promise.all(
    hosts.map(async (host) => {
      const result = await hostExec.exec(host, `${path}exec munge -n < /dev/null`, { timeoutMs: CREDENTIAL_MS })
      const text = Buffer.from(result.stdout).toString('latin1').trim()
      const because = printable(reasonOfResult(result, formatOutcome))
      return CREDENTIAL.test(text) ? { host, text } : { host, because }
    }),
  )
  const silent = made.flatMap(({ host, because }): Finding[] =>
    because === undefined
      ? []
      : [
          {
            host,
            gravity: 'blocker',
            id: 'no-munge',
            cause: 'munge makes no credential here',
            detail: because,
            fix: onHost('sudo systemctl restart munge'),
          },
        ],
  )
  const able = made.flatMap(({ host, text }) => (text === undefined ? [] : [{ host, text }]))
  const decoded = await Promise.all(
    able.map(async ({ host }): Promise<readonly Refusal[]> => {
      const others = able.filter((other) => other.host !== host)
      if (others.length === 0) return []
      const script = `${path}while IFS= read -r each; do
  said=$(printf '%s\\n' "$each" | unmunge -m /dev/null -o /dev/null 2>&1) && echo ok || printf '%s\\n' "$said" | head -n 1 | cut -c 1-200
done`
      const stdin = Buffer.from(others.map(({ text }) => `${text}\n`).join(''))
      const result = await hostExec.exec(host, script, { stdin, timeoutMs: CREDENTIAL_MS })
      const lines = Buffer.from(result.stdout).toString().split('\n')
      const because = printable(reasonOfResult(result, formatOutcome))
      return others.flatMap(({ host: from }, index) =>
        lines[index] === 'ok' ? [] : [{ host, from, said: (lines[index] || because).slice(0, MOST_CHARACTERS) }],
      )
    }),
  )
  return [...silent, ...findingsOfRefusals(decoded.flat(), wanted.spec.cluster?.controller ?? '')]
}

/** `host` cannot decode a credential of `from`. */
type Refusal = { readonly host: string; readonly from: string; readonly said: string }

/** Of two hosts with different keys the one that disagrees with the controller is wrong. */
function findingsOfRefusals(refusals: readonly Refusal[], controller: string): readonly Finding[] {
  const isOfKeys = ({ said }: Refusal) => /Invalid credential/.test(said)
  const wrong = new Set(
    refusals.flatMap((refusal) => {
      const { host, from } = refusal
      return isOfKeys(refusal) && (host === controller || from === controller)
        ? [host === controller ? from : host]
        : []
    }),
  )
  const rest = refusals.filter((each) => !isOfKeys(each) || !(wrong.has(each.host) || wrong.has(each.from)))
  const hint =
    'Give it the key of the cluster again: sudo rm /var/lib/muster/slurm /etc/munge/munge.key on this host, then muster up slurm.'
  const others = Map.groupBy(rest, ({ host, said }) => JSON.stringify([host, said]))
  return [
    ...[...wrong].map((host): Finding => {
      const cause = `its munge key is not the one of ${controller}: credentials of the one are invalid on the other`
      return { host, gravity: 'blocker', id: 'credential', cause, hint }
    }),
    ...[...others.values()].flatMap((same): readonly Finding[] => {
      const [{ host, said } = { host: '', said: '' }] = same
      const from = foldHostSet(same.map((each) => each.from))
      const base = { host, gravity: 'blocker' as const, id: 'credential', detail: said }
      if (!/Rewound|Expired/.test(said)) return [{ ...base, cause: `it cannot decode credentials of ${from}` }]
      const cause = `it refuses credentials of ${from}: the clocks differ by more than 5 min`
      return [{ ...base, id: 'clock-off', cause, fix: onHost('sudo timedatectl set-ntp true') }]
    }),
  ]
}

/** A command on every node, and one that gets a GPU. */
async function findingsOfRuns(wanted: SlurmWanted, hosts: ReadonlySet<string>, hostExec: HostExec): Promise<Finding[]> {
  const { login } = wanted.spec
  const nodes = wanted.hosts.filter(({ host, isNode }) => isNode && hosts.has(host))
  if (!hosts.has(login) || nodes.length === 0) return []
  const srun = async (options: string, command: string) => {
    const usual = `--job-name=muster-check --chdir=/ --time=1 --mem=16 --immediate=${PATIENCE_S} --kill-on-bad-exit=1 --quiet`
    const script = `${pathOf(wanted)}exec srun ${usual} ${options} sh -c '${command}' < /dev/null`
    const result = await hostExec.exec(login, script, { timeoutMs: SRUN_MS })
    const because = printable(reasonOfResult(result, formatOutcome))
    return { lines: Buffer.from(result.stdout).toString().split('\n'), because }
  }
  const names = nodes.map(({ host }) => host)
  const all = await srun(
    `--nodelist=${names.join()} --ntasks=${names.length} --ntasks-per-node=1`,
    'echo "ran $SLURMD_NODENAME"',
  )
  const missing = names.filter((name) => !all.lines.includes(`ran ${name}`))
  if (missing.length > 0) return [findingOfRun(login, `a command on ${foldHostSet(missing)}`, all.because)]
  const ran: Finding = { host: login, gravity: 'note', id: 'ran', cause: `srun ran a command on ${foldHostSet(names)}` }
  const withGpu = nodes.find(({ gpus }) => gpus > 0)?.host
  if (withGpu === undefined) return [ran]
  const gpu = await srun(
    `--nodelist=${withGpu} --ntasks=1 --gres=gpu:1`,
    'echo "GPU $CUDA_VISIBLE_DEVICES of $SLURMD_NODENAME"',
  )
  const device = gpu.lines.find((line) => /^GPU \d{1,4} of [\w-]{1,64}$/.test(line))
  if (device === undefined) return [ran, findingOfRun(login, 'a command with a GPU', gpu.because)]
  return [ran, { host: login, gravity: 'note', id: 'ran-gpu', cause: `srun gave a command ${device}` }]
}

function findingOfRun(host: string, what: string, because: string): Finding {
  if (/busy|Immediate execution impossible|Unable to allocate resources/.test(because)) {
    return { host, gravity: 'note', id: 'busy', cause: `could not try ${what}: the nodes are busy`, detail: because }
  }
  const hint = `Port ${PORTS.slurmd} of each node has to be open for ${host}, and all ports of ${host} for the nodes, which connect to srun. ${LOGS} on the node has more.`
  return { host, gravity: 'blocker', id: 'no-run', cause: `srun does not run ${what}`, detail: because, hint }
}
