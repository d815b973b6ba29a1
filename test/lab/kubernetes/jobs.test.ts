/** `--engine k8s` with pods that really run: ranks, output, how jobs end, and why they wait. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { KUBERNETES_IMAGE, KUBERNETES_PARTS, type KubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { processesOf } from '../cluster/processes.ts'
import { isJob, type LabQueue } from '../jobs/lab-queue.ts'
import { type KubernetesQueue, kubernetesQueue } from './kubernetes-queue.ts'

const TELL =
  'echo "$RANK $LOCAL_RANK/$WORLD_SIZE $MUSTER_NODE $MUSTER_HOSTS gpu:$CUDA_VISIBLE_DEVICES $MASTER_ADDR $MASTER_PORT"'
/** The image has no Python, so pods use that of this machine. */
const SHARED = [
  { name: 'usr', path: '/usr' },
  { name: 'lib', path: '/lib' },
  { name: 'lib64', path: '/lib64' },
]
const POD = { volumes: SHARED.map(({ name, path }) => ({ name, hostPath: { path } })) }
const CONTAINER = {
  imagePullPolicy: 'Never',
  volumeMounts: SHARED.map(({ name, path }) => ({ name, mountPath: path, readOnly: true })),
}
const SECTION = `k8s: ${JSON.stringify({ context: 'lab', namespace: 'default', image: KUBERNETES_IMAGE, pod: POD, container: CONTAINER })}\n`

const canRun = requirement(...KUBERNETES_PARTS, 'containers')

