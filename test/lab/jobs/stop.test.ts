/** A launched job leaves nothing running on hosts without cgroups, however it ends (with cgroups: limits.test.ts). */
import { appendFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid')

const WITHIN_MS = 15_000
const SLEEPS = 40
/** A session of its own, a daemon, one that ignores TERM, and many at once; then it waits. */
const SPREADS = `setsid sleep 7000 & (setsid sh -c "sleep 7000 &" &)
  (setsid sh -c 'trap "" TERM; sleep 7000; sleep 7000' &)
  i=3; while [ $i -lt ${SLEEPS} ]; do i=$((i + 1)); (setsid sleep 7000 &); done`
const THREE = ['--bundles', '3', '--strategy', 'STRICT_SPREAD', '--launch', 'alone'] as const
const NOTHING_LEFT = /processes: +nothing left on m1 m2 m3\n/

describe.skipIf(!canRun)('a launched job', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  const running = (name: string) =>
    lab
      .host(name)
      .processes()
      .filter(({ command }) => /^(sh -c .*)?sleep 7000/.test(command)).length
  const everywhere = (count: number) => lab.names.every((name) => running(name) === count)
  /** Shells that ignore TERM come on top of the sleeps. */
  const spread = async (seen: (pattern: RegExp) => Promise<void>, id: string) => {
    await seen(isJob(id, 'running'))
    await waitUntil(() => lab.names.every((name) => running(name) > SLEEPS), 'all processes')
  }
  const first = async (id: string, host: string, rank: number) =>
    (await lab.host(host).exec(`cut -d ' ' -f 1 .local/state/muster/jobs/*-${id}-1-${rank}-*/id`)).stdout.trim()

  beforeAll(async () => {
    lab = await startLab({ count: 3, sshConfig: ['Host *', '  ServerAliveInterval 1', '  ServerAliveCountMax 3'] })
    const file = hostsFileOf(lab, 'stop')
    appendFileSync(file, 'launchers: { alone: { ports: 0 } }\n')
    queue = labQueue(lab, file)
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it('leaves nothing when it is cancelled, and what belongs to another queue lives on', async () => {
    const id = await queue.submit(...THREE, '--', `${SPREADS}; trap "" TERM; sleep 7000`)
    const stranger = `MUSTER_JOB=${id} MUSTER_ATTEMPT=1 MUSTER_RANK=0 MUSTER_BUNDLE=00-${id}-1-0`
    await lab.host('m1').exec(`${stranger} setsid sleep 8000 >/dev/null 2>&1 </dev/null &`)
    const { seen, ended } = queue.work()
    await spread(seen, id)
    const sinceMs = Date.now()
    expect((await queue.job('cancel', id)).code).toBe(0)
    expect(await ended).toEqual([0, null])
    expect([everywhere(0), Date.now() - sinceMs < WITHIN_MS]).toEqual([true, true])
    expect(await queue.show(id)).toMatch(NOTHING_LEFT)
    const shown = JSON.parse((await queue.job('show', id, '--json')).stdout) as { state: object }
    expect(shown.state).toMatchObject({ bundles: new Array(3).fill({ left: { count: 0, processes: [] } }) })
    expect(
      lab
        .host('m1')
        .processes()
        .filter(({ command }) => command === 'sleep 8000'),
    ).toHaveLength(1)
    await lab.host('m1').exec('pkill -x -f "sleep 8000"')
  })

  it('leaves nothing when one bundle fails, the others are stopped, and the reason names it', async () => {
    const id = await queue.submit(
      ...THREE,
      '--',
      `${SPREADS}; [ $RANK = 1 ] || sleep 7000; until [ -e fail ]; do sleep 0.1; done; exit 3`,
    )
    const { seen, ended } = queue.work()
    await spread(seen, id)
    const sinceMs = Date.now()
    await lab.host('m2').exec('touch fail')
    await seen(isJob(id, 'failed'))
    expect([everywhere(0), Date.now() - sinceMs < WITHIN_MS]).toEqual([true, true])
    expect(await ended).toEqual([0, null])
    const shown = await queue.show(id)
    expect(shown).toMatch(/ended: .*, rank 1 on m2 failed first: exit 3/)
    expect(shown).toMatch(NOTHING_LEFT)
  })

  it('leaves nothing when the first process of a bundle is killed with -9', async () => {
    const id = await queue.submit(...THREE, '--', `${SPREADS}; sleep 7000`)
    const { seen, ended } = queue.work()
    await spread(seen, id)
    const pid = await first(id, 'm3', 2)
    const sinceMs = Date.now()
    await lab.host('m3').exec(`kill -KILL ${pid}`)
    await seen(isJob(id, 'lost'))
    expect([everywhere(0), Date.now() - sinceMs < WITHIN_MS]).toEqual([true, true])
    expect(await ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(NOTHING_LEFT)
  })

  it('leaves nothing when the scheduler is killed right after the cancel, and another carries on', async () => {
    const id = await queue.submit(...THREE, '--', `${SPREADS}; trap "" TERM; sleep 7000`)
    const { seen, child, ended } = queue.work()
    await spread(seen, id)
    expect((await queue.job('cancel', id)).code).toBe(0)
    await seen(isJob(id, 'ending'))
    child.kill('SIGKILL')
    await ended
    expect(await queue.work().ended).toEqual([0, null])
    expect(everywhere(0)).toBe(true)
    const shown = await queue.show(id)
    expect(shown).toMatch(/state: +cancelled/)
    expect(shown).toMatch(NOTHING_LEFT)
  })

  it('says which host could not look, because the job was given up there', async () => {
    const id = await queue.submit(...THREE, '--', 'sleep 7000')
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    await lab.host('m2').linkDown()
    const isDown = async () => /bundle 1: +m2: started, according to its last report: /.test(await queue.show(id))
    await waitUntil(isDown, 'the queue to miss m2')
    expect((await queue.job('cancel', '--forget', id)).code).toBe(0)
    expect(await ended).toEqual([0, null])
    await lab.host('m2').linkUp()
    const shown = await queue.show(id)
    expect(shown).toMatch(/processes: +nothing left on m1 m3\n/)
    expect(shown).toMatch(/processes: +could not check what is left on m2\n/)
    await lab.host('m2').exec('pkill -x -f "sleep 7000"')
  })
})
