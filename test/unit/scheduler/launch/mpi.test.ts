import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { linesByHand } from '../../../../src/scheduler/launch/by-hand.ts'
import type { LaunchedGang, LaunchSpec } from '../../../../src/scheduler/launch/launcher.ts'
import { mpi } from '../../../../src/scheduler/launch/mpi.ts'

const REQUEST = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 2, gpuMilli: 1000 }
const ANSWERED = { answered: '1', version: 'Open MPI v4.1.4', mpi: 'openmpi', mpirun: 'mpirun', mpi4py: 'yes' }
const FIRST = { ...ANSWERED, card: 'eth0', inet: '10.81.0.1/16', port: '46007', listening: '1', heard: '1' }
const SECOND = { ...ANSWERED, card: 'ens3', inet: '10.81.0.2/16', port: '46009', reached: '1' }
const MPICH = { version: 'MPICH 4.0.2', mpi: 'mpich' }

type Facts = Readonly<Record<string, string>>

function gangOf(said: readonly Facts[] = [FIRST, SECOND], options: LaunchSpec['options'] = {}): LaunchedGang {
  return {
    id: '17.1',
    command: './solver --steps 3',
    environment: {},
    spec: { kind: 'mpi', options, ports: [46_000, 46_099] },
    bundles: said.map((facts, index) => ({
      role: 'host',
      index,
      host: `m${index + 1}`,
      address: `10.81.0.${index + 1}`,
      devices: [0, 1],
      request: REQUEST,
      ranks: index === 0 ? 3 : 2,
      said: facts,
      hasBegun: false,
    })),
  }
}

const commandOf = (gang: LaunchedGang, bundle: number): string => {
  const step = mpi.next(gang, bundle)
  if (step.kind !== 'start') throw new Error(JSON.stringify(step))
  return step.command
}

const refused = (reason: string) => ({ kind: 'refuse', reason })

describe('mpi', () => {
  it('gives mpirun hosts, ranks, the network of all, and ports of the range', () => {
    const { spec, ...gang } = gangOf()
    const command = commandOf({ ...gang, spec: { ...spec, options: { export: 'A_B C' } } }, 0)
    expect(command).toContain(
      "-np 5 -H 10.81.0.1:3,10.81.0.2:2 --map-by slot --rank-by slot --bind-to none --mca pml ob1 --mca btl '^openib'",
    )
    expect(command).toContain('--mca btl_tcp_if_include 10.81.0.0/16 --mca oob_tcp_if_include 10.81.0.0/16 -x A_B -x C')
    expect(command).toContain(
      '--mca oob_tcp_dynamic_ipv4_ports 46007 --mca btl_tcp_port_min_v4 46027 --mca btl_tcp_port_range_v4 73',
    )
  })

  it('ends all ranks when one raises, by mpi4py', () => {
    const python = { ...gangOf(), command: 'python3 train.py' }
    expect(commandOf(python, 0)).toMatch(/ rank python3 -m mpi4py train\.py$/)
    expect(commandOf({ ...python, spec: { ...python.spec, options: { 'as-is': '' } } }, 0)).toMatch(
      / rank python3 train\.py$/,
    )
    const other = gangOf([FIRST, { ...SECOND, mpi4py: 'no' }])
    expect(commandOf({ ...other, command: 'python3 train.py' }, 0)).toMatch(/ rank python3 train\.py$/)
  })

  it('leaves transports to RDMA, and asks for an active port and locked memory', () => {
    const step = mpi.next(gangOf([FIRST, SECOND], { transport: 'rdma' }), 0)
    expect(step).toMatchObject({ kind: 'start', environment: { HOROVOD_MPI_THREADS_DISABLE: '1' } })
    expect(JSON.stringify(step)).not.toContain('openib')
    const question = mpi.next(gangOf([{}, {}], { transport: 'rdma' }), 0)
    expect(question).toMatchObject({ kind: 'ask', program: expect.stringContaining('/sys/class/infiniband/') })
  })

  it('refuses hosts with different versions or implementations', () => {
    const other = gangOf([FIRST, { ...SECOND, version: 'Open MPI v5.0.1' }])
    expect(mpi.next(other, 0)).toEqual(
      refused('the version of MPI differs: Open MPI v4.1.4 on m1, Open MPI v5.0.1 on m2'),
    )
    expect(mpi.next(gangOf([FIRST, { ...SECOND, ...MPICH }]), 1)).toMatchObject({ kind: 'refuse' })
    const intel = { mpi: 'intel', version: 'Intel(R) MPI Library' }
    expect(
      mpi.next(
        gangOf([
          { ...FIRST, ...intel },
          { ...SECOND, ...intel },
        ]),
        0,
      ),
    ).toEqual(refused('m1 has Intel MPI, which Muster cannot start; use Open MPI or MPICH (--mpi)'))
  })

  it('refuses hosts that have only IPv6 between them', () => {
    const gang = gangOf()
    const bundles = gang.bundles.map((one) => ({ ...one, address: 'fd00::1', said: { ...one.said, inet: '' } }))
    expect(mpi.next({ ...gang, bundles }, 0)).toEqual(
      refused('MPI needs IPv4 between the hosts, and m1 has the address fd00::1; use --network'),
    )
  })

  it('takes networks that exist', () => {
    const values = mpi.options.find(({ flags }) => flags === 'network <cidr>')?.values ?? /^$/
    const good = ['10.0.0.0/24', '192.168.255.1/32', '0.0.0.0/0']
    const bad = ['10.0.0/24', '10.0.0.0', '10.0.0.256/24', '10.0.0.0/33', '10.0.0.0/24;id', '1.2.3.4.5/8']
    expect([good.filter((text) => !values.test(text)), bad.filter((text) => values.test(text))]).toEqual([[], []])
  })

  it('asks with a program that sh understands', () => {
    for (const options of [{}, { mpi: 'mpich' }, { transport: 'rdma', network: '10.0.0.0/8' }, { interface: 'ib0' }]) {
      const step = mpi.next(gangOf([{}, {}], options as Facts), 1)
      const { stderr, status } = spawnSync('sh', ['-n'], { input: step.kind === 'ask' ? step.program : 'exit 1' })
      expect([status, String(stderr)]).toEqual([0, ''])
    }
  })

  it('is one line by hand, with the variables of the job and without ports', () => {
    const gang = { ...gangOf([{}, {}], { network: '10.9.0.0/16' }), environment: { NCCL_DEBUG: 'INFO' } }
    expect(linesByHand(mpi, gang)).toEqual([
      {
        host: 'm1',
        command:
          "mpirun -np 5 -H 10.81.0.1:3,10.81.0.2:2 --map-by slot --rank-by slot --bind-to none --mca pml ob1 --mca btl '^openib' --mca btl_tcp_if_include 10.9.0.0/16 --mca oob_tcp_if_include 10.9.0.0/16 -x PATH -x LD_LIBRARY_PATH -x NCCL_DEBUG=INFO ./solver --steps 3",
      },
    ])
    expect(linesByHand(mpi, gangOf([{}, {}], { mpi: 'mpich' }))).toEqual([
      { host: 'm1', command: 'mpiexec.hydra -np 5 -hosts 10.81.0.1:3,10.81.0.2:2 -bind-to none ./solver --steps 3' },
    ])
  })
})

