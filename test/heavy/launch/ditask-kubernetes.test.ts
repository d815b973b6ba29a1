/** Real DI-engine in pods that really run: `ditask --platform k8s` with what Muster tells it (docs/engines.md). */
import { appendFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { KUBERNETES_IMAGE, KUBERNETES_PARTS, kubernetesLab } from '../../lab/cluster/kubernetes-lab.ts'
import type { Lab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE } from '../../lab/cluster/python-environment.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../../lab/jobs/lab-queue.ts'
import { requirement } from '../../support/requirements.ts'
import { ditaskMounts, HELLO } from './ditask-parts.ts'

const canRun = requirement(...KUBERNETES_PARTS, 'sshd', 'containers', 'environment di-engine')

/** The image has busybox alone; Python and DI-engine are those of the node. */
const PLACES: Readonly<Record<string, string>> = {
  '/usr': '/usr',
  '/lib': '/usr/lib',
  '/lib64': '/usr/lib64',
  '/etc/alternatives': '/etc/alternatives',
  [ENVIRONMENT_PLACE]: ENVIRONMENT_PLACE,
  '/srv': '/srv',
}
const SECTION = {
  context: 'lab',
  namespace: 'default',
  image: KUBERNETES_IMAGE,
  pod: { volumes: Object.values(PLACES).map((path, index) => ({ name: `v${index}`, hostPath: { path } })) },
  container: {
    imagePullPolicy: 'Never',
    volumeMounts: Object.keys(PLACES).map((mountPath, index) => ({ name: `v${index}`, mountPath, readOnly: true })),
  },
}
/** Adds no option: tells how ditask is called. */
const TELL = '$(echo "ditask $*, rank $DI_RANK of $DI_NODES" >&2)'

describe.skipIf(!canRun)('ditask in pods', { timeout: 600_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    ;({ lab } = await kubernetesLab({ nodes: [], realNodes: ['real1', 'real2'] }, { mounts: await ditaskMounts() }))
    const file = hostsFileOf(lab, 'ditask')
    appendFileSync(file, `k8s: ${JSON.stringify(SECTION)}\n`)
    queue = labQueue(lab, file)
  })
  afterEach(async () => await queue?.stop())
  afterAll(async () => await lab?.stop())

  const submit = async (peers: readonly number[], ...args: readonly string[]) => {
    const variables = ['--env', `PEERS=${JSON.stringify({ ...peers })}`, '--env', 'HOME=/tmp', '--cpu', '0.2']
    const launcher = ['--engine', 'k8s', '--launch', 'ditask', '--ditask', `${ENVIRONMENT}/bin/ditask`]
    return await queue.submit(...variables, ...launcher, '--strategy', 'SPREAD', ...args)
  }
  const logOf = async (id: string, rank: number) => (await queue.job('logs', id, '--rank', String(rank))).stdout

  it('as a star: all hear the first one, and it hears all', async () => {
    const id = await submit([2, 1, 1], '--bundles', '3', '--', `${HELLO} ${TELL}`)
    expect(await queue.work().ended).toEqual([0, null])
    const logs = await Promise.all([0, 1, 2].map((rank) => logOf(id, rank)))
    expect(await queue.find(id), logs.join('\n')).toMatchObject({ state: 'done' })
    expect(logs.map((log) => /^node \d+ heard .*$/m.exec(log)?.[0])).toEqual([
      'node 0 heard [1, 2]',
      'node 1 heard [0]',
      'node 2 heard [0]',
    ])
    const told = logs.map((log) => /^ditask --platform k8s --topology star .*, rank (\d) of (\S+)$/m.exec(log))
    expect(told.map((found) => found?.[1])).toEqual(['0', '1', '2'])
    expect(new Set(told.map((found) => found?.[2])).size).toBe(1)
    expect(told[0]?.[2]).toMatch(/^(10\.82\.\d+\.\d+,){2}10\.82\.\d+\.\d+$/)
  })

  it('fails with the reason when a worker cannot find a peer', async () => {
    const id = await submit([1, 1], '--bundles', '2', '--', `${HELLO} --attach-to tcp://nowhere.invalid:46900`)
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.find(id)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(
        /^exit 1: rank [01] on \S+: BusError: this worker hears no other one: pynng\.exceptions\.AddressInvalid/,
      ),
    })
  })
})
