/** Bring-up of Slurm: files from hosts.yaml, facts of hosts that lie, and plans. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defined } from '../../../../src/base/defined.ts'
import { sectionOf } from '../../../../src/inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../../../src/inventory/inventory.ts'
import type { AreaFacts, Declared } from '../../../../src/ops/kernel/area.ts'
import { type HostFacts, known } from '../../../../src/ops/kernel/fact.ts'
import { type FileState, MADE_BY_MUSTER } from '../../../../src/ops/kernel/files.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import type { LiveJob, NodeState, SlurmView } from '../../../../src/ops/slurm/cluster-fact.ts'
import { type Process, type SlurmFacts, slurmFacts } from '../../../../src/ops/slurm/facts.ts'
import { findingOfNode } from '../../../../src/ops/slurm/findings.ts'
import { planSlurm } from '../../../../src/ops/slurm/plan.ts'
import { type SlurmSpec, section } from '../../../../src/ops/slurm/section.ts'
import { verifySlurm } from '../../../../src/ops/slurm/verify.ts'
import { cgroupConf, gresConf, type SlurmWanted, slurmConf, wantedSlurm } from '../../../../src/ops/slurm/wanted.ts'
import { anyCharacter } from '../../../support/any-character.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'

const SPEC: SlurmSpec = {
  login: 'c1',
  cluster: { controller: 'c1', nodes: ['n1', 'n2'], nodeIps: {} },
  coreMemoryBytes: 2 ** 30,
  options: [],
}
const GIB = 2 ** 30

type HostOptions = { readonly address?: string; readonly transport?: string; readonly resources?: object }

function declared(spec: SlurmSpec, own: Readonly<Record<string, HostOptions>> = {}): Declared {
  const hosts = ['c1', 'n1', 'n2'].map((name, index) => ({
    name,
    number: index + 1,
    resources: { cpu: 4.5, memoryBytes: 8 * GIB, gpu: name === 'n1' ? 2 : 0 },
    ...own[name],
  }))
  const endpoints = hosts.map(({ name }, index) => [
    name,
    { host: name, address: `10.0.0.${index + 1}`, transport: 'ssh2', ...own[name] },
  ])
  return {
    inventory: { hosts, sections: new Map([['slurm', spec]]) } as unknown as Inventory,
    endpoints: new Map(endpoints as never),
  }
}

const wantedOf = (spec: Partial<SlurmSpec> = {}, own: Readonly<Record<string, HostOptions>> = {}): SlurmWanted =>
  wantedSlurm(declared({ ...SPEC, ...spec }, own)) as SlurmWanted

describe('slurm in hosts.yaml', () => {
  const read = (text: string) => sectionOf(readInventory(`hosts: { c1: , n1: , n2: }\nslurm: ${text}\n`), section)

  it('is a cluster to set up, or the login host of one that is not changed', () => {
    expect(read('{ controller: c1, nodes: "n[1-2]", node_ips: { n1: 10.0.0.9 } }')).toEqual({
      login: 'c1',
      cluster: { controller: 'c1', nodes: ['n1', 'n2'], nodeIps: { n1: '10.0.0.9' } },
      coreMemoryBytes: GIB,
      options: [],
    })
    expect(read('{ login: n1, partition: "long,short" }')).toEqual({
      ...{ login: 'n1', partition: 'long,short', coreMemoryBytes: GIB, options: [] },
    })
  })

  it.each([
    ['{ partition: main }', 'slurm has neither controller nor login; write { controller: m10, nodes: "m[8-9]" }'],
    ['{ controller: c1 }', 'slurm has a controller and no nodes; write nodes: "m[8-9]"'],
    ['{ login: c1, nodes: n1 }', 'slurm has nodes and no controller; write controller: m10'],
    ['{ controller: c9, nodes: n1 }', 'c9'],
    ['{ controller: c1, nodes: n1, node_ips: { n1: "10.0.0.1 X=1" } }', 'is not an IPv4 address'],
    [
      '{ controller: c1, nodes: n1, partition: "a,b" }',
      'muster up slurm makes one partition, and its name has letters, digits, _ . and -',
    ],
  ])('%s is a mistake', (text, message) => {
    expect(() => read(text)).toThrow(message)
  })
})

describe('the files of the cluster', () => {
  it('declare what hosts.yaml does, and a default memory for each core', () => {
    const text = slurmConf(wantedOf())
    expect(text.startsWith(`${MADE_BY_MUSTER}\n`)).toBe(true)
    for (const line of [
      'SlurmctldHost=c1(10.0.0.1)',
      'ReturnToService=2',
      'DefMemPerCPU=1024',
      'JobCompType=jobcomp/filetxt',
      'GresTypes=gpu',
      'NodeName=n1 NodeAddr=10.0.0.2 CPUs=4 RealMemory=8192 Gres=gpu:2',
      'NodeName=n2 NodeAddr=10.0.0.3 CPUs=4 RealMemory=8192',
      'PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP',
    ])
      expect(text.split('\n')).toContain(line)
    expect(gresConf(wantedOf())).toBe(`${MADE_BY_MUSTER}\nAutoDetect=off\nNodeName=n1 Name=gpu File=/dev/nvidia[0-1]\n`)
  })

  it('have shards and another partition if hosts.yaml says so', () => {
    const wanted = wantedOf({ shardsPerGpu: 4, partition: 'gpus', coreMemoryBytes: 0 })
    const text = slurmConf(wanted)
    expect(text).toContain('GresTypes=gpu,shard\n')
    expect(text).toContain('Gres=gpu:2,shard:8\n')
    expect(text).toContain('PartitionName=gpus ')
    expect(text).not.toContain('DefMemPerCPU')
    expect(gresConf(wanted)).toContain('NodeName=n1 Name=shard Count=8\n')
  })

  it('name the plugin for the control groups of the host', () => {
    const lines = (fileSystem: string, hasSystemd: boolean) =>
      cgroupConf(fileSystem, hasSystemd).split('\n').slice(1, -1)
    expect(lines('tmpfs', true)).toEqual(['CgroupPlugin=cgroup/v1'])
    expect(lines('cgroup2fs', true)).toEqual(['CgroupPlugin=cgroup/v2'])
    expect(lines('cgroup2fs', false)).toEqual(['CgroupPlugin=cgroup/v2', 'IgnoreSystemd=yes'])
  })

  it('take addresses from hosts.yaml, never one that only means the host itself', () => {
    const addresses = (own: Readonly<Record<string, HostOptions>>, nodeIps = {}) =>
      wantedOf({ cluster: { controller: 'c1', nodes: ['n1', 'n2'], nodeIps } }, own).hosts.map(({ address }) => address)
    expect(addresses({ n1: { transport: 'local' }, n2: { address: '127.0.0.1' } })).toEqual([
      '10.0.0.1',
      undefined,
      undefined,
    ])
    expect(addresses({ n1: { transport: 'local' } }, { n1: '10.9.0.1' })[1]).toBe('10.9.0.1')
    expect(addresses({ n1: { address: 'fe80::1' }, n2: { address: 'n2.example.org' } })).toEqual([
      '10.0.0.1',
      undefined,
      'n2.example.org',
    ])
  })
})

type HostState = {
  readonly [K in keyof SlurmFacts]?: SlurmFacts[K]
}

const FILE = (text: string): FileState => ({ kind: 'file', text, mode: '644', sum: '1-1' })
const NONE: FileState = { kind: 'none' }
const SUM = 'a'.repeat(64)
const OTHER_SUM = 'b'.repeat(64)
const process = (daemon: Process['daemon'], startS = 1000): Process => ({ daemon, pid: 7, startS })

const node = (name: string, own: Partial<NodeState> = {}): NodeState => {
  return { name, state: 'idle', isSilent: false, reason: '', cpus: 4, gpus: name === 'n1' ? 2 : 0, shards: 0, ...own }
}
const answers = (own: Partial<Extract<SlurmView, { kind: 'answers' }>> = {}): SlurmView => {
  const nodes = [node('n1'), node('n2')]
  const partitions = new Map([['main', 'up']])
  return { kind: 'answers', nodes, hasDefaultMemory: true, partitions, jobs: [], missing: [], ...own }
}

const job = (id: string, own: Partial<LiveJob> = {}): LiveJob => {
  return {
    id,
    isWaiting: false,
    user: 'ann',
    partitions: ['main'],
    nodes: ['n1'],
    gres: [],
    name: 'train',
    ...own,
  }
}

/** A host on which nothing was set up. */
const bare = (host: string): SlurmFacts => ({
  packages: { manager: 'apt', installed: new Map(), own: [] },
  programs: { missing: ['munged', 'srun'] },
  slurm: NONE,
  gres: NONE,
  cgroup: NONE,
  record: NONE,
  key: { kind: 'absent' },
  daemons: { hasSystemd: false, enabled: [], processes: [], changedS: new Map() },
  machine: { hostName: host, cores: 8, memoryMib: 16_000, gpus: [0, 1], cgroup: 'tmpfs', hasPlace: false },
  clock: 1_700_000_000_000,
  started: NONE,
  cluster: { kind: 'unasked' },
})