describe('the network of mpi', () => {
  const inner = [
    { ...FIRST, inet: '10.9.1.1/24' },
    { ...SECOND, inet: '10.9.1.2/24' },
  ]

  it('is the one in which all addresses lie, or none', () => {
    expect(commandOf(gangOf([FIRST, { ...SECOND, inet: '10.82.0.2/16' }]), 0)).not.toContain('if_include')
  })

  it('is that of a card, with the addresses that the hosts have there', () => {
    const command = commandOf(gangOf(inner, { interface: 'ib0' }), 0)
    expect(command).toContain('-H 10.9.1.1:3,10.9.1.2:2')
    expect(command).toContain('--mca btl_tcp_if_include 10.9.1.0/24')
    const reach = mpi.next(
      gangOf(
        [FIRST, { ...SECOND, reached: '' }].map(({ reached, ...one }: Facts) => ({
          ...one,
          inet: one.inet?.replace('81', '9') ?? '',
        })),
        { network: '10.9.0.0/16' },
      ),
      1,
    )
    expect(reach).toMatchObject({ kind: 'ask', program: expect.stringMatching(/ m1 10\.9\.0\.1 46007$/) })
  })

  it('is refused where a host gives the address of another one', () => {
    for (const inet of ['10.9.1.1/24', '10.81.0.1/24'])
      expect(mpi.next(gangOf([inner[0] ?? {}, { ...SECOND, inet }], { network: '10.0.0.0/8' }), 0)).toEqual(
        refused(expect.stringMatching(/^m[12] gives 10\..* as its address, which is also that of m[12]$/)),
      )
  })

  it('is refused where a host told an address outside of it, or cards are in different ones', () => {
    expect(mpi.next(gangOf(inner, { network: '10.81.0.0/16' }), 1)).toEqual(
      refused('m1 told no address in 10.81.0.0/16'),
    )
    for (const inet of ['10.9.1.2', 'x', '10.9.1.2/40', '10.9.1.2/24;id'])
      expect(mpi.next(gangOf([inner[0] ?? {}, { ...SECOND, inet }], { interface: 'ib0' }), 0)).toEqual(
        refused('m2 told no address in the network of ib0'),
      )
    const apart = [inner[0] ?? {}, { ...SECOND, inet: '10.8.1.2/24' }]
    expect(mpi.next(gangOf(apart, { interface: 'ib0' }), 0)).toEqual(
      refused('ib0 is in different networks: 10.9.1.0/24 on m1, 10.8.1.0/24 on m2'),
    )
  })
})

