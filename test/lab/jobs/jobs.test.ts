/** `muster job` on real hosts: jobs check themselves that no device is over-committed, the driver is killed, a host goes away. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { honestJob } from '../../support/honest-job.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'flock')

const HONEST = honestJob('0.3')

type Result = {
  readonly parameters: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<string, number>>
}

describe.skipIf(!canRun)('the queue of jobs', { timeout: 240_000 }, () => {
  let lab: Lab

  let queue: LabQueue

  const job = async (...args: readonly string[]) => await queue.job(...args)
  const submit = async (...args: readonly string[]) => await queue.submit(...args)
  const list = async () => await queue.list()
  const work = () => queue.work()
  const onHosts = async (command: string) =>
    (await Promise.all(lab.hosts.map(async (host) => (await host.exec(command)).stdout))).join('')

  beforeAll(async () => {
    lab = await startLab({ count: 3 })
    queue = labQueue(lab, hostsFileOf(lab, 'lab', 'cpu: 6, gpu: 2, memory: 1GiB'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it('runs everything once, over-commits no device and finds running jobs after being killed', async () => {
    const ids = [
      await submit('--gpu', '0.5', '--array', '0-99', '--', HONEST),
      await submit('--gpu', '0.3', '--grid', 'x=0.1:4.0:0.1', '--', HONEST),
      await submit('--gpu', '2', '--array', '0-9', '--', HONEST),
      await submit('--array', '0-29', '--', HONEST),
      await submit('--array', '1-5', '--bundles', '3', '--gpu', '1', '--strategy', 'STRICT_SPREAD', '--', HONEST),
      await submit('--array', '1-5', '--bundles', '2', '--gpu', '1', '--strategy', 'STRICT_PACK', '--', HONEST),
      await submit('--array', '1-5', '--bundles', '4', '--gpu', '1', '--strategy', 'SPREAD', '--', HONEST),
      await submit('--array', '1-5', '--bundles', '3', '--gpu', '0.5', '--priority', '1', '--', HONEST),
    ]
    expect(ids).toEqual(['1-100', '101-140', '141-150', '151-180', '181-185', '186-190', '191-195', '196-200'])
    for (const _ of [1, 2]) {
      const { child, ended, seen } = work()
      await seen(/"state":"done"/, 30)
      child.kill('SIGKILL')
      await ended
    }
    const { ended } = work()
    expect(await ended).toEqual([0, null])
    expect(new Set((await list()).map(({ state }) => state))).toEqual(new Set(['done']))
    const ran = (await onHosts('cat ran')).trim().split('\n')
    const bundles = (id: number) => (id <= 180 ? 1 : id <= 185 ? 3 : id <= 190 ? 2 : id <= 195 ? 4 : 3)
    const expected = Array.from({ length: 200 }, (_, index) => index + 1).flatMap((id) =>
      Array.from({ length: bundles(id) }, (_, rank) => `${id}.${rank}.1`),
    )
    expect(ran.sort()).toEqual(expected.sort())
    expect(await onHosts('cat over 2>/dev/null; ls gpu | grep use')).toBe('')
  })

  it('prints what an earlier attempt said, wherever it ran', async () => {
    // Whichever bundle fails first, the other one has spoken.
    const fail = 'until [ -e spoken ]; do sleep 0.1; done; exit 3'
    const command = `echo attempt $MUSTER_ATTEMPT of bundle $RANK; [ $MUSTER_ATTEMPT = 2 ] || { ${fail}; }`
    const id = await submit('--retries', '1', '--bundles', '2', '--strategy', 'STRICT_SPREAD', '--', command)
    const { ended } = work()
    const logs = async (...args: readonly string[]) => await job('logs', id, ...args)
    for (const rank of ['0', '1'])
      await waitUntil(
        async () => (await logs('--rank', rank)).stdout === `attempt 1 of bundle ${rank}\n`,
        `bundle ${rank} to speak`,
      )
    await onHosts('touch spoken')
    await ended
    expect(await logs()).toMatchObject({ code: 0, stdout: 'attempt 2 of bundle 0\n' })
    expect(await logs('--attempt', '2')).toMatchObject({ code: 0, stdout: 'attempt 2 of bundle 0\n' })
    expect(await logs('--attempt', '1')).toMatchObject({
      code: 0,
      stdout: 'attempt 1 of bundle 0\n',
      stderr: expect.stringMatching(/^muster: attempt 1 of job \d+, from the files on \S+$/m),
    })
    expect((await logs('--attempt', '1', '--rank', '1')).stdout).toBe('attempt 1 of bundle 1\n')
    expect(await logs('--attempt', '3')).toMatchObject({ code: 2, stderr: `muster: job ${id} has made 2 attempts\n` })
    expect(await logs('--attempt', '1', '--all')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^muster: --all and --attempt cannot be used together$/m),
    })
    // A job that had this number in a queue of which an older copy was put back.
    await onHosts(`cd .local/state/muster/jobs && for d in *-${id}-1-?-*; do mv $d \${d%-*}-a; done; rm ~/spoken`)
    expect(await logs('--attempt', '1')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^muster: no host has output of attempt 1 of job \d+$/m),
    })
  })

  it('follows what a job says through its retries', async () => {
    const command =
      'echo attempt $MUSTER_ATTEMPT; [ $MUSTER_ATTEMPT = 2 ] || { until [ -e seen ]; do sleep 0.1; done; exit 3; }'
    const id = await submit('--retries', '1', '--', command)
    const follower = queue.follow(id)
    const { ended } = work()
    await follower.says('attempt 1\n')
    await onHosts('touch seen')
    expect(await ended).toEqual([0, null])
    const { code, stdout, stderr } = await follower.ended
    expect([code, stdout]).toEqual([0, 'attempt 1\nattempt 2\n'])
    expect(stderr).toMatch(/^muster: attempt 1 of job \d+ ended \(exit 3\): attempt 2 follows when it starts$/m)
    // An attempt that was asked for is all that is printed.
    expect(await job('logs', id, '--follow', '--attempt', '1')).toMatchObject({ code: 0, stdout: 'attempt 1\n' })
  })

  it('jobs on a rebooted host are lost and retried elsewhere as declared', async () => {
    const id = await submit(
      '--gpu',
      '2',
      '--retries',
      '1',
      '--',
      'echo on $MUSTER_HOSTS; [ $MUSTER_ATTEMPT = 2 ] || sleep 600',
    )
    const { ended, seen } = work()
    await seen(new RegExp(`"job":${id},"state":"running"`))
    const name = (await list()).find((line) => String(line.job) === id)?.places?.[0]?.host ?? ''
    await lab.host(name).crash()
    await seen(new RegExp(`"host":"${name}","trouble":"`))
    await lab.host(name).boot()
    await seen(new RegExp(`"job":${id},"state":"done"`))
    expect(await ended).toEqual([0, null])
    const { stdout } = await job('show', id)
    expect(stdout).toMatch(/attempt: +2/)
    expect((await job('logs', id)).stdout).toMatch(/^on m[1-3]\n$/)
  })

  it('copies a local directory for a job and removes it when no job needs it', async () => {
    mkdirSync(join(lab.directory, 'home', 'code', 'data'), { recursive: true })
    writeFileSync(join(lab.directory, 'home', 'code', 'data', 'word'), 'well\n')
    const code = join(lab.directory, 'home', 'code')
    const id = await submit('--copy-dir', code, '--bundles', '3', '--strategy', 'STRICT_SPREAD', '--', 'cat data/word')
    const left = async () => (await onHosts('ls .local/state/muster/jobs')).split('\n').filter(Boolean)
    expect((await left()).filter((name) => name.includes('copied'))).toHaveLength(3)
    expect(await work().ended).toEqual([0, null])
    expect((await job('logs', id, '--rank', '2')).stdout).toBe('well\n')
    await onHosts('find .local/state/muster/jobs -maxdepth 1 -exec touch -d @0 {} +')
    const { code: exit, stdout } = await job('clean', '--json')
    expect(exit).toBe(0)
    const counts = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { directories: number }).directories)
    expect(counts.every((count) => count > 0)).toBe(true)
    expect(await left()).toEqual([])
  })

  it('shows the results of a sweep best first, also of jobs that ended without a scheduler', async () => {
    const grid = ['--grid', 'x=1,2,3', '--grid', 'y=0.5,1.5', '--metric', 'loss', '--metric', 'max:acc=is ([0-9.]+)%']
    const ids = await submit(
      ...grid,
      '--',
      'echo "loss=99"; sleep 1; echo "it is $x$y%"; echo "step 2 loss: $x.$(echo $y | cut -c1)"',
    )
    const [first = ''] = ids.split('-')
    const killed = work()
    await killed.seen(/"running"/)
    killed.child.kill('SIGKILL')
    await killed.ended
    expect(await work().ended).toEqual([0, null])
    const { stdout } = await job('results', first, '--json')
    const rows = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Result]))
    expect(rows.map(({ parameters: { x, y }, metrics: { loss } }) => [x, y, loss])).toEqual([
      ['1', '0.5', 1],
      ['1', '1.5', 1.1],
      ['2', '0.5', 2],
      ['2', '1.5', 2.1],
      ['3', '0.5', 3],
      ['3', '1.5', 3.1],
    ])
    expect(rows.map(({ metrics: { acc } }) => acc)).toEqual([10.5, 11.5, 20.5, 21.5, 30.5, 31.5])
    await onHosts('rm -rf .local/state/muster/jobs/*')
    expect((await job('results', first, '--sort', 'acc', '--limit', '1')).stdout).toMatch(/\t3\t1\.5\t3\.1\t31\.5$/m)
  })

  it("works the same over the system's ssh", async () => {
    const [{ name, address } = { name: '', address: '' }] = lab.hosts
    const file = join(lab.directory, 'openssh.yaml')
    const resources = '{ cpu: 6, gpu: 0, memory: 1GiB }'
    writeFileSync(
      file,
      `cluster: openssh\nhosts:\n  ${name}: { address: ${address}, user: root, transport: openssh, resources: ${resources} }\n`,
    )
    const own = async (...args: readonly string[]) =>
      await lab.run([...PROGRAM, '--hosts', file, 'job', ...args], { timeoutMs: 60_000 })
    expect((await own('submit', '--array', '1-20', '--', 'echo $MUSTER_JOB')).stdout.trim()).toBe('1-20')
    expect((await own('work', '--until-empty')).code).toBe(0)
    expect((await own('logs', '7')).stdout).toBe('7\n')
    expect((await own('list', '--json')).stdout.match(/"state":"done"/g)).toHaveLength(20)
  })

  it('says why a job does not fit; a standby scheduler takes over and stops cancelled jobs', async () => {
    const { code, stdout } = await job('submit', '--gpu', '2', '--bundles', '4', '--dry-run', '--', 'true')
    expect([code, stdout]).toEqual([1, expect.stringContaining('Only 3 of 4 bundles fit')])
    const id = await submit('--', 'sleep 4567')
    const { child, ended, seen } = work()
    await seen(new RegExp(`"job":${id},"state":"running"`))
    const second = work()
    await second.told('another scheduler is running: ')
    child.kill('SIGKILL')
    await ended
    expect((await job('cancel', id)).code).toBe(0)
    expect(await second.ended).toEqual([0, null])
    expect((await job('show', id)).stdout).toMatch(/state: +cancelled/)
    expect(lab.hosts.flatMap((host) => host.processes()).filter(({ command }) => command.includes('4567'))).toEqual([])
  })
})