/** A host on which all is as declared. */
function good(wanted: SlurmWanted, host: string): SlurmFacts {
  const { isController, isNode } = wanted.hosts.find((own) => own.host === host) ?? {}
  return {
    ...bare(host),
    programs: { missing: [], version: '22.05.8' },
    packages: { manager: 'apt', installed: new Map(), own: ['munge'] },
    slurm: FILE(slurmConf(wanted)),
    gres: FILE(gresConf(wanted)),
    cgroup: FILE(cgroupConf('tmpfs', false)),
    record: FILE(`${MADE_BY_MUSTER}\nkey ${SUM}\n`),
    key: { kind: 'file', sum: SUM, isText: true },
    daemons: {
      hasSystemd: false,
      enabled: [],
      processes: [
        process('munged'),
        ...(isController ? [process('slurmctld')] : []),
        ...(isNode ? [process('slurmd')] : []),
      ],
      changedS: new Map([['/etc/slurm/slurm.conf', 900]]),
    },
    machine: { ...bare(host).machine, hasPlace: true },
    cluster: isController ? answers() : { kind: 'unasked' },
  }
}

function factsOf(states: Readonly<Record<string, SlurmFacts>>, away: readonly string[] = []): AreaFacts<SlurmFacts> {
  const facts = Object.entries(states).map(([host, state]) => {
    const own = Object.fromEntries(Object.entries(state).map(([name, value]) => [name, known(value)]))
    return [host, { atMs: 1_700_000_000_000, untilMs: 1_700_000_000_050, facts: own }] as const
  })
  return {
    facts: new Map(facts) as unknown as ReadonlyMap<string, HostFacts<SlurmFacts>>,
    away: new Map(away.map((host) => [host, 'no answer'])),
  }
}

