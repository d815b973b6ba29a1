/** `--engine k8s` on a real control plane with nodes simulated by kwok: where gangs run, what they hold, and what is refused. */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { KUBERNETES_PARTS, type KubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { isJob, type LabQueue } from '../jobs/lab-queue.ts'
import { type KubernetesQueue, kubernetesQueue } from './kubernetes-queue.ts'

const WAIT_MS = 60_000
const canRun = requirement(...KUBERNETES_PARTS)

type Pod = {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> }
  readonly spec: { readonly nodeName?: string }
}

describe.skipIf(!canRun).each([
  ['gangs that Muster lets start', []],
  ['gangs that Kubernetes places by PodGroup', ['GenericWorkload', 'GangScheduling']],
] as const)('jobs on Kubernetes with %s', { timeout: 240_000 }, (_, gates) => {
  const hasPodGroups = gates.length > 0
  let made: KubernetesQueue
  let lab: Lab
  let kubernetes: KubernetesLab
  let file: string
  let queue: LabQueue

  const submit = async (...args: readonly string[]): Promise<string> => await queue.submit('--engine', 'k8s', ...args)
  const podsOf = async (id: string): Promise<readonly Pod[]> => {
    const path = `/api/v1/namespaces/default/pods?labelSelector=${encodeURIComponent(`muster.dev/job=${id}`)}`
    return ((await kubernetes.request('GET', path)).body as { items: Pod[] }).items
  }
  const stampOf = async (id: string): Promise<string> => {
    const { stdout } = await queue.muster('job', 'show', id, '--json')
    return Date.parse((JSON.parse(stdout) as { time: string }).time).toString(36)
  }
  const nodesOf = async (id: string): Promise<readonly string[]> =>
    (await podsOf(id)).flatMap(({ spec }) => spec.nodeName ?? []).toSorted()
  const left = async (): Promise<string> => {
    const kinds = `jobs,pods,services${hasPodGroups ? ',podgroups' : ''}`
    return (await kubernetes.kubectl(`get ${kinds} -l muster.dev/key -o name`)).trim()
  }

  beforeAll(async () => {
    made = await kubernetesQueue({ gates })
    ;({ lab, kubernetes, queue, file } = made)
  })
  afterEach(async () => await made?.stop())
  afterAll(async () => {
    await lab?.stop()
  })

  it('places gangs by their strategy, and one that does not fit holds nothing until it does', async () => {
    const apart = await submit('--bundles', '3', '--strategy', 'STRICT_SPREAD', '--', 'sleep 300')
    const tight = await submit('--bundles', '4', '--strategy', 'STRICT_PACK', '--', 'sleep 300')
    const work = queue.work()
    await Promise.all([apart, tight].map((id) => work.seen(isJob(id, 'running'))))
    expect(await nodesOf(apart)).toEqual(['w1', 'w2', 'w3'])
    expect(new Set(await nodesOf(tight)).size).toBe(1)
    const gpus = ['--bundles', '3', '--gpu', '1', '--cpu', '0.1', '--']
    const first = await submit(...gpus, 'sleep 300')
    await work.seen(isJob(first, 'running'))
    const second = await submit(...gpus, 'sleep 300')
    const never = await submit('--bundles', '5', '--gpu', '1', '--cpu', '0.1', '--', 'sleep 300')
    await queue.says(second, hasPodGroups ? /K8s/ : /all of its 3 bundles must fit at once; now there is room for 1/)
    await queue.says(never, hasPodGroups ? /K8s/ : /all of its 5 bundles must fit at once; now there is room for 1/)
    if (!hasPodGroups) expect([...(await podsOf(second)), ...(await podsOf(never))]).toEqual([])
    expect([...(await nodesOf(second)), ...(await nodesOf(never))]).toEqual([])
    // The last GPU is free for others.
    const small = await submit('--gpu', '1', '--cpu', '0.1', '--env', 'LAB_EXIT=0', '--', 'true')
    await work.seen(isJob(small, 'done'))
    await queue.job('cancel', first)
    await work.seen(isJob(second, 'running'))
    expect(await nodesOf(second)).toHaveLength(3)
    if (hasPodGroups) expect(await kubernetes.kubectl('get podgroups -o name')).toContain(`-${second}-1-0`)
    await queue.job('cancel', [apart, tight, second, never].join())
    await work.ended
    await kubernetes.kubectl('delete jobs --all --cascade=foreground')
    // Services and pod groups belong to their job.
    await waitUntil(async () => (await left()) === '', 'nothing to be left', WAIT_MS)
  })

  it.skipIf(hasPodGroups)('prints a manifest that kubectl takes, and says whether it fits now', async () => {
    const trial = async (...args: readonly string[]) =>
      await queue.job('submit', '--engine', 'k8s', '--dry-run', ...args, '--', 'echo "a: b"\n# $(RANK)')
    const fits = await trial('--bundles', '2', '--gpu', '2', '--strategy', 'STRICT_SPREAD')
    expect([fits.stderr, fits.code]).toEqual(['', 0])
    const words = 'Kubernetes accepts it, and it fits now\n'
    expect(fits.stdout).toContain(words)
    const manifest = fits.stdout.replace(words, '')
    expect(await kubernetes.kubectl('apply --dry-run=server -f -', manifest)).toMatch(
      /^job\.batch\/muster-\S+ created .*\nservice\/muster-\S+ created/,
    )
    expect((await trial('--bundles', '2', '--gpu', '2', '--strategy', 'STRICT_PACK')).stdout).toContain(
      'Kubernetes accepts it; now there is room for 1 of its 2 bundles',
    )
    expect((await trial('--cpu', '100')).stdout).toContain('Kubernetes accepts it; no node has room for it now')
    expect(await left()).toBe('')
    const share = await queue.job('submit', '--engine', 'k8s', '--gpu', '0.5', '--', 'true')
    expect([share.code, share.stderr]).toEqual([2, expect.stringContaining('Kubernetes cannot share a GPU')])
  })

  it.skipIf(hasPodGroups)('says that a quota is used up, and leaves a job alone that is not its own', async () => {
    const limits = { metadata: { name: 'few' }, spec: { hard: { 'requests.cpu': '2' } } }
    await kubernetes.request('POST', '/api/v1/namespaces/default/resourcequotas', limits)
    const large = await submit('--cpu', '3', '--env', 'LAB_EXIT=0', '--', 'true')
    const work = queue.work()
    await queue.says(
      large,
      /the quota few is used up: it asks for requests\.cpu=3; used requests\.cpu=0 of requests\.cpu=2/,
    )
    const name = (await kubernetes.kubectl(`get jobs -l muster.dev/job=${large} -o name`)).trim().split('/')[1] ?? ''
    const next = await submit('--hold', '--', 'true')
    const taken = name.replace(new RegExp(`-${large}-1-0-\\w+$`), `-${next}-1-0-${await stampOf(next)}`)
    expect(taken).not.toBe(name)
    await kubernetes.kubectl(`create job ${taken} --image=none -- true`)
    await queue.muster('job', 'release', next)
    await work.seen(isJob(next, 'failed'))
    expect((await queue.find(next)).reason).toBe(
      `the namespace default has a job ${taken} that is not Muster's. Delete it: kubectl delete job ${taken}`,
    )
    expect(await kubernetes.kubectl(`get job ${taken} -o name`)).toBe(`job.batch/${taken}\n`)
    await kubernetes.kubectl('delete resourcequota few')
    await work.ended
    expect((await queue.find(large)).state).toBe('done')
  })

  it.skipIf(hasPodGroups)('waits while the API server is away, and running jobs continue', async () => {
    const running = await submit('--', 'sleep 300')
    const work = queue.work()
    await work.seen(isJob(running, 'running'))
    const [pod] = (await kubernetes.kubectl(`get pods -l muster.dev/job=${running} -o name`)).trim().split('/').slice(1)
    await kubernetes.killServer()
    const next = await submit('--after', running, '--', 'true')
    await queue.says(running, /no API server answers at its address/)
    await kubernetes.startServer()
    await kubernetes.endPod(pod ?? '', 9)
    await work.ended
    expect(await queue.find(running)).toMatchObject({ state: 'failed', reason: 'exit 9' })
    expect((await queue.find(next)).state).toBe('cancelled')
  })

  it.skipIf(hasPodGroups)('says what the credentials do not allow', async () => {
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace('context: lab', 'context: viewer'))
    const id = await submit('--', 'true')
    queue.work()
    await queue.says(id, /User "viewer" cannot create resource "jobs"/)
    await queue.job('cancel', id)
    await queue.stop()
    writeFileSync(file, text)
    await queue.work().ended
    expect((await queue.find(id)).state).toBe('cancelled')
  })
})
