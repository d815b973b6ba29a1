/** Ray in a console on fakes: what the header says of the cluster, and what is asked of its head. */
import { afterEach, describe, expect, it } from 'vitest'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { headerBars } from '../../../../src/ui/console/header.ts'
import { type ConsoleHarness, createConsoleHarness } from '../console/console-harness.ts'
import { type FakeRay, fakeRay, nodeUsage, usageOf } from './fake-ray.ts'

const LEADER = '\x1d'
const stands: ConsoleHarness[] = []

async function open(
  ray: FakeRay = fakeRay(),
  size = { columns: 120, rows: 40 },
): Promise<{ harness: ConsoleHarness; ray: FakeRay }> {
  const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'], ray, size })
  stands.push(harness)
  // The cluster is known a moment after the console is there.
  await settle()
  return { harness, ray }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

afterEach(() => {
  for (const { console } of stands.splice(0)) console[Symbol.dispose]()
})

const parts = ({ console }: ConsoleHarness) => headerBars(console.state, themes.dark, console.arrangement).left
const header = (harness: ConsoleHarness): string =>
  parts(harness)
    .map(({ text }) => text)
    .join('')
const notice = ({ console }: ConsoleHarness): string | undefined => console.state.notice?.text
const panel = ({ console }: ConsoleHarness): string =>
  (console.work.pane({ column: 0, row: 0, width: 90, height: 40 }, themes.dark)?.notice ?? [])
    .map((row) => row.map(({ text }) => text).join(''))
    .join('\n')

describe('the header', () => {
  it('shows no Ray when none is declared or its head is not open in the console', async () => {
    const none = { ...fakeRay(), cluster: async () => undefined }
    expect(header((await open(none)).harness)).not.toContain('ray')
    const away = { ...fakeRay(), cluster: async () => ({ head: 'm9', nodes: new Map([['10.9.0.9', 'm9']]) }) }
    const { harness, ray } = await open(away)
    expect(header(harness)).not.toContain('ray')
    expect(ray.watches).toEqual([])
  })

  it('shows living nodes and pending demands', async () => {
    const { harness, ray } = await open()
    expect(header(harness)).toContain(' ray ? ')
    const { onUsage } = ray.watches[0]?.options ?? {}
    onUsage?.(usageOf(), '')
    expect(header(harness)).toContain(' ray 3/3 ')
    const group = { id: 'g', name: '', state: 'PENDING', scheduling: 'NO_RESOURCES', bundles: [] }
    const demands = ["{'CPU': 3.0}: 6+ pending tasks/actors", "{'CPU': 8.0} * 2 (PACK): 1+ pending placement groups"]
    onUsage?.(usageOf({ groups: [group, { ...group, id: 'h', state: 'CREATED' }], demands }), '')
    expect(header(harness)).toContain(' ray 3/3 · 7 pending ')
  })

  it('reports a node that died, and one that came back', async () => {
    const { harness, ray } = await open()
    const { onUsage } = ray.watches[0]?.options ?? {}
    onUsage?.(usageOf(), '')
    onUsage?.(
      usageOf({ nodes: [nodeUsage('10.9.0.1'), nodeUsage('10.9.0.2', { isAlive: false }), nodeUsage('10.9.0.3')] }),
      '',
    )
    expect(header(harness)).toContain(' ray 2/3 ')
    expect(parts(harness).find(({ text }) => text.includes('ray'))?.colour).toBe(themes.dark.danger)
    expect(notice(harness)).toBe('Ray: m2 left the cluster')
    onUsage?.(usageOf(), '')
    expect(harness.console.state.log.at(-1)?.text).toBe('Ray: 3 of 3 nodes are alive')
  })

  it('reports a head that does not answer once, and one that is silent', async () => {
    const { harness, ray } = await open()
    const { onUsage, onSilent } = ray.watches[0]?.options ?? {}
    onUsage?.(usageOf(), '')
    onUsage?.(undefined, 'Connection refused')
    onUsage?.(undefined, 'Connection refused')
    expect(header(harness)).toContain(' ray down ')
    const said = 'Ray: the head on m1 does not answer: Connection refused'
    expect(harness.console.state.log.filter(({ text }) => text === said)).toHaveLength(1)
    expect(notice(harness)).toBe(said)
    onUsage?.(usageOf(), '')
    expect(header(harness)).toContain(' ray 3/3 ')
    onSilent?.('it has sent nothing for 9 s')
    expect(header(harness)).toContain(' ray ? ')
    expect(notice(harness)).toBe('Ray: cannot reach m1: it has sent nothing for 9 s')
  })

  it('tries again after a while, and when the head is connected again', async () => {
    const { harness, ray } = await open()
    ray.watches[0]?.end('there is no python')
    await settle()
    expect(header(harness)).toContain(' ray ? ')
    harness.clock.advance(10_000)
    expect(ray.watches).toHaveLength(2)
    ray.watches[1]?.options.onUsage(usageOf(), '')
    const session = (kind: 'closed' | 'ready') =>
      harness.fleet.events.emit({
        type: 'session',
        host: 'm1',
        state: kind === 'ready' ? { kind, sinceMs: 0, attempt: 1 } : { kind },
      })
    session('closed')
    expect(ray.watches[1]?.options.signal.aborted).toBe(true)
    expect(header(harness)).toContain(' ray ? ')
    session('ready')
    await settle()
    expect(ray.watches).toHaveLength(3)
  })

  it('keeps the receivers visible on 80 columns', async () => {
    const { harness, ray } = await open(fakeRay(), { columns: 80, rows: 24 })
    ray.watches[0]?.options.onUsage(usageOf({ demands: ["{'CPU': 3.0}: 600+ pending tasks/actors"] }), '')
    expect(header(harness)).toMatch(/ 3\/3 up {2}ray 3\/3 · 600 pending {2}TYPING INTO ALL 3: m\[1-3\] $/)
  })
})

describe('ray … in the palette', () => {
  it('submits a job, shows its log, and keeps it running when the panel is closed', async () => {
    const { harness, ray } = await open()
    harness.type(`${LEADER}:ray submit --cpus 2 python train.py --lr 0.1\r`)
    expect(ray.orders).toHaveLength(1)
    const { order, handlers, ends } = ray.orders[0] ?? {}
    expect(order).toMatchObject({ do: 'submit', job: { entrypoint: 'python train.py --lr 0.1', cpus: 2 } })
    handlers?.onBegin()
    handlers?.onStdout(Buffer.from('epoch 1\nepoch 2\n'))
    harness.clock.advance(200)
    expect(panel(harness)).toContain(':ray submit --cpus 2 python train.py --lr 0.1')
    expect(panel(harness)).toContain('epoch 2')
    harness.type('x')
    expect(harness.console.state.panel).toBeUndefined()
    harness.type(`${LEADER}q`)
    expect(harness.quits()).toBe(1)
    expect(ends).toEqual([])
    harness.type(`${LEADER}o`)
    harness.type('c')
    harness.type('y')
    expect(ends).toEqual(['stop'])
    handlers?.onEnd({ kind: 'exit', code: 3 })
    harness.clock.advance(200)
    expect(panel(harness)).toContain('1 host: 1 cancelled')
  })

  it('replaces the log of one job by that of another', async () => {
    const { harness, ray } = await open()
    harness.type(`${LEADER}:ray logs one\r`)
    harness.type(`${LEADER}ylogs two\r`)
    expect(ray.orders.map(({ ends }) => ends)).toEqual([['abandon'], []])
  })

  it('shows a plan for Ray only, and waits for an answer', async () => {
    const { harness } = await open()
    harness.type(`${LEADER}:ray up on m2\r`)
    await settle()
    await settle()
    expect(harness.console.state.tab).toBe('bring-up')
    expect(harness.console.state.bringUp.change?.order).toMatchObject({
      direction: 'up',
      areas: ['ray'],
      hosts: ['m2'],
    })
  })

  it('says what is wrong before anything starts', async () => {
    const { harness, ray } = await open()
    harness.type(`${LEADER}:ray up on m7\r`)
    expect(harness.console.state.mode).toMatchObject({
      kind: 'dialog',
      dialog: { input: { error: expect.stringContaining('m7') } },
    })
    expect(ray.orders).toEqual([])
  })
})
