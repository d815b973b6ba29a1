import { describe, expect, it } from 'vitest'
import { linesByHand } from '../../../../src/scheduler/launch/by-hand.ts'
import { type LaunchedBundle, type LaunchedGang, ORDER } from '../../../../src/scheduler/launch/launcher.ts'
import { LAUNCHERS } from '../../../../src/scheduler/launch/launchers.ts'

const REQUEST = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 2, gpuMilli: 1000 }
const ANSWERED = {
  answered: '1',
  python: '3.11',
  version: 'Open MPI v4.1.4',
  mpi4py: 'yes',
  controllers: 'gloo',
  card: 'eth0',
  port: '46007',
}

function gangOf(
  kind: string,
  given: Record<string, string> = {},
  said: readonly Record<string, string>[] = [],
): LaunchedGang {
  // Two bundles with two GPUs each.
  const options = kind === 'vllm' ? { tp: '4', ...given } : given
  const launcher = launcherOf(kind)
  const roles = launcher
    .shape(options, 2, REQUEST)
    .roles.flatMap(({ name, count }) => Array.from({ length: count }, (_, index) => ({ role: name, index })))
  const bundles = roles.map(
    (role, rank): LaunchedBundle => ({
      ...role,
      host: `m${rank + 1}`,
      address: `10.81.0.${rank + 1}`,
      devices: [0, 1],
      request: REQUEST,
      ranks: 2,
      said: said[rank] ?? {},
      hasBegun: false,
    }),
  )
  const spec = { kind, options, ports: [46_000, 46_099] as const }
  return { id: '17.1', command: 'train.py --epochs 3', environment: {}, spec, bundles }
}

function launcherOf(kind: string) {
  const found = LAUNCHERS.find(({ name }) => name === kind)
  if (found === undefined) throw new Error(kind)
  return found
}

const AS_RANK = `sh -c 'exec sh "$MUSTER_DIRECTORY/rank" "$@"' rank`

const READY = [
  { ...ANSWERED, listening: '1', heard: '1' },
  { ...ANSWERED, card: 'ens3', reached: '1' },
]

it('has --order where the order of ranks means something', () => {
  for (const { options, ringDirection } of LAUNCHERS) expect(options.includes(ORDER)).toBe(ringDirection !== undefined)
})

it('listens again where another scheduler took over before all had been heard', () => {
  const listening = { ...ANSWERED, listening: '1' }
  const gang = gangOf('torchrun', {}, [listening, { ...ANSWERED, reached: '1' }])
  expect(launcherOf('torchrun').next(gang, 0)).toMatchObject({ kind: 'ask', name: 'listening' })
  expect(launcherOf('torchrun').next(gang, 1)).toEqual({ kind: 'wait' })
})

describe.each(LAUNCHERS.map(({ name }) => name))('the launcher %s', (kind) => {
  it('asks each host once, and refuses with the reason that a host gives', () => {
    const { next } = launcherOf(kind)
    expect(next(gangOf(kind), 1)).toMatchObject({ kind: 'ask', name: 'answered' })
    expect(next(gangOf(kind, {}, [{}, ANSWERED]), 1)).toEqual({ kind: 'wait' })
    const gang = gangOf(kind, {}, [ANSWERED, { ...ANSWERED, refuse: 'cannot reach m1' }])
    expect(next(gang, 1)).toEqual({ kind: 'refuse', reason: 'm2: cannot reach m1' })
  })
})

describe.each(LAUNCHERS.flatMap(({ name }) => (name === 'tf' ? [] : [name])))('the launcher %s', (kind) => {
  it('lets the others reach the first host, and then begins', () => {
    const { next } = launcherOf(kind)
    expect(next(gangOf(kind, {}, [ANSWERED, ANSWERED]), 0)).toMatchObject({ kind: 'ask', name: 'listening' })
    expect(next(gangOf(kind, {}, [ANSWERED, ANSWERED]), 1)).toEqual({ kind: 'wait' })
    expect(next(gangOf(kind, {}, [{ ...ANSWERED, listening: '1' }, ANSWERED]), 1)).toMatchObject({
      kind: 'ask',
      name: 'reached',
    })
    expect(next(gangOf(kind, {}, READY), 0)).toMatchObject({ kind: 'start' })
  })
})

