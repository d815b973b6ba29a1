/** `muster k8s` and `muster status k8s` on a real API server: kubectl on this machine, and on a host over SSH. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { dayText } from '../../../src/base/time-text.ts'
import { openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { KUBERNETES_HOST, KUBERNETES_PARTS, type KubernetesLab, kubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const LOCAL = '{ context: lab }'
const PODS = '/api/v1/namespaces/default/pods'

const JOBS = '/apis/batch/v1/namespaces/default/jobs'
const jobObject = (name: string) => ({
  metadata: { name },
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'none' }] } } },
})

const podObject = (name: string, gpus: number) => {
  const limits = gpus === 0 ? {} : { 'nvidia.com/gpu': String(gpus) }
  return { metadata: { name }, spec: { containers: [{ name: 'main', image: 'none', resources: { limits } }] } }
}

describe.skipIf(!requirement(...KUBERNETES_PARTS))('muster k8s', { timeout: 120_000 }, () => {
  let lab: Lab
  let kubernetes: KubernetesLab
  /** For temporary files of this machine's programs. */
  let scratch: string
  const children: ChildProcess[] = []

  const fileOf = (section: string): string => {
    const file = join(lab.directory, `${section.replace(/\W+/g, '-')}.yaml`)
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`)
    writeFileSync(file, `defaults: { user: root }\nhosts:\n${hosts.join('')}k8s: ${section}\n`)
    return file
  }
  const environment = () => ({ ...lab.environment, TMPDIR: scratch })
  const muster = (section: string, ...words: readonly string[]): Promise<RunResult> =>
    lab.run([...PROGRAM, '--hosts', fileOf(section), ...words], { environment: environment() })
  const jsonOf = ({ stdout }: RunResult): Record<string, unknown>[] =>
    stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]))
  /** `kubectl proxy` on this machine or on the host, but for the lab's own, which is on the host, too. */
  const proxies = () => {
    const own = '/run/lab/kubernetes/api.sock'
    return lab
      .host(KUBERNETES_HOST)
      .processes()
      .filter(({ command, state }) => /kubectl.* proxy/.test(command) && !command.includes(own) && state !== 'Z')
  }
  const leftovers = async (): Promise<string> =>
    [...readdirSync(scratch), (await lab.host(KUBERNETES_HOST).exec('ls -d /tmp/muster.* 2>/dev/null')).stdout]
      .filter((name) => name.startsWith('muster') || name.startsWith('/tmp/muster'))
      .join()

  beforeAll(async () => {
    ;({ lab, kubernetes } = await kubernetesLab())
    scratch = join(lab.directory, 'scratch')
    mkdirSync(scratch)
  })
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await kubernetes?.kubectl('delete pods,jobs --all --wait=true --grace-period=0 --force')
  })
  afterAll(async () => {
    await lab?.stop()
  })

  describe.each([
    ['kubectl on this machine', LOCAL],
    ['kubectl on a host', `{ context: lab, via: ${KUBERNETES_HOST} }`],
  ])('with %s', (_, section) => {
    it('shows nodes with what pods asked for, and leaves nothing behind', async () => {
      await kubernetes.request('POST', PODS, podObject('one', 1))
      await waitForNode('one')
      const answer = await muster(section, 'k8s', 'nodes', '--json')
      expect(answer.stderr).toBe('')
      const rows = jsonOf(answer)
      expect(rows.map(({ name, gpus, cpuMilli, trouble }) => [name, gpus, cpuMilli, trouble])).toEqual([
        ['w1', 2, 4000, ''],
        ['w2', 2, 4000, ''],
        ['w3', 0, 8000, ''],
      ])
      expect(rows.reduce((sum, { gpusUsed }) => sum + Number(gpusUsed), 0)).toBe(1)
      expect((await muster(section, 'k8s', 'nodes')).stdout).toMatch(/^NODE\tGPUS\tCORES\tMEMORY\tPODS\t\nw1\t\d\/2/)
      await waitUntil(() => proxies().length === 0, 'the end of kubectl')
      expect(await leftovers()).toBe('')
    })

    it('follows the output of a pod until it is killed, and then no proxy is left', async () => {
      await kubernetes.request('POST', PODS, podObject('talker', 0))
      await waitForNode('talker')
      kubernetes.print('before')
      const follower = start(section, 'k8s', 'logs', '-f', 'talker')
      await waitUntil(() => follower.output().includes('before'), 'the first line')
      const texts = jsonOf(await muster(section, 'k8s', 'logs', 'talker', '--json')).map(({ text }) => text)
      expect(texts).toContain('before')
      expect(texts).not.toContain('')
      kubernetes.print('later')
      await waitUntil(() => follower.output().includes('later'), 'the next line')
      follower.child.kill('SIGKILL')
      await once(follower.child, 'exit')
      await waitUntil(() => proxies().length === 0, 'the end of kubectl')
      await waitUntil(async () => (await leftovers()) === '', 'the end of its socket')
    })

    it('runs a command in a pod, and ends with its exit code', async () => {
      await kubernetes.request('POST', PODS, podObject('shell', 0))
      await waitForNode('shell')
      const answer = await muster(section, 'k8s', 'exec', 'shell', '--', 'sh', '-c', 'echo "a $HOSTNAME"; exit 7')
      expect(answer.stdout).toMatch(/^a /)
      // kwok does not pass on the exit code of a command: it is what kubectl says.
      const same = await lab.run(['kubectl', 'exec', 'shell', '--', 'sh', '-c', 'exit 7'])
      expect(answer.code).toBe(same.code)
      expect(same.code).not.toBe(0)
    })
  })

  it('reports rights, nodes and extensions in its status', async () => {
    const { stdout, code } = await muster(LOCAL, 'status', 'k8s')
    expect(stdout).toMatch(/^good +k8s · /)
    expect(stdout).toContain('3 of 3 nodes accept pods [4 nvidia.com/gpu]')
    expect(stdout).toContain('extensions for gangs and queues: none')
    expect(code).toBe(0)
  })

  it('says in words why a pod waits, with what the scheduler said', async () => {
    await kubernetes.request('POST', PODS, podObject('big', 5))
    let said = ''
    await waitUntil(async () => {
      said = (await muster(LOCAL, 'k8s', 'why', 'big')).stdout
      return said.includes('GPUs')
    }, 'the reason')
    expect(said).toContain('no node could hold it even when idle: of 3 nodes, all have too few GPUs (nvidia.com/gpu)')
    expect(said).toContain('the scheduler says: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu')
    expect(await muster(LOCAL, 'k8s', 'logs', 'big')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('big has printed nothing: no node could hold it even when idle'),
    })
    expect(jsonOf(await muster(LOCAL, 'k8s', 'why', 'big', '--json'))).toMatchObject([{ type: 'why', kind: 'Pod' }])
    expect(jsonOf(await muster(LOCAL, 'k8s', 'pods', '--json'))).toMatchObject([{ type: 'pod', name: 'big', gpus: 5 }])
    const { stdout } = await muster(LOCAL, 'k8s', 'pods')
    expect(stdout).toMatch(/^NAMESPACE\tPOD\tSTATE\tNODE\tGPUS\tRESTARTS\tAGE\t\n\tbig\tPending\t\t5\t.*too few GPUs/)
    expect(jsonOf(await muster(LOCAL, 'k8s', 'events', '--json'))).toContainEqual(
      expect.objectContaining({ type: 'event', name: 'big', reason: 'FailedScheduling', isWarning: true }),
    )
  })

  it('shows the date of events that are not of today', async () => {
    const atMs = Date.now() - 24 * 3_600_000
    await kubernetes.request('POST', '/api/v1/namespaces/default/events', {
      metadata: { name: 'earlier' },
      involvedObject: { kind: 'Pod', name: 'gone', namespace: 'default' },
      reason: 'Killing',
      message: 'from the day before',
      lastTimestamp: new Date(atMs).toISOString(),
    })
    const { stdout } = await muster(LOCAL, 'k8s', 'events')
    expect(stdout.split('\n').find((line) => line.includes('Pod/gone'))).toMatch(
      new RegExp(`^${dayText(atMs)} \\d\\d:\\d\\d:\\d\\d\t\tPod/gone\t\tKilling\tfrom the day before$`),
    )
  })

  it('says what the credentials do not allow', async () => {
    const viewer = '{ context: viewer }'
    const nodes = await muster(viewer, 'k8s', 'nodes')
    expect(nodes).toMatchObject({ code: 1, stdout: '' })
    expect(nodes.stderr).toContain('User "viewer" cannot list resource "nodes"')
    const exec = await muster(viewer, 'k8s', 'exec', 'any', '--', 'id')
    expect(exec).toMatchObject({ code: 1, stdout: '' })
    expect(exec.stderr).toContain('the credentials of the kubeconfig do not allow: create pods/exec')
    expect((await muster(viewer, 'k8s', 'pods')).code).toBe(0)
    const { stdout } = await muster(viewer, 'k8s', 'status')
    expect(stdout).toContain('the credentials do not allow: create jobs, patch jobs, delete jobs')
    expect(stdout).toContain('the credentials do not allow listing nodes')
  })

  it('creates the namespace of hosts.yaml with up, once, on the host that has kubectl', async () => {
    const name = 'team-a'
    const own = `{ context: lab, namespace: ${name}, via: ${KUBERNETES_HOST} }`
    expect((await muster(own, 'up', 'k8s', '--yes')).code).toBe(0)
    expect(await kubernetes.kubectl(`get namespace ${name} -o name`)).toBe(`namespace/${name}\n`)
    expect((await muster(own, 'up', 'k8s', '--yes')).stdout).toContain('nothing to do')
    const down = await muster(own, 'down', 'k8s', '--yes')
    expect(down.stdout).toContain('nothing to do')
    expect(await kubernetes.kubectl(`get namespace ${name} -o name`)).toBe(`namespace/${name}\n`)
  })

  it('says what is wrong with a context that does not exist', async () => {
    const { stderr, code } = await muster('{ context: nowhere }', 'k8s', 'pods')
    expect(stderr).toContain('this machine: the kubeconfig has no such context (context "nowhere" does not exist)')
    expect(code).toBe(4)
  })

  it('offers in the console only what the credentials allow', async () => {
    await kubernetes.request('POST', JOBS, jobObject('batch'))
    const open = (context: string) =>
      openConsole({ in: lab, args: ['--hosts', fileOf(`{ context: ${context}, namespace: default }`)] })
    {
      await using viewer = await open('viewer')
      await viewer.leader('5')
      await viewer.expectScreen(/y: \[own queue\] +K8s/)
      await viewer.key('y')
      await viewer.expectScreen(/batch of default +running/)
      await viewer.expectScreen(/1 of 1 pods run/)
      await viewer.expectNowhere(/d delete|s suspend/)
    }
    await using console = await open('lab')
    await console.leader('5')
    await console.expectScreen(/y: \[own queue\] +K8s/)
    await console.key('y')
    await console.expectScreen(/d delete.*s suspend/)
    await console.expectScreen(/SuccessfulCreate: Created pod: batch-/)
    await console.key('s')
    await console.expectScreen(/Suspend Job batch in default\?/)
    await console.key('y')
    await console.expectScreen(/it is suspended and holds nothing/)
    await console.expectScreen(/s resume/)
    expect(await kubernetes.kubectl('get job batch -o jsonpath={.spec.suspend}')).toBe('true')
    await console.key('d')
    await console.expectScreen(/Delete Job batch in default\?/)
    await console.key('y')
    await waitUntil(async () => (await kubernetes.request('GET', `${JOBS}/batch`)).status === 404, 'the end of the Job')
  })

  it('says that the API server is down', async () => {
    await kubernetes.killServer()
    try {
      const { stderr, code } = await muster(LOCAL, 'k8s', 'pods')
      expect(stderr).toContain('no API server answers at its address')
      expect(code).toBe(4)
      expect((await muster(LOCAL, 'k8s', 'status')).stdout).toMatch(/^blocked .*no API server answers/)
    } finally {
      await kubernetes.startServer()
    }
  })

  it('says how to get kubectl where there is none', async () => {
    const words = [...PROGRAM, '--hosts', fileOf(LOCAL), 'k8s', 'pods']
    const { stderr } = await lab.run(['env', 'PATH=/nothing', ...words], { environment: environment() })
    expect(stderr).toContain('kubectl is not installed on this machine. Install it (https://')
  })

  async function waitForNode(name: string): Promise<void> {
    await waitUntil(async () => {
      const { body } = await kubernetes.request('GET', `${PODS}/${name}`)
      return (body as { status?: { phase?: string } }).status?.phase === 'Running'
    }, `${name} to run`)
  }

  function start(section: string, ...words: readonly string[]) {
    const [file = '', ...args] = lab.command([...PROGRAM, '--hosts', fileOf(section), ...words])
    const child = spawn(file, args, { env: environment(), stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    return { child, output: () => output }
  }
})
