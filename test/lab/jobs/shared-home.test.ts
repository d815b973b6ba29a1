/** The queue on hosts that share a home: their jobs lie side by side, and no host removes what another one needs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

describe.skipIf(!canRun)('the queue on hosts that share a home', { timeout: 200_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 4, perHost: (name) => (['m1', 'm4'].includes(name) ? {} : { homeOf: 'm1' }) })
    queue = labQueue(lab, hostsFileOf(lab, 'shared'))
  })
  afterAll(async () => {
    await queue?.stop()
    await lab?.stop()
  })

  const directories = async (): Promise<string[]> =>
    (await lab.host('m1').exec('ls .local/state/muster/jobs')).stdout.split('\n').filter(Boolean)

  it('runs many short jobs on all of them', async () => {
    const ids = await queue.submit('--on', 'm[1-3]', '--array', '1-60', '--', 'hostname; echo $MUSTER_ARRAY_INDEX')
    expect(await queue.work().ended).toEqual([0, null])
    const jobs = await queue.list()
    expect(jobs.map(({ state, attempt }) => `${state} ${attempt}`)).toEqual(Array(60).fill('done 1'))
    expect(new Set(jobs.flatMap(({ places = [] }) => places.map(({ host }) => host))).size).toBe(3)
    const [first = ''] = ids.split('-')
    const { stdout } = await queue.job('logs', String(Number(first) + 41))
    expect(stdout).toMatch(/^m[1-3]\n42\n$/)
  })

  it('cleans ended jobs once and keeps those that run on another host', async () => {
    const id = await queue.submit('--on', 'm3', '--', 'sleep 1000')
    const driver = queue.work()
    await driver.seen(new RegExp(`"job":${id},"state":"running"`))
    driver.child.kill('SIGKILL')
    await driver.ended
    await lab.host('m1').exec('find .local/state/muster/jobs -maxdepth 1 -exec touch -d @0 {} +')
    expect(await directories()).toHaveLength(61)
    const shared = (word: string) => `m[1-3]: 60 directories ${word} (in one directory that they share)`
    const lines = async (...words: readonly string[]) => (await queue.job('clean', ...words)).stdout.trim().split('\n')
    expect(await lines('--dry-run')).toEqual([shared('would be deleted'), 'm4: 0 directories would be deleted'])
    const cleaned = (await lines('--dry-run', '--json')).map((line) => JSON.parse(line) as object)
    expect(cleaned).toMatchObject([
      { host: 'm1', sharedWith: ['m2', 'm3'], directories: 60 },
      { host: 'm4', directories: 0 },
    ])
    expect(await lines()).toEqual([shared('deleted'), 'm4: 0 directories deleted'])
    expect(await directories()).toHaveLength(1)
    const again = queue.work()
    await queue.job('cancel', id)
    expect(await again.ended).toEqual([0, null])
    expect((await queue.find(id)).state).toBe('cancelled')
  })
})