describe('by hand', () => {
  it('one line starts all of mpirun, with ssh', () => {
    const gang = { ...gangOf('mpi', { slots: '2' }), command: './solver' }
    expect(linesByHand(launcherOf('mpi'), gang)).toEqual([
      { host: 'm1', command: expect.stringMatching(/^mpirun -np 4 -H 10\.81\.0\.1:2,10\.81\.0\.2:2 .* \.\/solver$/) },
    ])
  })

  it('each host has its own line of torchrun, at the first port of the range', () => {
    const gang = { ...gangOf('torchrun'), environment: { NCCL_DEBUG: 'INFO' } }
    const line = (rank: number) =>
      `CUDA_VISIBLE_DEVICES=0,1 NCCL_DEBUG=INFO torchrun --nproc_per_node 2 --nnodes 2 --node_rank ${rank} --master_addr 10.81.0.1 --master_port 46000 train.py --epochs 3`
    expect(linesByHand(launcherOf('torchrun'), gang)).toEqual([
      { host: 'm1', command: line(0) },
      { host: 'm2', command: line(1) },
    ])
  })
})

describe('torchrun', () => {
  const { next, shape } = launcherOf('torchrun')

  it('gives each agent its rank, the address and the free port of the first host, and the card of its own', () => {
    expect(next(gangOf('torchrun', {}, READY), 1)).toEqual({
      kind: 'start',
      command: expect.stringContaining(
        `\nexec torchrun --nproc_per_node 2 --nnodes 2 --node_rank 1 --master_addr 10.81.0.1 --master_port 46007 --no_python ${AS_RANK} sh -c '"$MUSTER_PYTHON" train.py --epochs 3'`,
      ),
      environment: {
        OMP_NUM_THREADS: '1',
        NCCL_SOCKET_IFNAME: 'ens3',
        GLOO_SOCKET_IFNAME: 'ens3',
        TP_SOCKET_IFNAME: 'ens3',
      },
    })
  })

  it('names its own address to an elastic rendezvous, where names may resolve to 127.0.1.1', () => {
    expect(next(gangOf('torchrun', { elastic: '1:2', restarts: '3' }, READY), 1)).toMatchObject({
      command: expect.stringContaining(
        `exec torchrun --nproc_per_node 2 --nnodes 1:2 --max_restarts 3 --rdzv_backend c10d --rdzv_id 17.1 --rdzv_endpoint 10.81.0.1:46007 --rdzv_conf is_host=0 --local_addr 10.81.0.2 --no_python ${AS_RANK} sh -c '"$MUSTER_PYTHON" train.py --epochs 3'`,
      ),
    })
  })

  it('turns the names that an older torch gives to ranks into addresses, and refuses names that are not unique', () => {
    const named = (name: string) => [
      { ...READY[0], name: 'm1.lan' },
      { ...READY[1], name },
    ]
    const command = (name: string) => next(gangOf('torchrun', { elastic: '2:2' }, named(name)), 1)
    expect(command('m2')).toMatchObject({
      command: expect.stringMatching(
        /is_host=0 --no_python .*\nm1\.lan\) MASTER_ADDR=10\.81\.0\.1;;\nm2\) MASTER_ADDR=10\.81\.0\.2;;\nesac\n/,
      ),
    })
    expect(command('m1.lan')).toMatchObject({
      kind: 'refuse',
      reason: expect.stringMatching(/^m1 and m2 both call themselves m1\.lan;/),
    })
    // They would send what is for another host of the gang to this one.
    for (const [claim, why] of [
      ['10.81.0.1', 'which is no host name'],
      ['10.9', 'which is no host name'],
      ['0xa510001', 'which is no host name'],
      ['172818433', 'which is no host name'],
      ['::1', 'which is no host name'],
      ['m1', 'which names m1'],
      ['M1.', 'which names m1'],
    ] as const)
      expect(command(claim)).toEqual({ kind: 'refuse', reason: `m2 calls itself ${claim}, ${why}` })
  })

  it('refuses hosts with different versions of Python', () => {
    const said = [READY[0] ?? {}, { ...READY[1], python: '3.9' }]
    expect(next(gangOf('torchrun', {}, said), 0)).toEqual({
      kind: 'refuse',
      reason: 'the version of Python differs: 3.11 on m1, 3.9 on m2',
    })
  })

  it.each([[{ restarts: '3' }], [{ elastic: '3:4' }]])('refuses %j', (options) => {
    expect(() => shape(options as Record<string, string>, 2, REQUEST)).toThrow(/--restarts|--elastic/)
  })
})