const all = (change: Readonly<Record<string, HostState>> = {}, wanted = wantedOf()) =>
  factsOf(Object.fromEntries(['c1', 'n1', 'n2'].map((host) => [host, { ...good(wanted, host), ...change[host] }])))

/** `OPERATION@HOST: STEPS`, or why it is blocked; nothing to do is left out. */
const told = (operations: readonly Operation[]): readonly string[] =>
  operations.flatMap(({ id, verdict }) =>
    verdict.kind === 'nothing'
      ? []
      : verdict.kind === 'blocked'
        ? verdict.findings.map(({ cause }) => `${id.slice('slurm/'.length)}: ! ${cause}`)
        : [`${id.slice('slurm/'.length)}: ${verdict.steps.map((step) => step.title).join(', ')}`],
  )
const up = (facts: AreaFacts<SlurmFacts>, wanted = wantedOf()) => told(planSlurm('up', wanted, facts))

describe('a plan for up', () => {
  it('sets up all of it on bare hosts, the controller first', () => {
    const states = Object.fromEntries(['c1', 'n1', 'n2'].map((host) => [host, bare(host)]))
    const operations = planSlurm('up', wantedOf(), factsOf(states))
    expect(told(operations).filter((line) => /@(c1|n1)/.test(line))).toEqual([
      'packages@c1: install munge and slurm-client and slurmctld with apt',
      'munge@c1: make the munge key of the cluster',
      'configuration@c1: create /var/lib/muster-slurm, write /etc/slurm/slurm.conf, write /etc/slurm/gres.conf, write /etc/slurm/cgroup.conf',
      'controller@c1: start slurmctld',
      'packages@n1: install munge and slurm-client and slurmd with apt',
      'munge@n1: bring the munge key from c1',
      'configuration@n1: create /var/lib/muster-slurm, write /etc/slurm/slurm.conf, write /etc/slurm/gres.conf, write /etc/slurm/cgroup.conf',
      'node@n1: start slurmd',
    ])
    const after = new Map(operations.map(({ id, after: ids }) => [id, ids]))
    expect(after.get('slurm/munge@n1')).toEqual(['slurm/munge@c1'])
    expect(after.get('slurm/node@n1')).toEqual(['slurm/controller@c1'])
  })

  it('has nothing to do where all is as declared', () => {
    expect(up(all())).toEqual([])
  })

  it('keeps the key out of scripts, titles and changes', () => {
    const operations = planSlurm('up', wantedOf(), all({ n2: { key: { kind: 'file', sum: OTHER_SUM, isText: true } } }))
    expect(told(operations)).toEqual([
      'munge@c1: read the munge key for the other hosts',
      'munge@n2: bring the munge key from c1',
    ])
    expect(operations.flatMap(({ verdict }) => (verdict.kind === 'steps' ? verdict.because : []))).toEqual([
      'another host needs its key',
      'its munge key is not the one of c1',
    ])
    const steps = operations.flatMap(({ verdict }) => (verdict.kind === 'steps' ? verdict.steps : []))
    expect(steps.map(({ run }) => run.isSecret)).toEqual([true, true])
    expect(steps[1]?.run.stdin).toEqual([{ output: 'slurm/munge@c1/key', pattern: '[0-9a-f]{128}' }])
  })

  it('makes a new key for all if that of the controller was replaced by one of another form', () => {
    expect(up(all({ c1: { key: { kind: 'file', sum: OTHER_SUM, isText: false } } }))).toEqual([
      'munge@c1: make the munge key of the cluster',
      'munge@n1: bring the munge key from c1',
      'munge@n2: bring the munge key from c1',
    ])
  })

  it('trusts the record where the login may not see the key', () => {
    expect(up(all({ n1: { key: { kind: 'hidden' } } }))).toEqual([])
    const record = FILE(`${MADE_BY_MUSTER}\nkey ${OTHER_SUM}\n`)
    expect(up(all({ n1: { key: { kind: 'hidden' }, record } }))).toContain('munge@n1: bring the munge key from c1')
  })

  it('restarts daemons that started before their files were written', () => {
    const daemons = { ...good(wantedOf(), 'n1').daemons, changedS: new Map([['/etc/slurm/gres.conf', 1100]]) }
    expect(up(all({ n1: { daemons } }))).toEqual(['node@n1: restart slurmd (jobs go on)'])
  })

  it('changes nothing of another cluster, and nothing elsewhere without its controller', () => {
    expect(up(all({ c1: { slurm: FILE('ClusterName=site\n') } }))).toEqual([
      "host@c1: ! /etc/slurm/slurm.conf is not Muster's, and Muster does not change it",
      'host@n1: ! c1, the controller, cannot be set up now',
      'host@n2: ! c1, the controller, cannot be set up now',
    ])
    const nodes = { n1: good(wantedOf(), 'n1'), n2: good(wantedOf(), 'n2') }
    expect(up(factsOf(nodes, ['c1']))).toEqual([
      'host@n1: ! c1, the controller, is not reached: no answer',
      'host@n2: ! c1, the controller, is not reached: no answer',
    ])
    const running = { ...bare('n1').daemons, processes: [process('slurmd')] }
    expect(up(all({ n1: { slurm: NONE, record: NONE, key: { kind: 'absent' }, daemons: running } }))).toEqual([
      "host@n1: ! slurmd runs here with a configuration that is not Muster's",
    ])
    const own = { manager: 'apt' as const, installed: new Map(), own: [] }
    expect(up(all({ n2: { record: NONE, packages: own } }))).toEqual([
      "host@n2: ! /etc/munge/munge.key is not Muster's, and Muster does not change it",
    ])
  })

  it('names the host whose resources or address hosts.yaml lacks, and sets up nothing', () => {
    const wanted = wantedOf({}, { n2: { resources: { cpu: 4 } } })
    expect(up(all({}, wanted), wanted)).toEqual([
      'host@c1: ! slurm.conf cannot be made: hosts.yaml lacks something for n2',
      'host@n1: ! slurm.conf cannot be made: hosts.yaml lacks something for n2',
      'host@n2: ! hosts.yaml does not say how many cores and how much memory jobs may use',
    ])
  })

  it('names what would keep a host out', () => {
    const machine = good(wantedOf(), 'n1').machine
    const cases: readonly (readonly [HostState, string])[] = [
      [
        { machine: { ...machine, hostName: 'other' } },
        'its host name is other, so slurmd would not find n1 in slurm.conf',
      ],
      [{ machine: { ...machine, gpus: [0] } }, 'hosts.yaml declares 2 GPUs, and there is no /dev/nvidia1'],
      [{ clock: 1_700_000_900_000 }, 'the clock is ahead of that of c1, and munge refuses credentials of another time'],
      [{ programs: { missing: [], version: '23.02.1' } }, 'its Slurm is newer than the one on c1, which refuses it'],
    ]
    for (const [state, cause] of cases) expect(up(all({ n1: state }))).toEqual([`host@n1: ! ${cause}`])
    const old = { missing: [], version: '20.11.4' }
    expect(up(all({ c1: { programs: { missing: [], version: '23.02.1' } }, n1: { programs: old } }))).toContain(
      'host@n1: ! its Slurm is more than 2 releases older than the one on c1, which refuses it',
    )
    const dnf = { manager: 'dnf' as const, installed: new Map(), own: ['munge'] }
    expect(up(all({ n1: { packages: dnf, programs: { missing: ['slurmd'] } } }))).toContain(
      'packages@n1: ! it has no slurmd',
    )
  })

  it('resumes what Slurm drained for a cause that is gone, and nothing that a person drained', () => {
    const drained = (reason: string, state = 'drained') => {
      return all({ c1: { cluster: answers({ nodes: [node('n1', { state, reason })] }) } })
    }
    expect(up(drained('gres/gpu count reported lower than configured (0 < 2)'))).toEqual([
      'node@n1: restart slurmd (jobs go on)',
      'resume@n1: resume n1',
    ])
    expect(up(drained('new fan'))).toEqual([])
  })
})

