/** A watch of pods in a process of its own: its memory, a dead API server, a killed proxy, credentials that are refused. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { KUBERNETES_PARTS, type KubernetesLab, kubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { pidNamespaceOf, processesIn, signalProcess } from '../cluster/processes.ts'

const PODS = '/api/v1/namespaces/default/pods'
const NODES = 3
const COUNT = 500
const AT_ONCE = 16
const WAIT_MS = 120_000
/** Whole objects would take more than twice as much. */
const MOST_BYTES = 4_000_000
/** Each pause is longer than the one before; a storm would be thousands. */
const MOST_REQUESTS = 100

type Line = { readonly pods: number; readonly trouble?: string; readonly requests: number; readonly bytes: number }

describe.skipIf(!requirement(...KUBERNETES_PARTS))('a watch of pods', { timeout: 400_000 }, () => {
  let lab: Lab
  let kubernetes: KubernetesLab
  /** For the sockets of the programs under test. */
  let scratch: string
  const children: ChildProcess[] = []

  beforeAll(async () => {
    ;({ lab, kubernetes } = await kubernetesLab())
    scratch = join(lab.directory, 'scratch')
    mkdirSync(scratch)
  })
  afterEach(async () => {
    for (const child of children.splice(0)) {
      child.stdin?.end()
      await once(child, 'exit')
    }
  })
  afterAll(async () => {
    await lab?.stop()
  })

  function watch(context: string) {
    const program = join(import.meta.dirname, 'watch-program.ts')
    const [file = '', ...args] = lab.command([process.execPath, '--expose-gc', '--import', 'tsx', program, context])
    const child = spawn(file, args, {
      env: { ...lab.environment, TMPDIR: scratch },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    children.push(child)
    const lines: Line[] = []
    let rest = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts.map((part) => JSON.parse(part) as Line))
    })
    const last = (): Line => lines.at(-1) ?? { pods: -1, requests: 0, bytes: 0 }
    const says = (isTrue: (line: Line) => boolean, what: string) => waitUntil(() => isTrue(last()), what, WAIT_MS)
    return { lines, last, says }
  }

  /** Already on a node, because this test is not about scheduling. */
  const podObject = (index: number) => {
    const resources = { limits: { 'nvidia.com/gpu': '1' }, requests: { cpu: '1', memory: '1Gi' } }
    const containers = [{ name: 'main', image: 'none', resources }]
    return { metadata: { name: `p${index}` }, spec: { nodeName: `w${1 + (index % NODES)}`, containers } }
  }
  const inParallel = async (act: (index: number) => Promise<unknown>) => {
    let next = 0
    const work = async () => {
      while (next < COUNT) await act(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }

  it('sees each change, and survives the death of the API server without a storm', async () => {
    const { says, last } = watch('lab')
    await says(({ pods }) => pods === 0, 'the empty list')
    const before = last().bytes
    await inParallel((index) => kubernetes.request('POST', PODS, podObject(index)))
    await says(({ pods }) => pods === COUNT, 'all pods')
    // It does not ask for each change.
    expect(last().requests).toBeLessThan(MOST_REQUESTS)
    expect(last().bytes - before).toBeLessThan(MOST_BYTES)

    await kubernetes.killServer()
    await says(({ trouble }) => trouble?.includes('no API server answers') === true, 'the trouble')
    expect(last().pods).toBe(COUNT)
    await kubernetes.startServer()
    await says(({ trouble }) => trouble === undefined, 'the end of the trouble')
    const known = last().requests
    expect(known).toBeLessThan(MOST_REQUESTS)
    await kubernetes.request('DELETE', `${PODS}/p0?gracePeriodSeconds=0`)
    await says(({ pods }) => pods === COUNT - 1, 'the change after it')

    // The proxy is killed: the watch continues through another one.
    const own = processesIn(pidNamespaceOf(process.pid) ?? '')
    const proxies = own.filter(({ command }) => command.startsWith('kubectl') && command.includes(scratch))
    expect(proxies).toHaveLength(1)
    for (const { pid } of proxies) signalProcess(pid, 'SIGKILL')
    await says(({ requests }) => requests > known, 'another watch')
    await kubernetes.request('DELETE', `${PODS}/p1?gracePeriodSeconds=0`)
    await says(({ pods, trouble }) => pods === COUNT - 2 && trouble === undefined, 'the change after the cut')
    expect(last().requests).toBeLessThan(known + MOST_REQUESTS)
    expect(last().bytes - before).toBeLessThan(MOST_BYTES)
  })

  it('asks seldom if the credentials do not allow it, and says so', async () => {
    const { says, last, lines } = watch('viewer')
    await says(({ trouble }) => trouble !== undefined, 'the refusal')
    expect(last().trouble).toContain('User "viewer" cannot list resource "pods"')
    expect(lines[0]?.requests).toBe(1)
  })
})
