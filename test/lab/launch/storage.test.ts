/** Launched jobs whose results go to one directory: their hosts prove it before anything begins. */
import { appendFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'python3')

const ROWS = `launchers:
  run: { per: host, command: [env] }
`
const BUNDLES = ['--bundles', '3', '--per-host', '1'] as const

describe.skipIf(!canRun)('the directory of a launched job', { timeout: 90_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    // Homes are one directory, as over NFS; /tmp is another one on each host.
    const perHost = (name: string) => (name === 'm1' ? {} : { homeOf: 'm1' })
    lab = await startLab({ names: ['m1', 'm2', 'm3'], perHost })
    const file = hostsFileOf(lab, 'storage')
    appendFileSync(file, ROWS)
    queue = labQueue(lab, file)
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  const everywhere = async (command: string) =>
    await Promise.all(lab.hosts.map(async (host) => (await host.exec(command)).stdout))
  const proofs = async () => (await everywhere('find /root /tmp -name ".muster-proof-*" 2>/dev/null')).join('')

  it('lets it begin where all hosts have the same one', async () => {
    await everywhere('mkdir -p /root/results')
    const id = await queue.submit(
      ...['--launch', 'run', ...BUNDLES, '--storage', '/root/results', '--'],
      'touch "/root/results/$MUSTER_RANK"',
    )
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/state: +done/)
    expect((await everywhere('ls /root/results'))[2]).toBe('0\n1\n2\n')
    expect(await proofs()).toBe('')
  })

  it('fails it before anything begins where one has another, and names the host and what to do', async () => {
    await everywhere('mkdir -p /tmp/results')
    const id = await queue.submit(
      ...['--launch', 'run', ...BUNDLES, '--storage', '/tmp/results', '--'],
      'touch "/tmp/results/$MUSTER_RANK"',
    )
    expect(await queue.work().ended).toEqual([0, null])
    const { state, reason } = await queue.find(id)
    expect(state).toBe('failed')
    expect(reason).toMatch(
      /^m2: \/tmp\/results is not the directory that m1 has\. Declare it in nfs: of hosts\.yaml, then run: muster up nfs; m3: /,
    )
    expect((await everywhere('ls /tmp/results')).join('')).toBe('')
    expect(await proofs()).toBe('')
  })

  it('is for launched jobs only', async () => {
    const { code, stderr } = await queue.job('submit', '--storage', '/root/results', '--', 'true')
    expect(code).toBe(2)
    expect(stderr).toContain('--storage can only be used with --engine ray or --launch')
  })
})