describe('a plan for up while there are jobs', () => {
  const jobs = [
    job('7'),
    job('8', { nodes: ['n1', 'n2'], user: 'bob' }),
    job('9', { isWaiting: true, nodes: [], name: 'eval' }),
  ]
  const onGpu = job('10', { nodes: ['n1'], gres: ['gpu'] })
  const later = (wanted: SlurmWanted) => planSlurm('up', wanted, all({ c1: { cluster: answers({ jobs }) } }))
  const causes = (operations: readonly Operation[]) =>
    operations.flatMap(({ verdict }) =>
      verdict.kind === 'blocked' ? verdict.findings.map(({ cause, detail }) => `${cause} [${detail}]`) : [],
    )

  it('does nothing that would lose one, and names it', () => {
    const renamed = causes(later(wantedOf({ partition: 'other' })))
    expect(renamed[0]).toBe(
      '3 jobs would be lost: the partition main goes [7 (train, of ann), 8 (train, of bob), 9 (eval, of ann)]',
    )
    expect(renamed.slice(1).every((cause) => cause.includes('c1, the controller, cannot be set up now'))).toBe(true)
    const without = wantedOf({ cluster: { controller: 'c1', nodes: ['n1'], nodeIps: {} } })
    expect(causes(later(without))[0]).toBe('1 job would be lost: n2 leaves the cluster [8 (train, of bob)]')
    const resources = { cpu: 2, memoryBytes: 8 * GIB, gpu: 2 }
    expect(causes(later(wantedOf({}, { n1: { resources } })))[0]).toBe(
      '2 jobs would be lost: n1 gets another number of cores [7 (train, of ann), 8 (train, of bob)]',
    )
    const fewer = wantedOf({}, { n1: { resources: { cpu: 4, memoryBytes: 8 * GIB, gpu: 1 } } })
    expect(causes(planSlurm('up', fewer, all({ c1: { cluster: answers({ jobs: [...jobs, onGpu] }) } })))[0]).toBe(
      '1 job would be lost: n1 gets another number of GPUs [10 (train, of ann)]',
    )
  })

  it('knows that Slurm starts a job without its GPU where no node has GPUs any more', () => {
    const without = wantedOf({}, { n1: { resources: { cpu: 4, memoryBytes: 8 * GIB, gpu: 0 } } })
    const waiting = job('7', { isWaiting: true, nodes: [], gres: ['gpu'] })
    expect(causes(planSlurm('up', without, all({ c1: { cluster: answers({ jobs: [waiting] }) } })))[0]).toBe(
      '1 job would be lost: no node has GPUs any more [7 (train, of ann)]',
    )
    const shared = answers({ jobs: [job('8', { gres: ['shard'] })], nodes: [node('n1', { shards: 8 }), node('n2')] })
    const facts = all({ c1: { cluster: shared } }, wantedOf({ shardsPerGpu: 4 }))
    const shards = (shardsPerGpu?: number) =>
      causes(planSlurm('up', wantedOf({ ...defined({ shardsPerGpu }) }), facts))[0]
    expect(shards()).toContain('no node has shards any more')
    expect(shards(2)).toContain('n1 gets another number of shards')
    expect(shards(4)).toBeUndefined()
  })

  it('goes on where none would be', () => {
    const resources = { cpu: 4.5, memoryBytes: 4 * GIB, gpu: 1 }
    const operations = later(wantedOf({ shardsPerGpu: 4 }, { n1: { resources } }))
    expect(causes(operations)).toEqual([])
    expect(told(operations)).toContain('node@n1: restart slurmd (jobs go on)')
    // A partition made by hand, and nothing restarts.
    const cluster = answers({ jobs: [job('7', { partitions: ['mine'] })] })
    expect(up(all({ c1: { cluster } }))).toEqual([])
  })

  it('asks the controller until now, where another one is declared', () => {
    const moved = wantedOf({ cluster: { controller: 'n1', nodes: ['n2'], nodeIps: {} }, login: 'n1' })
    const moving = { ...good(wantedOf(), 'n2'), cluster: answers({ jobs }) }
    const facts = factsOf({ n1: bare('n1'), n2: moving })
    // n1 does not start a second cluster.
    expect(told(planSlurm('up', moved, facts))).toEqual([
      'host@n1: ! it waits with the other hosts until no job would be lost',
      'host@n2: ! 3 jobs would be lost: n1, the new controller, does not know what c1 runs',
    ])
    expect(slurmFacts(moved, 'n2').cluster.script).toContain('echo unasked')
  })

  it('starts no slurmctld without state while jobs run, which it would kill', () => {
    const daemons = { ...good(wantedOf(), 'n1').daemons, processes: [process('slurmd'), process('slurmstepd')] }
    const machine = bare('c1').machine
    const lost = all({ c1: { machine, cluster: { kind: 'silent', because: 'x' } }, n1: { daemons } })
    expect(told(planSlurm('up', wantedOf(), lost))).toEqual([
      'host@c1: ! it waits with the other hosts until no job would be lost',
      'host@n1: ! 1 step of jobs would be killed: c1 has no state of them any more',
      'host@n2: ! it waits with the other hosts until no job would be lost',
    ])
  })

  it('stops slurmctld on a host that is no longer the controller, once no job is lost', () => {
    const moved = wantedOf({ cluster: { controller: 'n1', nodes: ['n1', 'n2'], nodeIps: {} }, login: 'c1' })
    const states = Object.fromEntries(['c1', 'n1', 'n2'].map((host) => [host, good(wantedOf(), host)]))
    expect(told(planSlurm('up', moved, factsOf(states)))).toContain(
      'controller@c1: stop slurmctld: another host is the controller',
    )
  })

  it('says so where nobody can tell which', () => {
    const { jobs: _, ...silent } = answers() as Extract<SlurmView, { kind: 'answers' }>
    const renamed = wantedOf({ partition: 'other' })
    expect(causes(planSlurm('up', renamed, all({ c1: { cluster: silent } })))[0]).toContain(
      'cannot determine which jobs would be lost: the partition main goes',
    )
    const daemons = { ...good(wantedOf(), 'n1').daemons, processes: [process('slurmd'), process('slurmstepd')] }
    const down = all({ c1: { cluster: { kind: 'silent', because: 'x' } }, n1: { daemons } })
    expect(told(planSlurm('up', renamed, down))).toEqual([
      'host@c1: ! cannot determine which jobs would be lost: slurmctld does not answer, and the partition main goes',
      'host@n1: ! 1 step of jobs may be lost: slurmctld does not answer',
      'host@n2: ! c1, the controller, cannot be set up now',
    ])
    const without = wantedOf({ cluster: { controller: 'c1', nodes: ['n1'], nodeIps: {} } })
    expect(told(planSlurm('up', without, all({ c1: { cluster: { kind: 'silent', because: 'x' } } })))[0]).toBe(
      'host@c1: ! cannot determine which jobs would be lost: slurmctld does not answer, and n2 leaves the cluster',
    )
    // The new slurm.conf is there, and slurmctld has not come up with it.
    const cluster = { kind: 'silent', because: 'x' } as const
    const daemons1 = { ...good(wantedOf(), 'c1').daemons, processes: [process('munged')] }
    const written = (conf: string) =>
      told(planSlurm('up', without, all({ c1: { cluster, daemons: daemons1, started: FILE(conf) } }, without)))
    expect(written(slurmConf(wantedOf()))[0]).toContain('slurmctld does not answer, and n2 leaves the cluster')
    expect(written(slurmConf(wantedOf({ partition: 'old' })))[0]).toContain('and the partition old goes')
    expect(written(slurmConf(without))).toContain('controller@c1: start slurmctld')
  })
})

