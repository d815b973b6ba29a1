import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Declared } from '../../../../src/ops/kernel/area.ts'
import { type Known, known } from '../../../../src/ops/kernel/fact.ts'
import { formatFinding } from '../../../../src/ops/kernel/finding.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import type { Hindrance, Installed, RayFacts } from '../../../../src/ops/ray/facts.ts'
import { planRay } from '../../../../src/ops/ray/plan.ts'
import {
  parseListeners,
  processesFact,
  processesOf,
  type RayProcess,
  takenBy,
} from '../../../../src/ops/ray/processes.ts'
import { verifyRay } from '../../../../src/ops/ray/ray.ts'
import { parseClusterView, parseNodes } from '../../../../src/ops/ray/usage.ts'
import { type EnvironmentSource, type RayNode, type RayWanted, sourceOf } from '../../../../src/ops/ray/wanted.ts'
import { rayWanted } from './ray-wanted.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/ray')
const read = (name: string): string => readFileSync(join(FIXTURES, name), 'utf8').trimEnd()
const processes = (text: string): readonly RayProcess[] => processesFact.parse(text, Buffer.alloc(0)) ?? []

const HEAD_RUNS = processes(read('head-processes.txt'))
const WORKER_RUNS = processes(read('worker-processes.txt'))
const LISTENERS = parseListeners(read('head-listeners.txt'))
const CLUSTER = parseClusterView(read('cluster-2.60.json'))
const RAY: Installed = { kind: 'ray', ray: '2.60.0', python: '3.11.2', missing: [] }

const node = (host: string, ip: string, cpu: number): RayNode => ({
  host,
  ip,
  address: ip,
  isHead: host === 'm10',
  cpu,
  custom: {},
  labels: {},
  environment: { kind: 'venv', path: '/opt/ray', python: 'python3', from: '.', hosts: ['m10', 'm8'] },
})
const WANTED = rayWanted({ head: node('m10', '10.81.0.1', 4), workers: [node('m8', '10.81.0.2', 16)] })

type Change = Partial<{ [K in keyof RayFacts]: RayFacts[K] | Known<RayFacts[K]> }>
const SPACE = { uid: 0, sharedBytes: 8e9, memoryBytes: 16e9, tempUsedPercent: 10, isTempWritable: true }

const docker = (options: string): NonNullable<RayNode['environment']> => {
  const container = { image: 'ray', name: 'node', options, restart: 'no', from: '.', hosts: [] } as const
  return { kind: 'docker', ...container }
}

const at = (ip: string) => ({ own: ['127.0.0.1', ip], networks: ['127.0.0.1/8', `${ip}/16`] })

/** The cluster of the fixtures, but for what is given. */
function areaFacts(head: Change = {}, worker: Change = {}) {
  const of = (change: Change, own: Change) => {
    const values: Change = {
      installed: RAY,
      unreached: new Map(),
      clock: 0,
      unit: { kind: 'absent' },
      space: SPACE,
      cluster: CLUSTER as never,
      ...own,
      ...change,
    }
    const facts = Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'object' && 'kind' in value && /^(un)?known$/.test(value.kind) ? value : known(value),
    ])
    return { atMs: 0, facts: Object.fromEntries(facts) as never }
  }
  const facts = new Map([
    ['m10', of(head, { processes: HEAD_RUNS, listeners: LISTENERS, addresses: at('10.81.0.1') })],
    ['m8', of(worker, { processes: WORKER_RUNS, listeners: [], addresses: at('10.81.0.2') })],
  ])
  return { facts, away: new Map<string, string>() }
}

const DOWN: Change = { processes: [], listeners: [], cluster: { kind: 'silent', because: 'refused' } }
const up = (head: Change = {}, worker: Change = {}, wanted: Partial<RayWanted> = {}): Operation[] =>
  planRay('up', { ...WANTED, ...wanted }, areaFacts(head, worker))
/** What would be done on each host, or why not. */
const said = (operations: readonly Operation[]): string[] =>
  operations.flatMap(({ host, verdict }) => {
    if (verdict.kind === 'nothing') return [`${host}: nothing`]
    if (verdict.kind === 'steps') return verdict.steps.map(({ title }) => `${host}: ${title}`)
    return verdict.findings.map(({ gravity, id }) => `${host}: ${gravity} ${id}`)
  })
const changes = (operations: readonly Operation[]): string[] =>
  operations.flatMap(({ verdict }) => (verdict.kind === 'steps' ? verdict.steps.flatMap((step) => step.changes) : []))
const START_BOTH = ['m10: start the head', 'm8: join 10.81.0.1:6333']

const declaredWith = (environment: object, files: ReadonlyMap<string, object>) =>
  ({
    inventory: { sections: new Map([['environment', environment]]) },
    endpoints: new Map(),
    files,
  }) as unknown as Declared

