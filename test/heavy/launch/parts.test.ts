/** The launchers of PyPI, as tests of jobs use them, without Muster: what fails here is not Muster's fault. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import {
  ENVIRONMENT,
  ENVIRONMENT_PLACE,
  type EnvironmentName,
  pythonEnvironment,
} from '../../lab/cluster/python-environment.ts'
import type { RunResult } from '../../lab/cluster/run.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'launch')
/** Where hosts see the fixtures. */
const PLACE = '/srv'
/** What a shell makes of SIGTERM. */
const TERMINATED = 143
const PYTHON = `${ENVIRONMENT}/bin/python`

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

/** What the hosts printed, each an error with all that it said if it failed. */
const linesOf = (results: readonly RunResult[]): string[] =>
  results.flatMap(({ code, stdout, stderr }) => (code === 0 ? stdout.trim().split('\n') : [`exit ${code}`, stderr]))

async function labWith(name: EnvironmentName, count: number): Promise<Lab> {
  return await startLab({ count, mounts: { [ENVIRONMENT_PLACE]: await pythonEnvironment(name), [PLACE]: FIXTURES } })
}

describe.skipIf(!canRun || !requirement('environment tensorflow'))('TensorFlow', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await labWith('tensorflow', 3)
  })
  afterAll(async () => await lab?.stop())

  const begin = (host: string, cluster: object, type: string, index: number, program: string) =>
    lab.host(host).exec(`export TF_CONFIG='${JSON.stringify({ cluster, task: { type, index } })}'
      export MUSTER_TF_JOB=${type} MUSTER_TF_INDEX=${index}
      ${PYTHON} ${PLACE}/${program} & echo $! > /tmp/task; wait $!`)

  it('reduces on two workers', async () => {
    const cluster = { worker: ['10.81.0.1:2300', '10.81.0.2:2300'] }
    const results = ['m1', 'm2'].map((host, index) => begin(host, cluster, 'worker', index, 'tf_train.py'))
    const line = 'replicas 2 sum [3.0, 3.0, 3.0, 3.0]'
    expect(linesOf(await Promise.all(results))).toEqual([line, line])
  })

  it.each([
    ['tf_train.py', 'chief', 'v on /job:ps/replica:0/task:0/device:CPU:0 = [1.0, 2.0, 3.0, 4.0, 5.0]'],
    ['tf1_train.py', 'worker', 'w on /job:ps/task:0 results [7.0, 10.0, 0.4]'],
  ])('keeps variables of %s on a parameter server, which does not end by itself', async (program, first, line) => {
    const tasks = first === 'chief' ? (['chief', 'worker', 'ps'] as const) : (['worker', 'ps'] as const)
    const cluster = Object.fromEntries(tasks.map((type, index) => [type, [`10.81.0.${index + 1}:2301`]]))
    const [result, ...servers] = tasks.map((type, index) => begin(`m${index + 1}`, cluster, type, 0, program))
    expect(linesOf([await (result as Promise<RunResult>)])).toEqual([line])
    const stop = tasks.slice(1).map((_, index) => lab.host(`m${index + 2}`).exec('kill $(cat /tmp/task)'))
    expect((await Promise.all(stop)).map(({ code }) => code)).toEqual(servers.map(() => 0))
    expect((await Promise.all(servers)).map(({ code }) => code)).toEqual(servers.map(() => TERMINATED))
  })
})

describe.skipIf(!canRun || !requirement('environment ray-libraries', 'python torch'))('the libraries of Ray', () => {
  it("ask for bundles by RLlib's own rules, and train", async () => {
    await using lab = await labWith('ray-libraries', 1)
    const command = `${PYTHON} -W ignore ${PLACE}/ray_libraries.py /tmp/results 2> /tmp/errors || { tail /tmp/errors >&2; false; }`
    const bundles = "bundles [{'CPU': 1.0, 'GPU': 1.0}, {'CPU': 1.0}, {'CPU': 1.0}]"
    const lines = linesOf([await lab.host('m1').exec(command)])
    expect(lines.filter((line) => /^(bundles|scores|sums|exit) /.test(line))).toEqual([
      bundles,
      'scores [1, 9]',
      "sums ['3.0', '3.0']",
    ])
  })
})

describe.skipIf(!canRun || !requirement('environment di-engine', 'python torch', 'redis-server'))('DI-engine', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await labWith('di-engine', 2)
  })
  afterAll(async () => await lab?.stop())

  const ditask = (host: string, peers: readonly number[], ...args: readonly string[]) =>
    lab
      .host(host)
      .exec(`export PEERS='${JSON.stringify({ ...peers })}' HOME=/tmp; cd /tmp && ${ENVIRONMENT}/bin/ditask --package ${PLACE} \\
      --main ditask_hello.main ${args.join(' ')}`)
  const nodesOf = (results: readonly RunResult[]) =>
    linesOf(results)
      .filter((line) => line.startsWith('node '))
      .toSorted()

  it('connects the nodes of two hosts as a star', async () => {
    const head = '--parallel-workers 2 --topology star --address 10.81.0.1 --ports 50515 --node-ids 0'
    const arm = '--parallel-workers 1 --topology alone --address 10.81.0.2 --ports 50515 --node-ids 2'
    const attach = '--attach-to tcp://10.81.0.1:50515'
    const results = await Promise.all([ditask('m1', [2, 1, 1], head), ditask('m2', [2, 1, 1], arm, attach)])
    expect(nodesOf(results)).toEqual(['node 0 heard [1, 2]', 'node 1 heard [0]', 'node 2 heard [0]'])
  })

  it('passes messages through redis', async () => {
    const redis = lab.host('m1').exec('exec redis-server --bind 10.81.0.1 --protected-mode no --save ""')
    const client = (command: string) => lab.host('m1').exec(`redis-cli -h 10.81.0.1 ${command}`)
    await waitUntil(async () => (await client('ping')).stdout === 'PONG\n', 'redis')
    const mq = '--mq-type redis --redis-host 10.81.0.1 --redis-port 6379 --parallel-workers 1'
    const results = await Promise.all(['m1', 'm2'].map((host, id) => ditask(host, [1, 1], mq, `--node-ids ${id}`)))
    expect(nodesOf(results)).toEqual(['node 0 heard [1]', 'node 1 heard [0]'])
    await client('shutdown nosave')
    expect((await redis).code).toBe(0)
  })
})

describe.skipIf(!canRun || !requirement('environment horovod', 'python torch', 'mpirun.openmpi'))('Horovod', () => {
  it('reduces over MPI, and says what it was built with', async () => {
    await using lab = await labWith('horovod', 1)
    const check = await lab.host('m1').exec(`${ENVIRONMENT}/bin/horovodrun --check-build`)
    for (const part of ['PyTorch', 'MPI', 'Gloo']) expect(check.stdout).toContain(`[X] ${part}`)
    const run = await lab
      .host('m1')
      .exec(`mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 -bind-to none -map-by slot \\
      -mca pml ob1 -mca btl ^openib ${PYTHON} ${PLACE}/horovod_sum.py`)
    const lines = [0, 1].map((rank) => `rank ${rank}/2 local ${rank} on m1 sum 3.0 over mpi`)
    expect(linesOf([run]).toSorted()).toEqual(lines)
  })
})
