/** The Jobs tab with all jobs of an engine's cluster. */
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { EngineUsage } from '../../../../src/scheduler/jobs/engine.ts'
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

async function openCluster(columns: number, rows: number) {
  let tell: ((picture: EnginePicture | string) => void) | undefined
  const source: ClusterSource = {
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
  expect(hints()).toContain('y next cluster')
  await press('y')
  expect([isWatched(), titles()[0]?.trim()]).toEqual([true, 'jobs of Slurm'])
  expect(text()).toContain('no answer yet')
  tell('cannot reach c1')
  expect(text()).toContain('cannot reach c1')
  tell(enginePicture(USAGE, 'Slurm', () => 17))
  expect(text()).toContain('1 running, 2 waiting  * 2 of other people')
  expect(text()).toMatch(/^▸Q job 17 +waiting +expected .*: waiting for other jobs/m)
  expect(text()).toMatch(/^ \* 7 of bob +running +n\[1-2\], 3 GPUs/m)
  expect(text()).toMatch(/^ \* 8 of eve +waiting +jobs of higher priority go first/m)
  expect(hints()).not.toMatch(/cancel|hold|filter|search/)
  await press('j')
  expect(titles()[1]?.trim()).toBe('7 of bob')
  expect(text()).toMatch(/x\\x1b\[2J.*on n1, GPU 0.*on n2, GPU 0,1/s)
  await press('\x1b')
  expect([isWatched(), titles()[0]?.trim()]).toEqual([false, 'jobs'])
})

it('draws other people’s jobs in grey', async () => {
  const { console, press, tell } = await openCluster(80, 24)
  await press('y')
  tell(enginePicture(USAGE, 'Slurm', () => 17))
  const panes = console.page?.panes(areaOf(console.state), themes.dark) ?? []
  const row = panes[0]?.notice.find((spans) => spans.some(({ text }) => text.includes('8 of eve')))
  expect(new Set(row?.map(({ style }) => style.foreground))).toEqual(new Set([styleOf(themes.dark.muted).foreground]))
})

it('changes no job of the queue while a cluster is listed', async () => {
  const { press, tell, queue, text } = await openCluster(80, 24)
  await press('y')
  tell(enginePicture(USAGE, 'Slurm', () => 17))
  await press('cy')
  await press('hrt\rGlb f/')
  expect([queue.changes, text().includes('jobs of')]).toEqual([[], false])
})