describe('what a host reports about Ray', () => {
  it('lists its processes by role and cluster', () => {
    expect(HEAD_RUNS.map(({ role, cluster }) => `${role} ${cluster}`)).toEqual([
      'gcs 10.81.0.1:6333',
      'helper 10.81.0.1:6333',
      'raylet 10.81.0.1:6333',
      'helper 10.81.0.1:6333',
      'helper 10.81.0.1:6333',
      'helper 10.81.0.1:6333',
    ])
    expect(WORKER_RUNS.find(({ role }) => role === 'raylet')?.resources).toMatchObject({ CPU: 16 })
    expect(processesOf(HEAD_RUNS, '10.81.0.1', 6333)).toHaveLength(6)
    expect(processesOf(HEAD_RUNS, '10.81.0.1', 6334)).toEqual([])
    expect(processesOf(HEAD_RUNS, '127.0.0.1', 6333)).toEqual([])
    expect(processes('12 34 0 raylet --gcs-address=10.81.0.1:6333\ncut off')).toEqual([])
  })

  it('lists which process listens where, with and without ss', () => {
    expect(takenBy(LISTENERS, 6333, '0.0.0.0')).toEqual({ port: 6333, address: '0.0.0.0', name: 'gcs_server', pid: 20 })
    expect(takenBy(LISTENERS, 8265, '10.81.0.1')).toBeUndefined()
    const proc =
      '   0: 0100007F:2049 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5 1 0 100 0 0 10 0'
    expect(parseListeners(proc)).toEqual([{ port: 8265, address: '127.0.0.1' }])
    expect(parseListeners('LISTEN 0 128 [::]:6333 [::]:*')).toEqual([{ port: 6333, address: '::' }])
  })

  it('lists the cluster as its dashboard does, with dead nodes', () => {
    expect(CLUSTER).toMatchObject({ kind: 'answers', ray: '2.60.0', python: '3.11.2' })
    const nodes = parseNodes(JSON.parse(read('nodes-2.58-one-dead.json')))
    expect(nodes.map(({ ip, isHead, isAlive }) => [ip, isHead, isAlive])).toEqual([
      ['10.77.0.12', false, true],
      ['10.77.0.13', false, false],
      ['10.77.0.11', true, true],
    ])
    expect(nodes[1]?.message).toMatch(/missing too many heartbeats/)
    expect(nodes[2]?.resources).toMatchObject({ CPU: 4, special_res: 2 })
    expect(parseClusterView('{"error": "Connection refused", "answered": false}')).toMatchObject({ kind: 'silent' })
    expect(parseClusterView('{"error": "HTTP 404", "answered": true}')).toMatchObject({ kind: 'foreign' })
    expect(parseClusterView('{"version": {}}')).toMatchObject({ kind: 'foreign' })
    expect(parseClusterView('')).toBeUndefined()
  })
})