describe('orted', () => {
  const line = (uri: string, more = '', count = 2) =>
    `orted -mca ess "env" -mca ess_base_jobid "862584832" -mca ess_base_vpid 7 -mca ess_base_num_procs "${count}" -mca orte_node_regex "m[1:1],[2:10].81.0.2@0(2)" -mca orte_hnp_uri "${uri}" ${more}`
  const URI = '862584832.0;tcp://10.81.0.1:39417'
  const told = (agent: string, more: Facts = {}) => gangOf([{ ...FIRST, agent, ...more }, SECOND])

  it('starts with the settings that mpirun gave, and with nothing else', () => {
    expect(mpi.next(gangOf(), 1)).toEqual({ kind: 'wait' })
    const command = commandOf(told(line(URI, '; touch /tmp/mine $(id) -mca orte_launch_agent "evil"')), 1)
    expect(command).toMatch(/^exec orted -mca .* -mca oob_tcp_dynamic_ipv4_ports 46009 -mca ess_base_vpid 1 .*39417'$/)
    expect(command).not.toMatch(/touch|evil|\$\(/)
  })

  it.each(['862584832.0;tcp://10.81.0.1:', "1.0;tcp://x'y:1", '$(id)', ''])('refuses the address %j', (uri) => {
    expect(mpi.next(told(line(uri)), 1)).toEqual(refused('m1: mpirun gave orted no valid orte_hnp_uri'))
  })

  it('is refused where mpirun does not count the hosts as Muster does', () => {
    expect(mpi.next(told(line(URI, '', 3)), 1)).toEqual(refused('m1: mpirun gave orted no valid ess_base_num_procs'))
    expect(mpi.next(told(line(URI), { refuse: 'mpirun does not know it' }), 1)).toEqual(
      refused('m1: mpirun does not know it'),
    )
  })
})

describe("MPICH's proxy", () => {
  const gang = (hydra: Facts = {}) =>
    gangOf([
      { ...FIRST, ...MPICH, ...hydra },
      { ...SECOND, ...MPICH },
    ])

  it('starts from checked settings at the host that Muster knows', () => {
    expect(mpi.next(gang(), 1)).toEqual({ kind: 'wait' })
    const hydra =
      '/usr/bin/hydra_pmi_proxy --control-port evil:46007 --rmk user --launcher manual --usize -2 --exec $(id) --proxy-id 0; id'
    expect(mpi.next(gang({ hydra }), 1)).toMatchObject({
      kind: 'start',
      command:
        'exec hydra_pmi_proxy --control-port 10.81.0.1:46007 --rmk user --launcher manual --usize -2 --proxy-id 1',
      environment: { UCX_NET_DEVICES: 'ens3', UCX_TCP_PORT_RANGE: '46000-46099' },
    })
    expect(mpi.next(gang({ hydra: '--control-port x' }), 1)).toEqual(refused('m1: mpiexec told no control port'))
  })

  it('forwards no variables but those that were asked for', () => {
    expect(commandOf(gang(), 0)).toContain(
      'MPIEXEC_PORT_RANGE=46007:46007 mpiexec.hydra -launcher manual -localhost 10.81.0.1 -genvnone',
    )
    const { spec } = gang()
    expect(commandOf({ ...gang(), spec: { ...spec, options: { export: 'A B' } } }, 0)).toContain('-genvlist A,B')
  })
})

describe('--ranks', () => {
  const one = { cpuMilli: 1000, memoryBytes: 7, gpuCount: 1, gpuMilli: 1000 }
  const shape = (options: Facts, bundles = 1, perHost?: number) =>
    mpi
      .shape(options, bundles, one, perHost)
      .roles.map(({ count, ranks, request }) => [count, ranks, request.cpuMilli, request.memoryBytes, request.gpuCount])

  it('takes as many hosts as are needed, with what each rank asks for', () => {
    expect(shape({ ranks: '12' }, 1, 4)).toEqual([[3, 4, 4000, 28, 4]])
    expect(shape({ ranks: '13' }, 1, 4)).toEqual([
      [3, 4, 4000, 28, 4],
      [1, 1, 1000, 7, 1],
    ])
    expect(shape({ ranks: '3' }, 1, 4)).toEqual([[1, 3, 3000, 21, 3]])
  })

  it('is spread over bundles evenly', () => {
    expect(shape({ ranks: '5' }, 4)).toEqual([
      [1, 2, 2000, 14, 2],
      [3, 1, 1000, 7, 1],
    ])
    expect(shape({ ranks: '4' })).toEqual([[1, 4, 4000, 28, 4]])
  })

  it.each([
    [{ ranks: '4', slots: '2' }, 1, undefined],
    [{ ranks: '4' }, 2, 2],
    [{ ranks: '1' }, 2, undefined],
  ])('refuses %j with %i bundles and %j a host', (options, bundles, perHost) => {
    expect(() => mpi.shape(options as unknown as Facts, bundles, one, perHost)).toThrow('--ranks')
  })

  it('refuses shares of a GPU', () => {
    expect(() => mpi.shape({ ranks: '2' }, 1, { ...one, gpuMilli: 500 })).toThrow('--ranks needs whole GPUs')
  })
})