describe.skipIf(!canRun)('jobs on real nodes of Kubernetes', { timeout: 240_000 }, () => {
  /** Only this test's processes have this command. */
  const endless = `sleep ${process.pid}.25`
  let made: KubernetesQueue
  let lab: Lab
  let kubernetes: KubernetesLab
  let queue: LabQueue

  const submit = async (...args: readonly string[]): Promise<string> => {
    const [first = ''] = (await queue.submit('--engine', 'k8s', '--cpu', '0.1', ...args)).split('\n')
    return first
  }
  const logOf = async (id: string, rank = '0'): Promise<string> => (await queue.job('logs', id, '--rank', rank)).stdout

  /** Each after a space. */
  const nodesOf = async (id: string, attempt = 1): Promise<string> =>
    await kubernetes.kubectl(
      `get pods -l muster.dev/job=${id},muster.dev/attempt=${attempt} -o 'jsonpath={range .items[*]} {.spec.nodeName}{end}'`,
    )

  const objects = async (): Promise<string> =>
    (await kubernetes.kubectl('get jobs,pods,services -l muster.dev/key -o name')).trim()

  beforeAll(async () => {
    made = await kubernetesQueue({ nodes: [], realNodes: ['real1', 'real2'], section: SECTION })
    ;({ lab, kubernetes, queue } = made)
  })
  afterEach(async () => await made?.stop())
  afterAll(async () => {
    await lab?.stop()
  })

  it('runs one job, an array, and gangs whose ranks find each other, and reads a metric', async () => {
    const one = await submit('--metric', 'loss', '--', `${TELL}; echo loss=0.5; echo loss=0.25`)
    const array = await queue.submit(
      '--engine',
      'k8s',
      '--cpu',
      '0.1',
      '--array',
      '0-3',
      '--',
      'echo $MUSTER_ARRAY_INDEX',
    )
    // A pipe would be closed before nc has read it when the other end is done first.
    const talk =
      '[ $RANK = 0 ] && exec nc -l -p $MASTER_PORT\nuntil nc $MASTER_ADDR $MASTER_PORT <<END\nhello from $RANK\nEND\ndo :; done'
    const gang = await submit('--bundles', '2', '--strategy', 'STRICT_SPREAD', '--', `${TELL}; ${talk}`)
    const tight = await submit('--bundles', '3', '--strategy', 'STRICT_PACK', '--', TELL)
    const literal = await submit('--env', 'A=$(RANK) $$ "x"', '--', 'echo "$A" $((1+1)) $(echo x) $$')
    await queue.work().ended
    const states = (await queue.list()).map(({ job, state, reason }) => [job, state, reason])
    expect(states.filter(([, state]) => state !== 'done')).toEqual([])

    expect(await logOf(one)).toMatch(/^0 0\/1 real[12] 127\.0\.0\.1 gpu: 127\.0\.0\.1 2\d{4}\nloss=0.5\nloss=0.25\n$/)
    expect(await queue.show(one)).toMatch(/^loss: +0\.25$/m)
    const [from = 0, to = 0] = array.split('-').map(Number)
    expect(to - from).toBe(3)
    expect([await logOf(String(from)), await logOf(String(to))]).toEqual(['0\n', '3\n'])
    const [first = '', said] = (await logOf(gang)).split('\n')
    expect(said).toBe('hello from 1')
    const [second = ''] = (await logOf(gang, '1')).split('\n')
    const nodes = [first, second].map((line) => line.split(' ')[2])
    expect(nodes.toSorted()).toEqual(['real1', 'real2'])
    expect([first, second].map((line) => line.split(' ')[0])).toEqual(['0', '1'])
    const [, ...rest] = (await nodesOf(tight)).split(' ')
    expect(new Set(rest).size).toBe(1)
    expect(rest).toHaveLength(3)
    expect(await logOf(literal)).toMatch(/^\$\(RANK\) \$\$ "x" 2 x \d+\n$/)
  })

  it('keeps exit codes, tries again, stops at the limit, and cancels with the end of the processes', async () => {
    const failing = await submit('--', 'exit 7')
    const gang = await submit('--bundles', '2', '--', '[ $RANK != 1 ] || exit 9; sleep 300')
    const again = await submit('--retries', '1', '--', '[ $MUSTER_ATTEMPT = 2 ] || exit 5')
    const limited = await submit('--limit', '2', '--', 'exec sleep 300')
    const cancelled = await submit('--', `exec ${endless}`)
    const deleted = await submit('--retries', '5', '--', 'exec sleep 300')
    const absent = await submit('--', 'exec /no/such/program')
    const roles = ['--role', 'chief=1', '--role', 'worker=1', '--role', 'ps=1']
    const forever = '[ $MUSTER_TF_JOB != ps ] || exec sleep 4321'
    const tensors = await submit(
      '--launch',
      'tf',
      ...roles,
      '--env',
      'PATH=/bin:/usr/bin',
      '--',
      `echo "$TF_CONFIG"; ${forever}`,
    )
    const work = queue.work()
    await Promise.all([cancelled, deleted].map((id) => work.seen(isJob(id, 'running'))))
    expect(processesOf(endless)).toHaveLength(1)
    await queue.job('cancel', cancelled)
    await kubernetes.kubectl(`delete job -l muster.dev/job=${deleted}`)
    await work.ended
    expect(processesOf(endless)).toEqual([])
    const states = Object.fromEntries((await queue.list()).map((line) => [line.job, line]))
    expect(states[failing]).toMatchObject({ state: 'failed', reason: 'exit 7' })
    expect(states[gang]).toMatchObject({ state: 'failed', reason: 'exit 9' })
    expect(states[again]).toMatchObject({ state: 'done', attempt: 2 })
    expect(states[limited]).toMatchObject({ state: 'timed-out' })
    expect(states[cancelled]).toMatchObject({ state: 'cancelled' })
    expect(states[deleted]).toMatchObject({ state: 'cancelled', attempt: 1, reason: 'deleted in Kubernetes' })
    // It ends with its chief.
    expect(states[tensors]).toMatchObject({ state: 'done' })
    const { cluster } = JSON.parse(await logOf(tensors)) as { cluster: Record<string, string[]> }
    const places = ['chief', 'worker', 'ps'].map((role) => cluster[role]?.join().replace(/:2\d{4}$/, ''))
    expect(places).toEqual(
      [0, 1, 2].map((rank) => expect.stringMatching(`^muster-\\w+-${tensors}-1-0-\\w+-${rank}\\.`)),
    )
    expect(states[absent]).toMatchObject({ state: 'failed', reason: 'exit 127' })
    expect(await kubernetes.kubectl(`get all -l muster.dev/job=${cancelled} -o name`)).toBe('')
  })

  it('says why a job waits', async () => {
    const wide = await submit('--cpu', '5000', '--', 'true')
    const gpu = await submit('--gpu', '1', '--', 'true')
    const image = await submit('--from-env', 'image:localhost/none:1', '--', 'true')
    const gang = await submit('--bundles', '3', '--strategy', 'STRICT_SPREAD', '--', 'true')
    const work = queue.work()
    await queue.says(wide, /no node could hold it even when idle: of 2 nodes, all have too few cores/)
    await queue.says(gpu, /all have too few GPUs \(nvidia\.com\/gpu\)/)
    await queue.says(image, /its image is not on the node, and its pull policy is Never \(ErrImageNeverPull/)
    await queue.says(gang, /all of its 3 bundles must fit at once on different nodes; now there is room for 2/)
    expect((await kubernetes.kubectl(`get pods -l muster.dev/job=${gang} -o name`)).trim()).toBe('')
    await queue.job('cancel', [wide, gpu, image, gang].join())
    await work.ended
    expect(await objects()).toBe('')
  })

  it('requeues a job whose node is drained, and runs a study', async () => {
    const id = await submit('--', "trap 'exit 143' TERM; sleep 300 & wait")
    const work = queue.work()
    await work.seen(isJob(id, 'running'))
    const [, node = ''] = (await nodesOf(id, 1)).split(' ')
    await kubernetes.kubectl(`drain ${node} --force --timeout=120s`)
    await work.seen(isJob(id, 'running'), 2)
    expect(await nodesOf(id, 2)).toMatch(/^ real[12]$/)
    expect(await nodesOf(id, 2)).not.toBe(` ${node}`)
    await kubernetes.kubectl(`uncordon ${node}`)
    await queue.job('cancel', id)
    await work.ended
    await queue.study(
      ...['create', 'grid', '--engine', 'k8s', '--cpu', '0.1', '--method', 'grid'],
      ...['--param', 'x=1,2,3', '--metric', 'loss'],
      ...['--', 'echo loss=$(( (x - 2) * (x - 2) ))'],
    )
    await queue.work().ended
    const lines = (await queue.study('results', 'grid', '--json')).trim().split('\n')
    const found = lines
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === 'trial')
      .map(({ parameters, metrics }) => `${parameters.x} ${metrics.loss}`)
    expect(found.toSorted()).toEqual(['1 1', '2 0', '3 1'])
  })
})
