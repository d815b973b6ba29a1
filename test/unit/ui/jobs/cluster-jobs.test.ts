/** The Jobs tab with all jobs of an engine's cluster. */
import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ClusterAction, ClusterJobDetails, EngineUsage } from '../../../../src/scheduler/jobs/engine.ts'
import { styleOf, themes } from '../../../../src/ui/compositor/scene.ts'
import type { ClusterSource } from '../../../../src/ui/jobs/queue-view.ts'
import type { EnginePicture } from '../../../../src/ui/packing/engine-picture.ts'
import { enginePicture } from '../../../../src/ui/packing/engine-picture.ts'
import { areaOf } from '../../../../src/ui/work-views/panel.ts'
import { jobOf } from './fake-queue.ts'
import { openQueueTab } from './open-tab.ts'

const share = (node: string, devices: readonly number[]) => ({ node, cpuMilli: 1000, memoryBytes: 1e9, devices })
const USAGE: EngineUsage = {
  nodes: [],
  jobs: [
    { id: '7', name: 'x\u001b[2J', user: 'bob', isOwn: false, shares: [share('n1', [0]), share('n2', [0, 1])] },
    { id: '8', name: 'big', user: 'eve', isOwn: false, waits: 'jobs of higher priority go first', shares: [] },
    { id: '9', name: 'one', user: 'ada', isOwn: true, waits: 'waiting for other jobs', startS: 3600, shares: [] },
  ],
}

async function openCluster(columns: number, rows: number, details?: ClusterSource['details']) {
  let tell: ((picture: EnginePicture | string) => void) | undefined
  let source: ClusterSource = {
    place: '@slurm',
    watch(onPicture) {
      tell = onPicture
      return {
        [Symbol.dispose]() {
          tell = undefined
        },
      }
    },
  }
  if (details !== undefined) source = { ...source, details }
  const tab = await openQueueTab('5', columns, rows, [jobOf(1, { kind: 'queued' })], {}, [], [source])
  await setImmediate()
  return { ...tab, tell: (picture: EnginePicture | string) => tell?.(picture), isWatched: () => tell !== undefined }
}

