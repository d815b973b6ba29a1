/** The tabs about one hosts.yaml in a workspace of two: each keeps what it does, and acts only on the file that is shown. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Emitter } from '../../../../src/base/emitter.ts'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'
import type { WatchedHost } from '../../../../src/ops/net/watch/watch-hosts.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars, headerBars } from '../../../../src/ui/console/header.ts'
import type { WatchedResources } from '../../../../src/ui/network/watched-hosts.ts'
import type { RayPort } from '../../../../src/ui/ray/ray-view.ts'
import { watchedOfFile } from '../../../../src/ui/tabs/watched-of-file.ts'
import { areaOf } from '../../../../src/ui/work-views/panel.ts'
import { FakeBringUp, planOf, statusOf } from '../bring-up/fake-bring-up.ts'
import { createConsoleHarness } from '../console/console-harness.ts'
import { FakeQueue, hostSpecs, jobOf, statusOf as queueOf, runningOn } from '../jobs/fake-queue.ts'

const LEADER = '\x1d'

function fileOf(title: string, names: Readonly<Record<string, string>>, job: string) {
  const bringUp = new FakeBringUp()
  bringUp.columns = [{ name: 'trust', hosts: Object.keys(names) }]
  bringUp.statuses = Object.keys(names).map((host) => statusOf(host, 'missing', 0))
  const running = jobOf(1, runningOn('m1', 0), { name: job })
  const jobs = new FakeQueue([running], queueOf(hostSpecs(1), [running]))
  const groups = new Map([['all', Object.keys(names)]])
  return { file: { title, names: new Map(Object.entries(names)), inventory: { groups } }, bringUp, jobs }
}

function openTwo(columns = 120, rows = 40) {
  const a = fileOf('a', { m1: 'a/m1', m2: 'm2' }, 'train-of-a')
  const b = fileOf('b', { m1: 'b/m1' }, 'train-of-b')
  const hosts = ['a/m1', 'm2', 'b/m1']
  const harness = createConsoleHarness({ hosts, size: { columns, rows }, files: [a, b] })
  const { console } = harness
  const panes = () => console.page?.panes(areaOf(console.state), themes.none) ?? []
  const text = (): string =>
    panes()
      .flatMap(({ badges, notice }) => [badges, ...notice])
      .map((row) => row.map((span) => span.text).join(''))
      .join('\n')
  const bar = ({ left, right }: ReturnType<typeof headerBars>) => [...left, ...right].map((part) => part.text).join('')
  return {
    ...harness,
    a,
    b,
    text,
    header: () => bar(headerBars(console.state, themes.none, console.arrangement)),
    footer: () => bar(footerBars(console.state, themes.none)),
    notice: () => console.state.notice?.text,
    async press(keys: string) {
      harness.type(keys)
      await setImmediate()
    },
  }
}

describe('a workspace of two hosts.yaml', () => {
  it('names the key of the next file in the palette, past the dot in hosts.yaml', async () => {
    const { press, notice, console } = openTwo()
    await press(`${LEADER}:next file`)
    const { mode } = console.state
    const lines = mode.kind === 'dialog' ? mode.dialog.lines.map(({ text }) => text).join('\n') : ''
    expect(lines).toContain('in Bring-up: show the next hosts.yaml on the tabs')
    await press('\r')
    expect(notice()).toBe(']: Show the next hosts.yaml on the tabs Bring-up, Packing and Jobs, if several are open')
  })

  it.each([
    [80, 24],
    [240, 67],
  ])('names the file that a tab shows, and switches with ] and [, on %i×%i', async (columns, rows) => {
    const { press, header, footer, text } = openTwo(columns, rows)
    await press(`${LEADER}2`)
    expect(header()).toContain(' BRING-UP of a · hosts get no keys ')
    expect(footer()).toContain(' ] next file ')
    expect(text()).toMatch(/\]: \[a\] {3}b /)
    expect(text()).toMatch(/m1 +\+ missing[\s\S]*m2 +\+ missing/)
    await press(']')
    expect(header()).toContain(' BRING-UP of b · ')
    expect(text()).toMatch(/\]: {2}a {3}\[b\] /)
    expect(text()).not.toMatch(/m2 +\+ missing/)
    await press('5')
    expect(header()).toContain(' JOBS of b · ')
    expect(text()).toContain('train-of-b')
    expect(text()).not.toContain('train-of-a')
    await press('[')
    expect(text()).toContain('train-of-a')
    await press('[4')
    expect(header()).toContain(' PACKING of b · ')
    await press('6')
    expect(header()).toContain(' LOG · ')
  })

  it('does not have the keys where one hosts.yaml is open', async () => {
    const { type, console } = createConsoleHarness({ bringUp: new FakeBringUp() })
    type(`${LEADER}2]`)
    const { left } = footerBars(console.state, themes.none)
    expect(left.map((part) => part.text).join('')).not.toContain('next file')
    expect(console.state.files).toEqual({ titles: [], shown: 0, others: new Map() })
  })

  it('changes and cancels only what belongs to the file that is shown', async () => {
    const { press, a, b } = openTwo()
    await press(`${LEADER}5`)
    await press(']')
    await press('c')
    await press('y')
    expect(b.jobs.changes).toEqual([['cancel', [1]]])
    expect(a.jobs.changes).toEqual([])
    await press('2')
    await press('u')
    expect(b.bringUp.last.order.hosts).toEqual(['m1'])
    expect(a.bringUp.changes).toEqual([])
  })

  it('keeps a change running while another file is shown, reports its end, and names it when the console quits', async () => {
    const { press, a, text, notice, console } = openTwo()
    await press(`${LEADER}2`)
    await press('u')
    const { handlers, ended, order } = a.bringUp.last
    handlers.onPlan(planOf('m1'), false)
    const agreed = handlers.confirm(planOf('m1'))
    await press(']')
    expect(order.signal.aborted).toBe(false)
    // The plan waits for its own file: this key is for the other one.
    await press('y')
    await press('[')
    expect(text()).toContain('make a key')
    await press('y')
    expect(await agreed).toBe(true)
    handlers.onPhase?.('apply')
    await press(']')
    expect(Object.values(console.pages).flatMap(({ busy }) => busy)).toEqual([
      { title: 'bring-up of a', hosts: ['a/m1', 'm2'] },
    ])
    await press(`${LEADER}q`)
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Quit and end bring-up of a?' } })
    await press('\x1b')
    ended.resolve({ kind: 'done', statuses: [statusOf('m1', 'good', 0)] })
    await setImmediate()
    expect(notice()).toBe('a: bring up trust: done')
    expect(console.state.log.at(-1)).toMatchObject({ host: 'm[1-2]', text: 'a: bring up trust: done' })
    expect(text()).not.toContain('make a key')
    await press('[')
    await press('q')
    expect(text()).toMatch(/m1 +✓ good/)
  })

  it('reads only the queue that is shown', async () => {
    const { press, a, b, clock } = openTwo()
    await press(`${LEADER}5`)
    expect([a.jobs.reads, b.jobs.reads]).toEqual([1, 0])
    await press(']')
    for (let second = 0; second < 5; second++) {
      clock.advance(1000)
      await setImmediate()
    }
    expect(a.jobs.reads).toBe(1)
    expect(b.jobs.reads).toBeGreaterThan(4)
  })

  it('runs `ray …` on the file that is shown, and names it', async () => {
    const b = fileOf('b', { m1: 'b/m1' }, 'train')
    const orders: unknown[] = []
    const ray: RayPort = {
      cluster: async () => ({ head: 'm1', nodes: new Map([['10.0.0.1', 'm1']]) }),
      watch: async () => undefined,
      start: (order) => {
        orders.push(order)
        return { stop() {}, abandon() {}, pause() {}, resume() {} }
      },
    }
    const files = [fileOf('a', { m1: 'a/m1' }, 'train'), { ...b, ray }]
    const { type, console } = createConsoleHarness({ hosts: ['a/m1', 'b/m1'], files })
    await setImmediate()
    type(`${LEADER}y`)
    expect(console.state.notice?.text).toBe('no Ray cluster in a, or its head is not open')
    type(`${LEADER}5]${LEADER}yjobs`)
    expect(JSON.stringify(console.state.mode)).toContain('b: runs on m1')
    type('\r')
    expect(orders).toEqual([{ do: 'list' }])
    expect(console.work.busyHosts()).toEqual(['b/m1'])
  })
})

it('saves no group, and says that several files are open', () => {
  const { type, console } = openTwo()
  type(`${LEADER}w`)
  const { mode } = console.state
  expect(mode.kind === 'dialog' && mode.dialog.lines).toMatchObject([
    { text: 'several files are open: a group is saved in a console on one of them' },
  ])
})

it('watches all hosts of the console, and shows a file its own', () => {
  const changes = new Emitter<{ host: string; sample: Sample } | undefined>()
  const followed: (readonly string[])[] = []
  const hosts = ['a/m1', 'b/m1', 'm2'].map((host) => ({ host })) as unknown as readonly WatchedHost[]
  const all: WatchedResources = { changes, hosts, follow: (names) => void followed.push(names) }
  const { console } = createConsoleHarness({ hosts: ['a/m1', 'm2', 'b/m1'] })
  const own = watchedOfFile(all, console, fileOf('a', { m1: 'a/m1', m2: 'm2' }, 'train').file)
  const heard: unknown[] = []
  using _listening = own.changes.on((change) => heard.push(change?.host))
  for (const host of ['a/m1', 'b/m1', 'm2']) changes.emit({ host, sample: {} as Sample })
  changes.emit(undefined)
  expect(heard).toEqual(['m1', 'm2', undefined])
  expect(own.hosts.map(({ host }) => host)).toEqual(['m1', 'm2'])
  own.follow(['m1'])
  expect(followed).toEqual([['a/m1', 'm2', 'b/m1']])
})
