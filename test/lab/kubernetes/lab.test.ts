/** The lab's own Kubernetes: a control plane, nodes and pods that kwok plays, and pods that really run. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { cgroupMounts, cgroupOf } from '../cluster/cgroups.ts'
import { KUBERNETES_IMAGE, KUBERNETES_PARTS, type KubernetesLab, kubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { processesOf } from '../cluster/processes.ts'

const PODS = '/api/v1/namespaces/default/pods'
const SETTINGS = ['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops']
const setting = (name: string): string => readFileSync(join('/proc/sys', name), 'utf8')

describe.skipIf(!requirement(...KUBERNETES_PARTS))('Kubernetes in a lab', () => {
  let lab: Lab
  let kubernetes: KubernetesLab

  beforeAll(async () => {
    ;({ lab, kubernetes } = await kubernetesLab())
  })

  afterAll(async () => {
    await lab?.stop()
  })

  it('plays pods that run until they are told to end, and their logs', async () => {
    const containers = [{ name: 'main', image: 'none', resources: { limits: { 'nvidia.com/gpu': '2' } } }]
    const { status } = await kubernetes.request('POST', PODS, { metadata: { name: 'played' }, spec: { containers } })
    expect(status).toBe(201)
    await waitForPhase(kubernetes, 'played', 'Running')
    expect(await podOf(kubernetes, 'played')).toMatchObject({ spec: { nodeName: expect.stringMatching(/^w[12]$/) } })
    kubernetes.print('a line')
    expect(await kubernetes.kubectl('logs played')).toBe('a line\n')
    await kubernetes.endPod('played', 7)
    await waitForPhase(kubernetes, 'played', 'Failed')
    const terminated = { exitCode: 7, reason: 'Error' }
    expect(await podOf(kubernetes, 'played')).toMatchObject({
      status: { containerStatuses: [{ state: { terminated } }] },
    })
  })

  it("has kubectl for the lab's user, and a user who may only read pods and jobs of one namespace", async () => {
    const seen = await lab.run(['kubectl', 'get', 'nodes', '-o', 'name'])
    expect(seen.stdout).toBe('node/w1\nnode/w2\nnode/w3\n')
    const forbidden = await lab.run(['kubectl', '--context', 'viewer', 'get', 'nodes'])
    expect(forbidden.stderr).toContain('User "viewer" cannot list resource "nodes"')
    expect((await lab.run(['kubectl', '--context', 'viewer', 'get', 'pods'])).code).toBe(0)
  })

  it('keeps its objects when its API server is killed and starts again', async () => {
    await kubernetes.killServer()
    expect((await lab.run(['kubectl', 'get', 'nodes'])).stderr).toContain('refused')
    await kubernetes.startServer()
    expect(await kubernetes.kubectl('get nodes -o name')).toContain('node/w1')
  })
})

describe.skipIf(!requirement(...KUBERNETES_PARTS, 'containers'))('pods that really run', () => {
  /** Only this test's processes have this command. */
  const endless = `sleep ${process.pid}.5`
  let settings: readonly string[]
  let lab: Lab
  let kubernetes: KubernetesLab

  beforeAll(async () => {
    settings = SETTINGS.map(setting)
    ;({ lab, kubernetes } = await kubernetesLab({ nodes: [], realNodes: ['real1', 'real2'] }))
  })

  afterAll(async () => {
    await lab?.stop()
  })

  it('leave the settings of the machine alone, which kubelet would change', () => {
    expect(SETTINGS.map(setting)).toEqual(settings)
  })

  it('run in containers on both nodes, find each other by name, and end with their exit codes', async () => {
    // With a pipe, nc may end before it has read anything, as the listening side sends nothing.
    const tell = 'until nc a.pods 5000 << END\nhello from $(hostname)\nEND\ndo :; done'
    await kubernetes.kubectl('create service clusterip pods --clusterip=None')
    await kubernetes.kubectl('patch service pods --type=merge -p \'{"spec":{"publishNotReadyAddresses":true}}\'')
    await runPod(kubernetes, 'a', 'real1', 'echo ready; nc -l -p 5000; exit 7')
    await runPod(kubernetes, 'b', 'real2', tell)
    await waitForPhase(kubernetes, 'a', 'Failed')
    await waitForPhase(kubernetes, 'b', 'Succeeded')
    expect(await kubernetes.kubectl('logs a')).toBe('ready\nhello from b\n')
    const terminated = { exitCode: 7, reason: 'Error' }
    expect(await podOf(kubernetes, 'a')).toMatchObject({ status: { containerStatuses: [{ state: { terminated } }] } })
  })

  it('runs commands in them, and their processes end when they are deleted', async () => {
    await runPod(kubernetes, 'c', 'real1', `exec ${endless}`)
    await waitForPhase(kubernetes, 'c', 'Running')
    expect(await kubernetes.kubectl('exec c -- hostname')).toBe('c\n')
    const running = () => processesOf(endless)
    expect(running()).toHaveLength(1)
    await kubernetes.kubectl('delete pod c --wait=false')
    await waitUntil(() => running().length === 0, 'the end of the process')
  })

  it('leaves no process, file or cgroup', async () => {
    await runPod(kubernetes, 'd', 'real2', `exec ${endless}`)
    await waitForPhase(kubernetes, 'd', 'Running')
    const cgroup = cgroupOf(lab.directory)
    expect(cgroupsNamed(cgroup)).not.toEqual([])
    await lab.stop()
    expect([...lab.hosts.flatMap((host) => host.processes()), ...processesOf(endless)]).toEqual([])
    expect(existsSync(lab.directory)).toBe(false)
    expect(cgroupsNamed(cgroup)).toEqual([])
    expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(lab.directory)
  })
})

async function runPod(kubernetes: KubernetesLab, name: string, nodeName: string, script: string): Promise<void> {
  const containers = [{ name: 'main', image: KUBERNETES_IMAGE, command: ['sh', '-c', script] }]
  const spec = {
    nodeName,
    hostname: name,
    subdomain: 'pods',
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    containers,
  }
  const metadata = { name, labels: { app: 'pods' } }
  const { status, body } = await kubernetes.request('POST', PODS, { metadata, spec })
  if (status !== 201) throw new Error(JSON.stringify(body))
}

function cgroupsNamed(name: string): string[] {
  return cgroupMounts().flatMap(({ place }) => (existsSync(join(place, name)) ? [join(place, name)] : []))
}

type Pod = { readonly spec: unknown; readonly status: { readonly phase: string } }

async function podOf(kubernetes: KubernetesLab, name: string): Promise<Pod | undefined> {
  const { status, body } = await kubernetes.request('GET', `${PODS}/${name}`)
  return status === 200 ? (body as Pod) : undefined
}

async function waitForPhase(kubernetes: KubernetesLab, name: string, phase: string): Promise<void> {
  await waitUntil(
    async () => (await podOf(kubernetes, name))?.status.phase === phase,
    `${name} to be ${phase}`,
    120_000,
  )
}