describe('a plan for down', () => {
  const down = (facts: AreaFacts<SlurmFacts>) => told(planSlurm('down', wantedOf(), facts))

  it('stops nodes before the controller, and removes what Muster made', () => {
    const operations = planSlurm('down', wantedOf(), all())
    expect(told(operations).filter((line) => line.includes('@c1'))).toEqual([
      'controller@c1: stop slurmctld',
      'munge@c1: stop munged, and remove its key',
      'configuration@c1: remove /etc/slurm/slurm.conf, remove /etc/slurm/gres.conf, remove /etc/slurm/cgroup.conf, remove /var/lib/muster-slurm',
      'packages@c1: remove the packages that Muster installed, except those that other packages need',
    ])
    expect(operations.find(({ id }) => id === 'slurm/controller@c1')?.after).toEqual(['slurm/node@n1', 'slurm/node@n2'])
  })

  it('has nothing to do where Muster made nothing, whatever runs there', () => {
    const states = Object.fromEntries(
      ['c1', 'n1', 'n2'].map((host) => [
        host,
        {
          ...good(wantedOf(), host),
          ...{ slurm: FILE('ClusterName=site\n'), gres: NONE, cgroup: NONE, record: NONE },
          packages: bare(host).packages,
          machine: bare(host).machine,
        },
      ]),
    )
    expect(down(factsOf(states))).toEqual([])
  })
})