describe('the plan of Ray', () => {
  it('is empty if everything is as declared', () => {
    expect(said(up())).toEqual(['m10: nothing', 'm8: nothing'])
  })

  it('starts the head, then its workers, with the address of each', () => {
    const operations = up(DOWN, DOWN)
    expect(said(operations)).toEqual(START_BOTH)
    expect(operations.map(({ after }) => after)).toEqual([[], ['ray/head@m10']])
    expect(changes(operations)).toEqual([
      '+ ray start --head --port=6333 --node-ip-address=10.81.0.1 --dashboard-host=127.0.0.1 --dashboard-port=8265 --num-cpus=4 --disable-usage-stats',
      '+ ray start --address=10.81.0.1:6333 --node-ip-address=10.81.0.2 --num-cpus=16',
    ])
  })

  it('gives nodes the ports that are declared', () => {
    const ports = { nodeManager: 6700, objectManager: 6701, workers: [20_000, 20_999] } as const
    expect(changes(up(DOWN, DOWN, { ports }))[1]).toBe(
      '+ ray start --address=10.81.0.1:6333 --node-ip-address=10.81.0.2 --node-manager-port=6700 --object-manager-port=6701 --min-worker-port=20000 --max-worker-port=20999 --num-cpus=16',
    )
  })

  it('creates a declared token on the head, passes it to the workers, and shows it nowhere', () => {
    const operations = up(DOWN, DOWN, { hasToken: true })
    expect(said(operations)).toEqual([
      "m10: make the cluster's token",
      'm10: start the head',
      "m8: bring the cluster's token",
      'm8: join 10.81.0.1:6333',
    ])
    const steps = operations.flatMap(({ verdict }) => (verdict.kind === 'steps' ? verdict.steps : []))
    expect(steps.map(({ changes: [change] }) => change?.startsWith('+ ~/.ray/muster/m10-6333/auth_token'))).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect(steps[2]?.run.files).toEqual({
      from: 'm10',
      path: '~/.ray/muster/m10-6333',
      kind: 'directory',
      to: '~/.ray/muster/m10-6333',
    })
    const [, start] = steps
    expect(start?.run.script).toContain('RAY_AUTH_TOKEN_PATH=$HOME/.ray/muster/m10-6333/auth_token; export')
  })

  it('loads Ray on workers while the head starts, if the node is a process of the login', () => {
    const early = (change: Partial<RayWanted>) =>
      up(DOWN, DOWN, change).flatMap(({ host, verdict }) =>
        verdict.kind === 'steps' && verdict.steps.some(({ run }) => run.early !== undefined) ? [host] : [],
      )
    expect(early({})).toEqual(['m8'])
    expect(early({ isSupervised: true })).toEqual([])
    const container = { ...node('m8', '10.81.0.2', 16), environment: docker('--network host') }
    expect(said(up(DOWN, DOWN, { workers: [container] }))).toEqual(START_BOTH)
    expect(early({ workers: [container] })).toEqual([])
  })

  it('says which log has more where a node does not stay up', () => {
    const lacks = up(DOWN, DOWN).flatMap(({ verdict }) =>
      verdict.kind === 'steps' ? verdict.steps.flatMap(({ check }) => check?.lack ?? []) : [],
    )
    expect(lacks).toEqual([
      'its dashboard at 127.0.0.1:8265 does not list the head: see /tmp/ray/session_latest/logs/dashboard.log',
      'no raylet of 10.81.0.1:6333 runs here: see raylet.out and raylet.err in /tmp/ray/session_latest/logs',
    ])
  })

  it('restarts a worker whose raylet is gone, or which the head counts as dead', () => {
    expect(said(up({}, { processes: [] }))).toEqual(['m10: nothing', 'm8: join 10.81.0.1:6333'])
    const again = ['m10: nothing', 'm8: end the processes of this cluster', 'm8: join 10.81.0.1:6333']
    expect(said(up({}, { processes: WORKER_RUNS.filter(({ role }) => role !== 'raylet') }))).toEqual(again)
    if (CLUSTER?.kind !== 'answers') throw new Error('the fixture is no cluster')
    const dead = CLUSTER.nodes.map((each) => ({ ...each, isAlive: each.isHead, message: 'no heartbeat' }))
    const operations = up({ cluster: { ...CLUSTER, nodes: dead } })
    expect(said(operations)).toEqual(again)
    expect(changes(operations)[0]).toBe('~ the head does not count it as alive: no heartbeat')
  })

  it('stops the second raylet of a host, which doubled its resources', () => {
    const raylet = WORKER_RUNS.find(({ role }) => role === 'raylet')
    if (raylet === undefined) throw new Error('the fixture has no raylet')
    const operations = up({}, { processes: [...WORKER_RUNS, { ...raylet, pid: 99 }] })
    expect(changes(operations)[0]).toBe('~ 2 raylets serve this cluster, and its resources count 2 times')
  })

  it('restarts a node when its declared resources change', () => {
    const operations = up({}, {}, { workers: [node('m8', '10.81.0.2', 8)] })
    expect(changes(operations).slice(0, 1)).toEqual(['~ it has 16 CPU, and 8 is declared'])
    expect(changes(operations)).toContain('- what runs on this node')
  })

  it('restarts a node when its declared labels change', () => {
    const labelled = [{ ...node('m8', '10.81.0.2', 16), labels: { rack: '3' } }]
    const operations = up({}, {}, { workers: labelled })
    expect(changes(operations)[0]).toBe('~ it has no label rack=3')
    expect(changes(operations)).toContainEqual(expect.stringContaining(' --num-cpus=16 --labels=rack=3'))
    if (CLUSTER?.kind !== 'answers') throw new Error('the fixture is no cluster')
    const nodes = CLUSTER.nodes.map((each) => ({ ...each, labels: new Map([['rack', '3']]) }))
    expect(said(up({ cluster: { ...CLUSTER, nodes } }, {}, { workers: labelled }))).toEqual([
      'm10: nothing',
      'm8: nothing',
    ])
  })

  describe('with systemd', () => {
    const kept = { isSupervised: true }
    const unit: Change = { unit: { kind: 'there', state: 'active', enabled: 'enabled' } }

    it('starts a unit, and keeps the node that has one', () => {
      const operations = up(DOWN, DOWN, kept)
      expect(said(operations)).toEqual(START_BOTH)
      expect(changes(operations)[1]).toBe('+ muster-ray-m10-6333.service')
      const [start] = operations.flatMap(({ verdict }) => (verdict.kind === 'steps' ? verdict.steps : []))
      expect(start?.run.script).toContain('"--num-cpus=4" "--disable-usage-stats"')
      expect(said(up(unit, unit, kept))).toEqual(['m10: nothing', 'm8: nothing'])
    })

    it('restarts a node whose supervision differs from hosts.yaml', () => {
      const worker = [/m8: end/, /m8: join/]
      for (const [index, wanted] of [kept, {}].entries()) {
        const [head, own] = index === 0 ? [unit, {}] : [{}, unit]
        const lines = said(up(head, own, wanted))
        expect(lines.at(0)).toBe('m10: nothing')
        expect(lines.slice(1)).toEqual(worker.map((line) => expect.stringMatching(line)))
      }
    })

    it('must be available, on the host itself', () => {
      const none: Change = { ...DOWN, unit: { kind: 'no-systemd' } }
      expect(said(up(DOWN, none, kept))[1]).toBe('m8: blocker no-systemd')
      const workers = [{ ...node('m8', '10.81.0.2', 16), environment: docker('--network host') }]
      expect(said(up(DOWN, DOWN, { ...kept, workers }))[1]).toBe('m8: blocker no-systemd')
    })

    it('removes the unit, also if it is not running', () => {
      const left = { ...DOWN, ...unit }
      expect(said(planRay('down', WANTED, areaFacts(left, DOWN)))).toEqual([
        'm8: nothing',
        'm10: end the processes of this cluster',
      ])
      expect(changes(planRay('down', WANTED, areaFacts(left, DOWN)))).toEqual(['- muster-ray-m10-6333.service'])
      expect(said(up(left, DOWN))).toEqual(['m10: end the processes of this cluster', ...START_BOTH])
    })
  })

  it('starts in a container that shares the network of its host', () => {
    const inside = (options: string) => ({ ...node('m8', '10.81.0.2', 16), environment: docker(options) })
    expect(said(up(DOWN, DOWN, { workers: [inside('--net=host --shm-size 8g')] }))).toEqual(START_BOTH)
    expect(said(up(DOWN, DOWN, { workers: [inside('--publish 80:80')] }))[1]).toBe('m8: blocker container-network')
    const steps = (wanted: Partial<RayWanted>) =>
      up(DOWN, DOWN, wanted).flatMap(({ host, verdict }) =>
        host === 'm8' && verdict.kind === 'steps' ? verdict.steps.map(({ run }) => run.script) : [],
      )
    expect(steps({ workers: [inside('--net=host')] })[0]).toContain("| dock exec --interactive node sh -c '")
    // It goes there over stdin, and into no file of the container.
    const [, start = ''] = steps({ workers: [inside('--net=host')], hasToken: true })
    expect(start).toContain('{ cat $HOME/.ray/muster/m10-6333/auth_token && echo && :; }')
    expect(start).not.toContain('RAY_AUTH_TOKEN_PATH')
  })

  it('stops old nodes while a new head starts, and at once if their head is gone', () => {
    const orphans = HEAD_RUNS.filter(({ role }) => role === 'helper')
    const operations = up({ ...DOWN, processes: orphans })
    expect(operations.map(({ id, after }) => [id, after])).toEqual([
      ['ray/head@m10', []],
      ['ray/old-node@m8', []],
      ['ray/worker@m8', ['ray/head@m10', 'ray/old-node@m8']],
    ])
    const scripts = (list: readonly Operation[]) =>
      list.flatMap(({ verdict }) => (verdict.kind === 'steps' ? verdict.steps.map(({ run }) => run.script) : []))
    expect(scripts(operations).filter((script) => script.includes('left=0\n'))).toHaveLength(2)
    expect(scripts(planRay('down', WANTED, areaFacts())).filter((script) => script.includes('left=0\n'))).toEqual([])
  })

  it('removes what a head left behind, with its workers', () => {
    const orphans = HEAD_RUNS.filter(({ role }) => role === 'helper')
    const operations = up({ ...DOWN, processes: orphans })
    expect(said(operations)).toEqual([
      'm10: end the processes of this cluster',
      'm10: start the head',
      'm8: end the processes of this cluster',
      'm8: join 10.81.0.1:6333',
    ])
    expect(changes(operations)[0]).toBe('~ its GCS is gone, and these processes are left')
  })

  it('stops nothing because a dashboard does not answer', () => {
    const slow = { kind: 'unknown', because: 'a program on the host hangs' } as const
    expect(said(up({ cluster: slow }))).toEqual(['m10: blocker no-dashboard', 'm8: nothing'])
    expect(said(up({ cluster: { kind: 'silent', because: 'timed out' } }))[0]).toBe('m10: blocker no-dashboard')
  })

  it('leaves processes of another user alone', () => {
    const space = { ...SPACE, uid: 1000 }
    expect(said(planRay('down', WANTED, areaFacts({}, { space })))[0]).toBe('m8: blocker other-user')
    expect(said(up({}, { space }, { workers: [node('m8', '10.81.0.2', 8)] }))).toEqual([
      'm10: nothing',
      'm8: blocker other-user',
    ])
  })

  it('stops the workers first, even if some hosts are unreachable', () => {
    const operations = planRay('down', WANTED, areaFacts())
    expect(said(operations)).toEqual([
      'm8: end the processes of this cluster',
      'm10: end the processes of this cluster',
    ])
    expect(operations[1]?.after).toEqual(['ray/worker@m8'])
    expect(changes(operations)).toContain('- gcs_server (process 20)')
    const { facts } = areaFacts()
    facts.delete('m8')
    expect(planRay('down', WANTED, { facts, away: new Map([['m8', 'cut']]) }).map(({ after }) => after)).toEqual([[]])
    expect(said(planRay('down', WANTED, areaFacts(DOWN, DOWN)))).toEqual(['m8: nothing', 'm10: nothing'])
  })
})

