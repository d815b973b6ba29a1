/** What becomes of jobs when hosts, their disks, the way to them, or the disk of the queue fail (docs/jobs.md, "When something fails"). */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'flock')

const JOBS = '.local/state/muster/jobs'
/** A line in `ran` each time that it begins, and one in `twice` when the same attempt begins again. */
const NOTED =
  'n=$MUSTER_JOB.$RANK.$MUSTER_ATTEMPT; (set -C; : >began.$n) 2>/dev/null || echo $n >>twice; echo $n >>ran;'
const UNTIL = (name: string) => `${NOTED} while [ ! -e ${name} ]; do sleep 0.1; done;`

describe.skipIf(!canRun)('jobs when something fails', { timeout: 300_000 }, () => {
  let lab: Lab
  let hostsFile: string
  let queue: LabQueue

  const on = async (name: string, command: string) => (await lab.host(name).exec(command)).stdout
  const onHosts = async (command: string) =>
    (await Promise.all(lab.names.map(async (name) => await on(name, command)))).join('')
  const ran = async (id: string) =>
    (await onHosts('cat ran 2>/dev/null'))
      .split('\n')
      .filter((line) => line.startsWith(`${id}.`))
      .sort()
  const left = (command: string) =>
    lab.hosts.flatMap((host) => host.processes()).filter((process) => process.command === command)
  const down = (name: string) => new RegExp(`"host":"${name}","trouble":"`)

  beforeAll(async () => {
    lab = await startLab({ count: 3, sshConfig: ['Host *', '  ServerAliveInterval 1', '  ServerAliveCountMax 3'] })
    hostsFile = hostsFileOf(lab, 'faults')
    queue = labQueue(lab, hostsFile)
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => {
    const twice = await onHosts('cat twice 2>/dev/null')
    await lab?.stop()
    expect(twice).toBe('')
  })

  it('when all processes of a host are killed, its jobs are lost or retried, and others continue', async () => {
    const plain = await queue.submit('--on', 'm1', '--', `${NOTED} sleep 1000`)
    const again = await queue.submit(
      '--on',
      'm1',
      '--retries',
      '1',
      '--',
      `${NOTED} [ $MUSTER_ATTEMPT = 2 ] || sleep 1000`,
    )
    const gang = await queue.submit('--bundles', '3', '--strategy', 'STRICT_SPREAD', '--', `${NOTED} sleep 1000`)
    const other = await queue.submit('--on', 'm2', '--', UNTIL('killed'))
    const { seen, ended } = queue.work()
    for (const id of [plain, again, gang, other]) await seen(isJob(id, 'running'))
    // A bundle reports its start just before its command begins.
    await waitUntil(async () => (await on('m1', 'cat ran')).trim().split('\n').length === 3, 'all commands on m1')
    await lab.host('m1').crash()
    await seen(down('m1'))
    await on('m2', 'touch killed')
    await seen(isJob(other, 'done'))
    expect((await queue.find(plain)).state).toBe('running')
    await waitUntil(
      async () => /bundle 0: +m1: started, according to its last report: /.test(await queue.show(plain)),
      'a word on m1',
    )
    await lab.host('m1').boot()
    expect(await ended).toEqual([0, null])
    expect([await queue.find(plain), await queue.find(gang)]).toMatchObject([
      { state: 'lost', reason: 'its process ended without an exit code' },
      {
        state: 'lost',
        reason: expect.stringMatching(/^rank \d on m1 failed first: its process ended without an exit code$/),
      },
    ])
    expect(await queue.find(again)).toMatchObject({ state: 'done', attempt: 2 })
    expect(await ran(plain)).toEqual([`${plain}.0.1`])
    expect(await ran(again)).toEqual([`${again}.0.1`, `${again}.0.2`])
    expect(await ran(gang)).toEqual([0, 1, 2].map((rank) => `${gang}.${rank}.1`))
    expect(left('sleep 1000')).toEqual([])
  })

  it('jobs continue on a host without sshd, and their ends are known when it is back', async () => {
    const id = await queue.submit('--on', 'm1', '--', UNTIL('refused'))
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    await lab.host('m1').killSshd()
    await seen(down('m1'))
    await on('m1', 'touch refused')
    await lab.host('m1').startSshd()
    expect(await ended).toEqual([0, null])
    expect(await queue.find(id)).toMatchObject({ state: 'done', attempt: 1 })
    expect(await ran(id)).toEqual([`${id}.0.1`])
  })

  it('a disconnected host gets nothing new, and ends of its jobs and gangs are known when it is back', async () => {
    const alone = await queue.submit('--on', 'm1', '--', UNTIL('cut'))
    const fails = await queue.submit(
      '--on',
      'm1',
      '--retries',
      '1',
      '--',
      `${UNTIL('cut')} exit $((2 - MUSTER_ATTEMPT))`,
    )
    const gang = await queue.submit('--bundles', '3', '--strategy', 'STRICT_SPREAD', '--', UNTIL('cut'))
    const broken = await queue.submit(
      ...['--bundles', '3', '--strategy', 'STRICT_SPREAD', '--'],
      `${NOTED} [ "$(hostname)" = m2 ] || exec sleep 2000; while [ ! -e broken ]; do sleep 0.1; done; exit 7`,
    )
    const { seen, ended } = queue.work()
    for (const id of [alone, fails, gang, broken]) await seen(isJob(id, 'running'))
    await lab.host('m1').linkDown()
    await seen(down('m1'))
    await onHosts('touch cut')
    await waitUntil(async () => (await on('m1', `cat ${JOBS}/*/exit`)).trim().split('\n').length >= 3, 'all ends on m1')
    const [first] = (await queue.submit('--array', '1-20', '--', NOTED)).split('-')
    await seen(/"state":"done"/, 20)
    const states = async () => await Promise.all([alone, fails, gang].map(async (id) => (await queue.find(id)).state))
    expect(await states()).toEqual(['running', 'running', 'running'])
    const places = (await queue.list()).flatMap((line) => (line.job >= Number(first) ? (line.places ?? []) : []))
    expect(new Set(places.map(({ host }) => host))).toEqual(new Set(['m2', 'm3']))
    await on('m2', 'touch broken')
    await seen(isJob(broken, 'ending'))
    await lab.host('m1').linkUp()
    expect(await ended).toEqual([0, null])
    expect(await states()).toEqual(['done', 'done', 'done'])
    expect(await queue.find(broken)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/^rank \d on m2 failed first: exit 7\b/),
    })
    expect(left('sleep 2000')).toEqual([])
    expect(await ran(fails)).toEqual([`${fails}.0.1`, `${fails}.0.2`])
    expect(await ran(gang)).toEqual([0, 1, 2].map((rank) => `${gang}.${rank}.1`))
  })

  it('nothing begins on a host with a full disk, which is reported, until there is room', async () => {
    await on('m2', `mkdir -p ${JOBS} && mount -t tmpfs -o size=1m,mode=700 none ${JOBS}`)
    const runs = await queue.submit('--on', 'm2', '--', UNTIL('full'))
    const { seen, ended } = queue.work()
    await seen(isJob(runs, 'running'))
    await on('m2', `head -c 2000000 /dev/zero >${JOBS}/fill`)
    const waits = await queue.submit('--on', 'm2', '--', NOTED)
    await seen(/"host":"m2","trouble":"[^"]*jobs cannot be written: No space left on device"/)
    const others = await queue.submit('--array', '1-20', '--', NOTED)
    await seen(/"state":"done"/, 20)
    const saysWhy = async () => {
      const shown = await queue.show(waits)
      return shown.includes('No space left on device') && /state: +queued/.test(shown)
    }
    await waitUntil(saysWhy, 'what waits to say why')
    await on('m2', 'touch full')
    await seen(isJob(runs, 'done'))
    await on('m2', `rm ${JOBS}/fill`)
    expect(await ended).toEqual([0, null])
    expect((await queue.find(waits)).state).toBe('done')
    expect(await ran(waits)).toHaveLength(1)
    expect((await Promise.all(idsOf(others).map(ran))).map(({ length }) => length)).toEqual(new Array(20).fill(1))
  })

  it('a read-only disk is reported, and jobs begin there when it can be written', async () => {
    const keeps = await queue.submit('--on', 'm3', '--', UNTIL('written'))
    const { seen, ended } = queue.work()
    await seen(isJob(keeps, 'running'))
    expect((await lab.host('m2').exec(`mount -o remount,bind,ro ${JOBS}`)).stderr).toBe('')
    const waits = await queue.submit('--on', 'm2', '--', NOTED)
    await seen(/"host":"m2","trouble":"[^"]*jobs cannot be written: Read-only file system"/)
    expect((await lab.host('m2').exec(`mount -o remount,bind,rw ${JOBS}`)).stderr).toBe('')
    await seen(isJob(waits, 'done'))
    await on('m3', 'touch written')
    expect(await ended).toEqual([0, null])
    expect(await ran(waits)).toHaveLength(1)
  })

  it('a job that fills the disk ends with that reason, and others go elsewhere until there is room', async () => {
    const keeps = await queue.submit('--on', 'm3', '--', UNTIL('filled'))
    const fills = await queue.submit('--on', 'm2', '--', `${NOTED} head -c 4000000 /dev/zero; [ $? = 0 ] || exit 9`)
    const { seen, ended } = queue.work()
    await seen(isJob(fills, 'failed'))
    const waits = await queue.submit('--on', 'm2', '--', NOTED)
    await seen(/"host":"m2","trouble":"[^"]*No space left on device"/)
    const other = await queue.submit('--', NOTED)
    await seen(isJob(other, 'done'))
    await on('m2', `rm ${JOBS}/*-${fills}-1-0-*/out`)
    await seen(isJob(waits, 'done'))
    await on('m3', 'touch filled')
    expect(await ended).toEqual([0, null])
    expect(await queue.find(fills)).toMatchObject({ reason: 'exit 9; the disk was full, so output may be missing' })
    expect((await queue.find(keeps)).state).toBe('done')
    expect([await ran(fills), await ran(waits)].map(({ length }) => length)).toEqual([1, 1])
    await on('m2', `umount -l ${JOBS}`)
  })

  it('when the disk of the queue is full or read-only, submissions are refused, jobs continue, and so does the scheduler when there is room', async () => {
    const home = join(lab.directory, 'home', 'small')
    const own = labQueue(lab, hostsFile, { XDG_STATE_HOME: home })
    const here = async (command: string) => await lab.run(['sh', '-c', command])
    await here(`mkdir ${home} && mount -t tmpfs -o size=1m none ${home}`)
    const id = await own.submit('--on', 'm1', '--', 'while [ ! -e small ]; do sleep 0.1; done')
    const { seen, told, ended } = own.work()
    await seen(isJob(id, 'running'))
    await here(`head -c 2000000 /dev/zero >${home}/fill`)
    const refused = await own.job('submit', '--env', `LONG=${'x'.repeat(50_000)}`, '--', 'true')
    expect([refused.code, refused.stderr]).toEqual([
      3,
      expect.stringContaining('Its disk is full, and nothing was stored'),
    ])
    await on('m1', 'touch small')
    await told('running jobs continue, and new ones start when there is room')
    await here(`rm ${home}/fill`)
    expect(await ended).toEqual([0, null])
    expect(await own.list()).toMatchObject([{ job: Number(id), state: 'done' }])
    await here(`mount -o remount,ro ${home}`)
    const closed = await own.job('submit', '--', 'true')
    expect([closed.code, closed.stderr]).toEqual([3, expect.stringContaining('owner and mode of its directory')])
    await own.stop()
    await here(`umount ${home}`)
  })

  it('of three schedulers one drives, another takes over when it is killed, and each job runs once', async () => {
    const gated = `${NOTED} [ $MUSTER_ARRAY_INDEX -le 75 ] || until [ -e gate ]; do sleep 0.1; done`
    const ids = idsOf(await queue.submit('--array', '1-150', '--', gated))
    const all = [1, 2, 3].map(() => queue.work())
    const done = async () =>
      (await queue.list()).filter((line) => line.job >= Number(ids[0]) && line.state === 'done').length
    const driver = async () => {
      const pid = / \(pid (\d+)\)$/m.exec((await queue.job('list', '--limit', '1')).stdout)?.[1]
      return all.find(({ child }) => child.signalCode === null && String(child.pid) === pid)
    }
    for (const doneBefore of [20, 75]) {
      await waitUntil(async () => (await done()) >= doneBefore, `${doneBefore} to be done`)
      await waitUntil(async () => (await driver()) !== undefined, 'one to drive')
      const killed = await driver()
      killed?.child.kill('SIGKILL')
      await killed?.ended
    }
    await onHosts('touch gate')
    const ends = await Promise.all(all.map(async ({ ended }) => await ended))
    expect(ends.filter(([code]) => code === 0)).toHaveLength(1)
    expect((await queue.list()).every(({ state }) => state !== 'queued' && state !== 'running')).toBe(true)
    const lines = (await onHosts('cat ran')).split('\n')
    expect(ids.filter((id) => lines.filter((line) => line.startsWith(`${id}.`)).join() !== `${id}.0.1`)).toEqual([])
  })
})

function idsOf(range: string): readonly string[] {
  const [first = 0, last = first] = range.split('-').map(Number)
  return Array.from({ length: last - first + 1 }, (_, index) => String(first + index))
}