describe('a cluster of somebody else', () => {
  const { cluster: _, ...spec } = SPEC
  const wanted = wantedSlurm(declared(spec)) as SlurmWanted

  it('is asked about its nodes and nothing else, and never changed', async () => {
    expect(wanted.hosts.map(({ host }) => host)).toEqual(['c1'])
    expect(Object.keys(slurmFacts(wanted, 'c1'))).toEqual(['cluster'])
    const factsWith = (nodes: readonly NodeState[]) =>
      factsOf({ c1: { ...bare('c1'), cluster: answers({ nodes, hasDefaultMemory: false }) } })
    const facts = factsWith([node('x1', { state: 'down', isSilent: true, reason: 'Not responding' })])
    expect(planSlurm('up', wanted, facts).map(({ verdict }) => verdict.kind)).toEqual(['nothing'])
    expect(planSlurm('down', wanted, facts).map(({ verdict }) => verdict.kind)).toEqual(['nothing'])
    const unused = { exec: () => Promise.reject(new Error('not asked')) }
    const found = await verifySlurm(wanted, facts, unused, 'check')
    expect(found.map(({ gravity, cause }) => `${gravity}: ${cause}`)).toEqual([
      'risk: x1 is down: Slurm on c1 gets no answer from it',
      'note: it has no DefMemPerCPU: a job without --mem gets the whole memory of its node',
    ])
    const [silent] = await verifySlurm(wanted, factsWith([]), unused, 'status')
    expect(silent).toMatchObject({ gravity: 'risk', cause: 'sinfo lists no nodes here' })
  })
})