describe('a finding before anything starts', () => {
  const told = (head: Change = {}, worker: Change = {}, wanted: Partial<RayWanted> = {}) =>
    said(up({ ...DOWN, ...head }, { ...DOWN, ...worker }, wanted)).filter((line) => / blocker /.test(line))

  it("names a version of Ray or Python that differs from the head's", () => {
    expect(told({}, { installed: { ...RAY, ray: '2.59.0' } })).toEqual(['m8: blocker ray-version'])
    expect(told({}, { installed: { ...RAY, python: '3.11.7' } })).toEqual(['m8: blocker python-version'])
    const variables = { RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL: 'minor' }
    expect(told({}, { installed: { ...RAY, python: '3.11.7' } }, { variables })).toEqual([])
    expect(told({}, { installed: { ...RAY, python: '3.12.2' } }, { variables })).toEqual(['m8: blocker python-version'])
    // What runs counts, and not what is installed beside it.
    expect(said(up({ installed: { ...RAY, ray: '2.61.0' } }, { processes: [] }))).toEqual([
      'm10: nothing',
      'm8: join 10.81.0.1:6333',
    ])
  })

  it('names a head without a dashboard, and a port in use', () => {
    expect(told({ installed: { ...RAY, missing: ['aiohttp'] } })).toEqual(['m10: blocker no-dashboard'])
    expect(told({ listeners: [{ port: 6333, address: '127.0.0.1', name: 'nc', pid: 7 }] })).toEqual([
      'm10: blocker port-taken',
    ])
    expect(told({ listeners: [{ port: 8265, address: '*' }] })).toEqual(['m10: blocker port-taken'])
    expect(told({ listeners: [{ port: 8265, address: '10.81.0.1' }] })).toEqual([])
    // Its own, where nobody says whose they are.
    const blind = {
      listeners: [
        { port: 6333, address: '*' },
        { port: 8265, address: '127.0.0.1' },
      ],
    }
    const helpers = HEAD_RUNS.filter(({ role }) => role === 'helper')
    expect(said(up({ ...DOWN, ...blind, processes: helpers }, DOWN))[0]).toBe('m10: end the processes of this cluster')
    expect(told(blind)).toEqual(['m10: blocker port-taken', 'm10: blocker port-taken'])
    const taken = { listeners: [{ port: 6701, address: '*' }] }
    expect(told(taken, taken, { ports: { objectManager: 6701 } })).toEqual([
      'm10: blocker port-taken',
      'm8: blocker port-taken',
    ])
  })

  describe('names a missing Ray', () => {
    const NO_VENV: Installed = { kind: 'absent', hasPython: false }
    const NO_RAY: Installed = { kind: 'absent', hasPython: true }
    const source = (own: Partial<EnvironmentSource> = {}): Partial<RayWanted> => ({
      source: { path: 'requirements.txt', namesRay: 'yes', isComplete: false, ...own },
    })
    const env = (host: string, kind: 'nothing' | 'steps' | 'blocked'): Operation => {
      const verdicts = {
        nothing: { kind: 'nothing', because: 'it is as declared' },
        steps: { kind: 'steps', state: 'missing', steps: [] },
        blocked: { kind: 'blocked', findings: [] },
      } as const
      return { id: `env/venv@${host}`, area: 'env', host, title: 'venv', after: [], verdict: verdicts[kind] }
    }
    const both = (kind: 'nothing' | 'steps' | 'blocked') => [env('m10', kind), env('m8', kind)]
    const hints = (operations: readonly Operation[]) =>
      operations.flatMap(({ host, verdict }) =>
        verdict.kind === 'blocked' ? verdict.findings.map((found) => `${host}: ${formatFinding(found)}`) : [],
      )
    const plan = (installed: Installed, wanted: Partial<RayWanted> = {}, before: readonly Operation[] = []) =>
      planRay('up', { ...WANTED, ...wanted }, areaFacts({ ...DOWN, installed }, { ...DOWN, installed }), before)

    it('if this run does not create the environment', () => {
      expect(hints(plan(NO_VENV, source({ namesRay: 'unknown' })))).toEqual(
        ['m10', 'm8'].map(
          (host) =>
            `${host}: there is no ray in /opt/ray. Create the environment first: muster up env. Its source, requirements.txt, must name ray[default].`,
        ),
      )
      expect(hints(plan(NO_RAY, source()))).toEqual(
        ['m10', 'm8'].map(
          (host) =>
            `${host}: there is no ray in /opt/ray. Add the line ray[default] to requirements.txt, then: muster up env.`,
        ),
      )
      const followed = { ...WANTED.head.environment, from: 'm10' } as NonNullable<RayNode['environment']>
      const nodes = {
        head: { ...WANTED.head, environment: followed },
        workers: WANTED.workers.map((worker) => ({ ...worker, environment: followed })),
      }
      expect(hints(plan(NO_RAY, nodes))).toEqual([
        "m10: there is no ray in /opt/ray (there: /opt/ray/bin/python -m pip install 'ray[default]')",
        'm8: there is no ray in /opt/ray. It follows m10: install ray[default] there, then: muster up env.',
      ])
      const bare = { ...WANTED.head, environment: undefined as never }
      expect(hints(plan(NO_VENV, { head: bare, workers: [] }))).toEqual([
        "m10: there is no ray in the PATH of the login. Install it, or set environment in hosts.yaml to the environment that has it. (there: python3 -m pip install 'ray[default]')",
      ])
    })

    it('if the environment stays unchanged, or cannot be created', () => {
      expect(said(plan(NO_RAY, source(), both('nothing')))).toEqual(['m10: blocker no-ray', 'm8: blocker no-ray'])
      expect(said(plan(NO_VENV, source(), both('blocked')))).toEqual(['m10: blocker no-ray', 'm8: blocker no-ray'])
    })

    it('but not if the environment is created first, from a list that names Ray', () => {
      expect(said(plan(NO_VENV, source(), both('steps')))).toEqual(START_BOTH)
      expect(said(plan(NO_VENV, source({ namesRay: 'unknown' }), both('steps')))).toEqual(START_BOTH)
      // They share the directory, and one of them makes it for both.
      const verdict = { kind: 'nothing', because: 'it shares /home/ada with m10', keeper: 'm10' } as const
      const shared = [env('m10', 'steps'), { ...env('m8', 'nothing'), verdict }]
      const operations = plan(NO_VENV, source(), shared)
      expect(said(operations)).toEqual(START_BOTH)
      expect(operations.find(({ host }) => host === 'm8')?.after).toContain(env('m10', 'steps').id)
    })

    it('as a risk if another package may install it, and as a blocker if all packages are listed', () => {
      const operations = plan(NO_VENV, source({ namesRay: 'no' }), both('steps'))
      expect(said(operations)).toEqual(START_BOTH)
      expect(changes(operations)).toContain(
        '~ risk: requirements.txt does not name ray. Unless another package needs it, the node cannot start. Add the line ray[default] to requirements.txt.',
      )
      const complete = { path: 'uv.lock', namesRay: 'no', isComplete: true } as const
      expect(said(plan(NO_VENV, source(complete), both('steps')))[0]).toBe('m10: blocker no-ray')
    })
  })

  it.each([
    ['requirements.txt', 'numpy\n', 'no'],
    ['requirements.txt', '# ray\nxray==1\nray-tune==1\n', 'no'],
    ['requirements.txt', 'numpy\nray[default]==2.60.0 # for all\n', 'yes'],
    ['requirements.txt', 'Ray >= 2.9; python_version > "3.8"\n', 'yes'],
    ['requirements.txt', './wheels/ray-2.60.0-cp311-cp311-manylinux2014_x86_64.whl\n', 'yes'],
    ['uv.lock', '[[package]]\nname = "ray"\n', 'yes'],
    ['uv.lock', '[[package]]\nname = "numpy"\n', 'no'],
    ['requirements.txt', undefined, 'unknown'],
  ])('finds out from %s whether it names Ray: %j', (requirements, text, namesRay) => {
    const environment = {
      kind: 'venv',
      path: '/opt/ray',
      python: 'python3',
      hosts: [],
      from: 'm10',
      file: requirements,
    }
    const files =
      text === undefined ? [] : [[requirements, { kind: 'text', path: requirements, text, digest: '' }] as const]
    const declared = declaredWith(environment, new Map(files))
    expect(sourceOf(declared)?.namesRay).toBe(namesRay)
  })

  it.each([
    ['- ray-default=2.9', 'yes'],
    ['- conda-forge::ray-core', 'yes'],
    ['    - ray[default]==2.60', 'yes'],
    ['https://conda.anaconda.org/conda-forge/linux-64/ray-core-2.9.0-py311h.conda', 'yes'],
    ['- numpy', 'no'],
    ['name: ray', 'no'],
  ])("finds out from conda's input whether it names Ray: %j", (text, namesRay) => {
    const environment = { kind: 'conda', name: 'ray', hosts: [], from: 'm10', file: 'environment.yml' }
    const file = { kind: 'text', path: 'environment.yml', text: `dependencies:\n${text}\n`, digest: '' }
    const declared = declaredWith(environment, new Map([['environment.yml', file]]))
    expect(sourceOf(declared)?.namesRay).toBe(namesRay)
  })

  it('names a Ray without tokens, if one is declared', () => {
    const old: Installed = { ...RAY, ray: '2.51.1' }
    expect(told({ installed: old }, { installed: old }, { hasToken: true })).toEqual([
      'm10: blocker no-tokens',
      'm8: blocker no-tokens',
    ])
    expect(told({ installed: old }, { installed: old })).toEqual([])
  })

  it('names an address that no other node can reach, and a fraction of a resource', () => {
    const third = { ...node('m8', '10.81.0.2', 16), custom: { licence: 0.3 } }
    expect(told({}, {}, { workers: [third] })).toEqual(['m8: blocker part-of-resource'])
    expect(told({}, {}, { workers: [node('m8', '127.0.0.1', 16)] })).toEqual(['m8: blocker loopback-ip'])
    expect(told({}, {}, { workers: [node('m8', '203.0.113.8', 16)] })).toEqual(['m8: blocker foreign-ip'])
    const { ip: _, ...nameless } = node('m8', '10.81.0.2', 16)
    expect(told({}, {}, { workers: [nameless] })).toEqual(['m8: blocker no-ip'])
    const ssh = { addresses: { ...at('10.81.0.2'), ssh: '10.81.0.2' } }
    expect(changes(up(DOWN, { ...DOWN, ...ssh }, { workers: [nameless] }))[1]).toContain('--node-ip-address=10.81.0.2')
  })

  it('names a label that Ray rejects, or does not support yet', () => {
    const labelled = (name: string, label: string) => [{ ...node('m8', '10.81.0.2', 16), labels: { [name]: label } }]
    const old: Installed = { ...RAY, ray: '2.48.0' }
    const both = [{ installed: old }, { installed: old }] as const
    expect(told(...both, { workers: labelled('rack', '3') })).toEqual(['m8: blocker no-labels'])
    expect(told(...both)).toEqual([])
    expect(told({}, {}, { workers: labelled('example.org/rack', '3') })).toEqual([])
    for (const [name, label] of [
      ['rack', 'a b'],
      ['rack', 'a,b=c'],
      ['ray.io/rack', '3'],
      ['a/b/c', '3'],
      ['-', '3'],
    ] as const) {
      expect(told({}, {}, { workers: labelled(name, label) })).toEqual(['m8: blocker label'])
    }
  })

  const closed = (host: string, ...ports: readonly (readonly [number, Hindrance])[]): Change => ({
    unreached: new Map([[host, new Map(ports)]]),
  })
  /** The causes, without what mends them. */
  const risksOf = (operations: readonly Operation[]) =>
    changes(operations).flatMap((line) => (line.startsWith('~ risk: ') ? line.slice(8).split(/\. | \(there/, 1) : []))
  const risks = (head: Change, worker: Change) => risksOf(up({ ...DOWN, ...head }, { ...DOWN, ...worker }))

  it('names a blocked route', () => {
    expect(told({}, closed('m10', [6333, 'silent'], [10_002, 'silent']))).toEqual(['m8: blocker no-way'])
    expect(told({}, closed('m10', [6333, 'noroute']))).toEqual(['m8: blocker no-way'])
    expect(told({}, closed('m10', [6333, 'unknown']))).toEqual(['m8: blocker no-name'])
    expect(told(closed('m8', [10_002, 'silent']))).toEqual([])
    // Nobody listens there yet.
    expect(told({}, closed('m10', [6333, 'refused'], [10_002, 'refused']))).toEqual([])
    expect(risks(closed('m8', [10_002, 'silent']), {})).toEqual([
      'cannot connect to m8: 10.81.0.2, port 10002: no answer',
    ])
    expect(risks({}, closed('m10', [10_002, 'silent']))).toEqual([
      'cannot connect to m10: 10.81.0.1, port 10002: a firewall drops the packets',
    ])
    const joins = { ...DOWN, ...closed('m10', [6333, 'refused'], [10_002, 'refused']) }
    expect(said(up({}, joins))).toEqual(['m10: nothing', 'm8: blocker no-way'])
  })

  it('names the networks of hosts without a common one', () => {
    const hint = (...networks: readonly string[]) => {
      const worker = {
        ...closed('m10', [6333, 'silent'], [10_002, 'silent']),
        addresses: { own: ['10.81.0.2'], networks },
      }
      const [, operation] = up(DOWN, { ...DOWN, ...worker })
      return operation?.verdict.kind === 'blocked' ? operation.verdict.findings.map((each) => each.hint).join() : ''
    }
    expect(hint('10.81.0.2/16')).toContain('on different networks, or')
    expect(hint('192.168.7.2/24')).toContain('different networks (192.168.7.2/24 here, 10.81.0.1/16 there), or')
  })

  it('names a public address among private ones, whichever of them is the head', () => {
    const announced = (head: string, worker: string, third = '10.81.0.3') => {
      const nodes = { head: node('m10', head, 4), workers: [node('m8', worker, 16), node('m9', third, 16)] }
      const at8 = { ...DOWN, addresses: at(worker) }
      return risksOf(up({ ...DOWN, addresses: at(head) }, at8, nodes))
    }
    expect(announced('10.81.0.1', '10.81.0.2')).toEqual([])
    expect(announced('198.51.100.1', '203.0.113.8', '198.51.100.3')).toEqual([])
    expect(announced('192.168.1.1', '100.64.7.2', '172.31.0.9')).toEqual([])
    expect(announced('10.81.0.1', '169.254.0.7')).toEqual([])
    expect(announced('10.81.0.1', '203.0.113.8')).toEqual([
      'its node would announce the public address 203.0.113.8, but m[9-10] private ones (10.81.0.1, …), which cannot be reached from outside',
    ])
    expect(announced('172.32.0.1', '10.81.0.2', '198.51.100.3')).toEqual([
      'its node would announce the public address 172.32.0.1, but m8 private ones (10.81.0.2), which cannot be reached from outside',
    ])
    const [line] = changes(
      up(DOWN, { ...DOWN, addresses: at('203.0.113.8') }, { workers: [node('m8', '203.0.113.8', 16)] }),
    ).filter((each) => each.startsWith('~ risk'))
    expect(line).toContain('in both directions. m8 needs an address that the others share: a bridge')
  })

  it('names hosts without a common network between which no route was tried', () => {
    const elsewhere = { own: ['192.168.7.2'], networks: ['127.0.0.1/8', '192.168.7.2/24'] }
    const untried: Known<never> = { kind: 'unknown', because: 'there is no python' }
    const workers = { workers: [node('m8', '192.168.7.2', 16)] }
    const of = (worker: Change) => risksOf(up(DOWN, { ...DOWN, addresses: elsewhere, ...worker }, workers))
    expect(of({})).toEqual([])
    expect(of({ unreached: untried })).toEqual([
      'it has no network in common with m10 (192.168.7.2/24 here, 10.81.0.1/16 on m10), and no connection was tried: there is no python',
    ])
    expect(risks({}, { unreached: untried })).toEqual([])
  })

  it('says how a host behind NAT gets a working address', () => {
    const [, operation] = up(DOWN, { ...DOWN, addresses: at('172.20.3.4') })
    const findings = operation?.verdict.kind === 'blocked' ? operation.verdict.findings : []
    expect(findings.map(({ id, hint }) => [id, hint])).toEqual([
      ['foreign-ip', expect.stringMatching(/WSL2.*node_ips: \{ m8: IP \}.*a bridge into their network, .*a tunnel/)],
    ])
  })

  it('names a clock that is certainly wrong, and too little space for objects', () => {
    const clocks = (headMs: number, ownMs: number) => {
      const { facts, away } = areaFacts({ ...DOWN, clock: headMs }, { ...DOWN, clock: ownMs })
      const answered = new Map([...facts].map(([host, own]) => [host, { ...own, atMs: 0, untilMs: 4000 }]))
      return risksOf(planRay('up', WANTED, { facts: answered, away }))
    }
    expect(clocks(2000, 2000)).toEqual([])
    expect(clocks(0, 8900)).toEqual([])
    expect(clocks(0, 9000)).toEqual(['the clock is ahead of that of m10'])
    expect(clocks(60_000, 2000)).toEqual(['the clock is behind that of m10'])
    expect(risks({ space: { ...SPACE, sharedBytes: 64e6 } }, {})).toEqual([
      '/dev/shm is smaller than the object store, which will use the disk instead',
    ])
  })

  it('names a foreign directory, and an unknown fact', () => {
    expect(told({ space: { ...SPACE, isTempWritable: false } })).toEqual(['m10: blocker temp-dir'])
    expect(told({ processes: { kind: 'unknown', because: 'cut' } })).toEqual(['m10: blocker unknown'])
  })
})

it('reports the running cluster with totals, foreign nodes and an open dashboard', async () => {
  const ids = async (wanted: Partial<RayWanted>) =>
    (await verifyRay({ ...WANTED, ...wanted }, areaFacts())).map(({ id, detail }) =>
      detail === undefined ? id : `${id}: ${detail}`,
    )
  expect(await ids({})).toEqual(['cluster: 20 CPU, 43.8 GiB memory'])
  const units = areaFacts(
    { unit: { kind: 'there', state: 'active', enabled: 'enabled' } },
    { unit: { kind: 'there', state: 'active', enabled: 'disabled' } },
  )
  expect((await verifyRay(WANTED, units)).map(({ host, id }) => `${host}: ${id}`)).toEqual([
    'm10: kept',
    'm8: not-kept',
    'm10: cluster',
  ])
  // It runs without, whatever is declared now.
  expect(await ids({ dashboardHost: '0.0.0.0', hasToken: true })).toEqual([
    'no-token',
    'cluster: 20 CPU, 43.8 GiB memory',
  ])
  expect(await ids({ workers: [], dashboardHost: '0.0.0.0' })).toEqual([
    'open-dashboard',
    'other-node',
    'cluster: 20 CPU, 43.8 GiB memory',
  ])
})