describe('tf', () => {
  /** All reached all. */
  const ALL = READY.map((said) => ({ ...said, listening: '1', heard: '1', reached: '1' }))

  it('lets each task reach all others before any begins', () => {
    const { next } = launcherOf('tf')
    const [first = {}, second = {}] = [ANSWERED, { ...ANSWERED, port: '46010' }]
    expect(next(gangOf('tf', {}, [first, second]), 1)).toMatchObject({ kind: 'ask', name: 'listening' })
    const listening = [first, second].map((said) => ({ ...said, listening: '1' }))
    expect(next(gangOf('tf', {}, [first, listening[1] ?? {}]), 1)).toEqual({ kind: 'wait' })
    expect(next(gangOf('tf', {}, listening), 0)).toMatchObject({
      name: 'reached',
      program: expect.stringMatching(/ m2 10\.81\.0\.2 46010$/),
    })
    expect(next(gangOf('tf', {}, [ALL[0] ?? {}, { ...ALL[1], heard: undefined as never }]), 0)).toEqual({
      kind: 'wait',
    })
    expect(next(gangOf('tf', {}, ALL), 0)).toMatchObject({ kind: 'start' })
  })

  it('gives tasks that share a host a port each', () => {
    const gang = gangOf('tf', {}, [
      { ...ALL[0], port: '46001 46002' },
      { ...ALL[1], port: '' },
    ])
    const bundles = gang.bundles.map((bundle) => ({ ...bundle, host: 'm1', address: 'fd00::1' }))
    const step = launcherOf('tf').next({ ...gang, bundles }, 0)
    expect(step.kind === 'start' && JSON.parse(step.environment.TF_CONFIG ?? '').cluster).toEqual({
      worker: ['[fd00::1]:46001', '[fd00::1]:46002'],
    })
  })

  it('gives each task the addresses and ports of all, and is done when the chief is', () => {
    const options = { role: 'chief=1 ps=1:cpu=4,gpu=0' }
    const shape = launcherOf('tf').shape(options, 1, REQUEST)
    expect(shape.leaders).toEqual([0])
    expect(shape.roles[1]).toEqual({
      name: 'ps',
      count: 1,
      request: { cpuMilli: 4000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
    })
    const step = launcherOf('tf').next(gangOf('tf', options, ALL), 1)
    expect(step.kind === 'start' && JSON.parse(step.environment.TF_CONFIG ?? '')).toEqual({
      cluster: { chief: ['10.81.0.1:46007'], ps: ['10.81.0.2:46007'] },
      task: { type: 'ps', index: 0 },
    })
  })

  it.each([
    'boss=1',
    'worker',
    'worker=0',
    'chief=2',
    'ps=1',
    'worker=1 worker=2',
    'worker=2 evaluator=2',
    'worker=1:memory=lots',
    'worker=1:cpu=1,cpu=2',
    'worker=1:gpu=1.5',
    'worker=1:gpu=x',
  ])('refuses the role %s', (role) => {
    expect(() => launcherOf('tf').shape({ role }, 1, REQUEST)).toThrow('--role')
  })

  it('takes memory for a role, and refuses bundles that contradict the roles', () => {
    const { shape } = launcherOf('tf')
    expect(shape({ role: 'worker=3:memory=2GiB' }, 3, REQUEST).roles[0]?.request.memoryBytes).toBe(2 * 2 ** 30)
    expect(() => shape({ role: 'worker=3' }, 2, REQUEST)).toThrow('--bundles 2')
  })
})