describe('what hosts answer', () => {
  const facts = slurmFacts(wantedOf(), 'c1')
  const parse = <K extends keyof SlurmFacts>(name: K, text: string) =>
    facts[name].parse(text.trimEnd(), Buffer.from(text, 'latin1'))

  it('is parsed', () => {
    expect(parse('programs', 'missing slurmctld\nversion slurm-wlm 22.05.8')).toEqual({
      missing: ['slurmctld'],
      version: '22.05.8',
    })
    expect(parse('key', `file ${SUM} text`)).toEqual({ kind: 'file', sum: SUM, isText: true })
    expect(parse('machine', 'machine c1 8 16384000 cgroup2fs\ngpu 0\ngpu 1\nplace\nend')).toEqual({
      ...{ hostName: 'c1', cores: 8, memoryMib: 16_000, gpus: [0, 1], cgroup: 'cgroup2fs', hasPlace: true },
    })
    expect(
      parse(
        'daemons',
        'systemd\nenabled slurmd\nboot 100 50\nprocess slurmd 7 5000\nchanged 90 /etc/slurm/slurm.conf\nend',
      ),
    ).toEqual({
      hasSystemd: true,
      enabled: ['slurmd'],
      processes: [{ daemon: 'slurmd', pid: 7, startS: 200 }],
      changedS: new Map([['/etc/slurm/slurm.conf', 90]]),
    })
    const line = (name: string, state: string, gres: string, reason: string) =>
      [name.padEnd(64), state.padEnd(24), '4'.padEnd(10), gres.padEnd(100), reason.padEnd(200)].join('')
    const lines = [
      ...[line('n1', 'idle', 'gpu:2(S:0),shard:8', 'none'), line('n1', 'idle', '', 'none')],
      ...[line('n2', 'down*', '(null)', 'Not responding'), 'memory 1024', 'partition main up', 'partition x;y up'],
      ...['job\t7\tRUNNING\tann\tmain\tn[1-3]\t\tgres:gpu:1\tN/A\tN/A\tN/A\ttrain'],
      ...['job\t8\tCOMPLETING\tann\tmain\tn1\t\tN/A\tN/A\tN/A\tN/A\told', 'excludes 9 n2'],
      ...['job\t9\tPENDING\tbob\tmain,long\t\tn1\tN/A\tN/A\tN/A\tN/A\tb\x1bc', 'jobs', 'missing flock'],
    ]
    expect(parse('cluster', `sinfo 0\n${lines.join('\n')}\nend\n`)).toEqual({
      kind: 'answers',
      nodes: [node('n1', { shards: 8 }), node('n2', { state: 'down', isSilent: true, reason: 'Not responding' })],
      hasDefaultMemory: true,
      partitions: new Map([['main', 'up']]),
      jobs: [
        job('7', { nodes: ['n1', 'n2'], gres: ['gpu'] }),
        job('9', {
          ...{ isWaiting: true, user: 'bob', partitions: ['main', 'long'], nodes: ['n1', 'n2'], name: 'b\\x1bc' },
        }),
      ],
      missing: ['flock'],
    })
    expect(parse('cluster', 'unasked')).toEqual({ kind: 'unasked' })
    expect(parse('cluster', 'sinfo 137\n\nend\n')).toEqual({ kind: 'silent', because: 'no answer in time' })
    expect(parse('cluster', 'sinfo 1\nsinfo: error: x (Did you start munged?)\nend\n')).toEqual({
      kind: 'silent',
      because: 'munged is not running on the login host. Run there: systemctl start munge',
    })
  })

  it('neither breaks a parser nor gets control characters or other words into a plan', () => {
    const names = ['programs', 'key', 'daemons', 'machine', 'cluster', 'clock'] as const
    const words = fc.constantFrom(
      ...[
        'end',
        'boot 1 1',
        'process slurmd 1 1',
        'process x 1 1',
        'machine',
        'sinfo 0',
        'sinfo 1',
        'version ',
        'file',
        'gpu 9',
      ],
    )
    const text = fc
      .array(fc.oneof(words, fc.string({ unit: anyCharacter, maxLength: 40 })), { maxLength: 12 })
      .map((lines) => lines.join('\n'))
    fc.assert(
      fc.property(fc.constantFrom(...names), text, (name, answer) => {
        expect(() => parse(name, answer)).not.toThrow()
      }),
    )
    const answer = parse('cluster', `sinfo 1\n\x1b[31mslurm_load\x07 error\nend\n`)
    expect(JSON.stringify(answer)).not.toMatch(/\\u001b|\\u0007/)
    // A reason says nothing that a script would run.
    const nodes = [node('n1', { state: 'drained', reason: 'gres/$(reboot)`reboot`' })]
    const operations = planSlurm('up', wantedOf(), all({ c1: { cluster: answers({ nodes }) } }))
    const scripts = operations.flatMap(({ verdict }) =>
      verdict.kind === 'steps' ? verdict.steps.map((step) => step.run.script) : [],
    )
    expect(scripts.join('\n')).not.toContain('reboot')
  })

  it('says why a node takes no jobs, and what helps', () => {
    const of = (state: string, isSilent = false) =>
      findingOfNode(wantedOf(), 'n1', { name: 'n1', state, isSilent, cpus: 4, gpus: 0, shards: 0, reason: 'because' })
    expect(of('idle')).toBeUndefined()
    expect(of('mixed')).toBeUndefined()
    expect(of('idle', true)?.id).toBe('node-down')
    expect(of('drained')?.fix?.command).toBe('sudo scontrol update nodename=n1 state=resume')
    expect(of('inval')?.hint).toContain('Compare resources in hosts.yaml')
  })
})