it.each([
  [80, 24],
  [240, 67],
])('lists everybody’s jobs with where they run or why they wait, on %i×%i', async (columns, rows) => {
  const { text, titles, hints, press, tell, isWatched } = await openCluster(columns, rows)
  expect(text()).toContain('y: [own queue]   Slurm')
  // A narrow footer has no room for it; the pane names the key.
  expect(hints()).toContain(columns > 80 ? 'y next cluster' : 'f states')
  await press('y')
  expect([isWatched(), titles()[0]?.trim()]).toEqual([true, 'jobs of Slurm'])
  expect(text()).toContain('no answer yet')
  tell('cannot reach c1')
  expect(text()).toContain('cannot reach c1')
  tell(enginePicture(USAGE, 'Slurm', () => 17))
  expect(text()).toContain('1 running, 2 waiting  * 2 other jobs')
  expect(text()).toMatch(/^▸Q job 17 +waiting +expected in \d+ min: waiting for other/m)
  expect(text()).toMatch(/^ \* 7 of bob: x\\x1b\[2J +running +n\[1-2\], 3 GPUs/m)
  expect(text()).toMatch(/^ \* 8 of eve: big +waiting +jobs of higher priority go first/m)
  expect(hints()).not.toMatch(/cancel|hold|states/)
  await press('j')
  expect(titles()[1]?.trim()).toBe('7 of bob')
  expect(text()).toMatch(/x\\x1b\[2J.*on n1, GPU 0.*on n2, GPU 0,1/s)
  await press('\x1b')
  expect([isWatched(), titles()[0]?.trim()]).toEqual([false, 'jobs'])
})

it('closes an open array, whose hidden rows its keys would act on', async () => {
  const { console, press, hints } = await openCluster(120, 40)
  console.change(({ queue }) => ({ queue: { ...queue, isTableOpen: true } }))
  await press('y')
  expect(console.state.queue).toMatchObject({ listed: '@slurm', isTableOpen: false })
  expect(hints()).not.toContain('log')
  await press('\r')
  expect(console.state.queue.isLogOpen).toBe(false)
})

it('draws other people’s jobs in grey', async () => {
  const { console, press, tell } = await openCluster(80, 24)
  await press('y')
  tell(enginePicture(USAGE, 'Slurm', () => 17))
  const panes = console.page?.panes(areaOf(console.state), themes.dark) ?? []
  const row = panes[0]?.notice.find((spans) => spans.some(({ text }) => text.includes('8 of eve')))
  expect(new Set(row?.map(({ style }) => style.foreground))).toEqual(new Set([styleOf(themes.dark.muted).foreground]))
})

it.each([
  [80, 24],
  [240, 67],
])('shows long names as far as there is room, on %i×%i', async (columns, rows) => {
  const { text, press, tell } = await openCluster(columns, rows)
  await press('y')
  const long = { id: 'foreign-notebook', name: 'foreign-notebook', user: 'team-with-name', isOwn: false, shares: [] }
  tell(enginePicture({ nodes: [], jobs: [{ ...long, waits: 'no room' }] }, 'K8s', () => undefined))
  expect(text()).toMatch(
    columns > 80
      ? /foreign-notebook of team-with-name +waiting +no room/
      : /foreign-notebook of team-.*… +waiting +no room/,
  )
})

it('names the cluster beside the number of a job, and goes to a job of the queue with Enter', async () => {
  const { console, text, hints, press, tell } = await openCluster(120, 40)
  await press('/nowhere\r')
  await press('y')
  tell(enginePicture(USAGE, 'Slurm', () => 1))
  expect(text()).toContain('waiting  9 in Slurm')
  expect(hints()).toContain('Enter in own queue')
  await press('j')
  expect(text()).toContain('running  7 in Slurm')
  expect(hints()).not.toContain('Enter')
  await press('k\r')
  expect([console.state.queue.listed, console.state.queue.spec]).toEqual(['queue', 1])
  expect(text()).toMatch(/^▸1 +queued/m)
})

it('changes no job of the queue while a cluster is listed', async () => {
  const { press, tell, queue, text } = await openCluster(80, 24)
  await press('y')
  tell(enginePicture(USAGE, 'Slurm', () => 17))
  await press('cy')
  await press('hrt\rGlb f/')
  expect([queue.changes, text().includes('jobs of')]).toEqual([[], false])
})

describe('more about the selected job', () => {
  const readings: string[] = []
  const acts: ClusterAction[] = []
  let refusal: string | undefined
  const detailsOf = (title: string, actions: readonly ClusterAction[]): ClusterJobDetails => ({
    title,
    because: ['it runs on n1'],
    events: [{ atMs: 0, text: 'Scheduled: assigned to n1' }],
    actions,
    async act(action) {
      acts.push(action)
      return refusal
    },
  })
  const actionsOf: Readonly<Record<string, readonly ClusterAction[]>> = { '7': ['delete', 'suspend'], '8': [] }
  const open = async () => {
    const tab = await openCluster(160, 24, async ({ id, user }) => {
      readings.push(`${user}/${id}`)
      return detailsOf(`Job ${id} in ${user}`, actionsOf[id] ?? [])
    })
    await tab.press('y')
    tab.tell(enginePicture(USAGE, 'Kubernetes', () => 17))
    const settle = async () => {
      tab.clock.advance(200)
      await setImmediate()
    }
    return { ...tab, settle }
  }

  beforeEach(() => {
    readings.length = 0
    acts.length = 0
    refusal = undefined
  })

  it('is read when the selection has settled, and again later', async () => {
    const { press, settle, text, clock } = await open()
    await press('jj')
    expect(readings).toEqual([])
    await settle()
    expect([readings, text()]).toEqual([['eve/8'], expect.stringMatching(/it runs on n1.*Scheduled: assigned/s)])
    clock.advance(4000)
    await setImmediate()
    expect(readings).toEqual(['eve/8', 'eve/8'])
    await press('\x1b')
    clock.advance(10_000)
    await setImmediate()
    expect(readings).toHaveLength(2)
  })

  it('offers only what is allowed', async () => {
    const { press, settle, hints, console } = await open()
    await press('j')
    expect(hints()).not.toMatch(/delete|suspend|resume/)
    await settle()
    expect(hints()).toMatch(/d delete.*s suspend/)
    expect(hints()).not.toContain('resume')
    await press('j')
    expect(hints()).not.toMatch(/delete|suspend|resume/)
    await settle()
    expect(hints()).not.toMatch(/delete|suspend|resume/)
    await press('ds')
    expect([console.state.mode.kind, acts]).toEqual(['typing', []])
  })

  it('acts after a yes, and says what was refused', async () => {
    const { press, settle, console } = await open()
    await press('j')
    await settle()
    await press('d')
    expect(console.state.mode).toMatchObject({ kind: 'dialog', dialog: { title: 'Delete Job 7 in bob?' } })
    await press('\x1b')
    expect(acts).toEqual([])
    await press('s')
    await press('y')
    expect([acts, console.state.notice?.text]).toEqual([['suspend'], 'suspend: Job 7 in bob'])
    await settle()
    refusal = 'jobs.batch "7" is forbidden'
    await press('d')
    await press('y')
    expect(console.state.notice).toMatchObject({
      text: 'cannot delete Job 7 in bob: jobs.batch "7" is forbidden',
      tone: 'error',
    })
  })
})