describe('verification', () => {
  const credential = (host: string) => `MUNGE:${host}AAAA:`
  const verify = async (
    answer: (host: string, script: string, stdin: string) => string,
    depth: 'status' | 'check' = 'status',
  ) => {
    const asked: string[] = []
    const found = await verifySlurm(
      wantedOf(),
      all(),
      {
        exec: async (host, script, { stdin }) => {
          asked.push(host)
          const stdout = answer(host, script, Buffer.from(stdin ?? []).toString())
          return {
            outcome: { kind: 'exit', code: 0 },
            stdout: Buffer.from(stdout),
            stderr: new Uint8Array(),
            durationMs: 0,
          }
        },
      },
      depth,
    )
    return found.filter(({ gravity }) => gravity === 'blocker').map(({ host, cause }) => `${host}: ${cause}`)
  }

  it('decodes a credential of each host on each other one', async () => {
    const answer = (host: string, script: string, stdin: string) =>
      script.includes('munge -n')
        ? credential(host)
        : stdin
            .trim()
            .split('\n')
            .map((line) => (line.includes('n2') ? 'unmunge: Error: Invalid credential' : 'ok'))
            .join('\n')
    expect(await verify(answer)).toEqual([
      'n2: its munge key is not the one of c1: credentials of the one are invalid on the other',
    ])
  })

  it('takes nothing that is no credential, and believes no host that it decoded more than it was asked', async () => {
    const answer = (host: string, script: string) =>
      script.includes('munge -n') ? (host === 'n1' ? 'MUNGE:$(reboot):' : credential(host)) : 'ok\nok\nok\nok'
    expect(await verify(answer)).toEqual(['n1: munge makes no credential here'])
  })

  it('runs a command on each node, and one with a GPU', async () => {
    const answer = (lines: string) => (host: string, script: string) =>
      script.includes('munge -n') ? credential(host) : script.includes('srun') ? lines : 'ok\nok'
    expect(await verify(answer('ran n1\nran n2\nGPU 0 of n1\n'), 'check')).toEqual([])
    expect(await verify(answer('ran n1\n'), 'check')).toEqual(['c1: srun does not run a command on n2'])
    expect(await verify(answer('ran n1\nran n2\n'), 'check')).toEqual(['c1: srun does not run a command with a GPU'])
  })
})
