/** Ray in a console on fakes: what the header says of the cluster, and what is asked of its head. */
import { afterEach, describe, expect, it } from 'vitest'
import { headerBars } from '../../../../src/ui/console/header.ts'
import { themes } from '../../../../src/ui/theme/theme.ts'
import { createStand, type Stand } from '../console/stand.ts'
import { type FakeRay, fakeRay, nodeUsage, usageOf } from './fake-ray.ts'

const LEADER = '\x1d'
const stands: Stand[] = []

async function open(
  ray: FakeRay = fakeRay(),
  size = { columns: 120, rows: 40 },
): Promise<{ stand: Stand; ray: FakeRay }> {
  const stand = createStand({ hosts: ['m1', 'm2', 'm3'], ray, size })
  stands.push(stand)
  // The cluster is known a moment after the console is there.
  await settle()
  return { stand, ray }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

afterEach(() => {
  for (const { console } of stands.splice(0)) console[Symbol.dispose]()
})

const parts = ({ console }: Stand) => headerBars(console.state, themes.dark, console.arrangement).left
const header = (stand: Stand): string =>
  parts(stand)
    .map(({ text }) => text)
    .join('')
const notice = ({ console }: Stand): string | undefined => console.state.notice?.text
const panel = ({ console }: Stand): string =>
  (console.work.pane({ column: 0, row: 0, width: 90, height: 40 }, themes.dark)?.notice ?? [])
    .map((row) => row.map(({ text }) => text).join(''))
    .join('\n')

describe('the header', () => {
  it('shows no Ray when none is declared or its head is not open in the console', async () => {
    const none = { ...fakeRay(), cluster: async () => undefined }
    expect(header((await open(none)).stand)).not.toContain('ray')
    const away = { ...fakeRay(), cluster: async () => ({ head: 'm9', nodes: new Map([['10.9.0.9', 'm9']]) }) }
    const { stand, ray } = await open(away)
    expect(header(stand)).not.toContain('ray')
    expect(ray.watches).toEqual([])
  })

  it('shows living nodes and pending demands', async () => {
    const { stand, ray } = await open()
    expect(header(stand)).toContain(' ray ? ')
    const { onUsage } = ray.watches[0]?.options ?? {}
    onUsage?.(usageOf(), '')
    expect(header(stand)).toContain(' ray 3/3 ')
    const group = { id: 'g', name: '', state: 'PENDING', scheduling: 'NO_RESOURCES', bundles: [] }
    const demands = ["{'CPU': 3.0}: 6+ pending tasks/actors", "{'CPU': 8.0} * 2 (PACK): 1+ pending placement groups"]
    onUsage?.(usageOf({ groups: [group, { ...group, id: 'h', state: 'CREATED' }], demands }), '')
    expect(header(stand)).toContain(' ray 3/3 · 7 pending ')
  })

  it('reports a node that died, and one that came back', async () => {
    const { stand, ray } = await open()
    const { onUsage } = ray.watches[0]?.options ?? {}
    onUsage?.(usageOf(), '')
    onUsage?.(
      usageOf({ nodes: [nodeUsage('10.9.0.1'), nodeUsage('10.9.0.2', { isAlive: false }), nodeUsage('10.9.0.3')] }),
      '',
    )
    expect(header(stand)).toContain(' ray 2/3 ')
    expect(parts(stand).find(({ text }) => text.includes('ray'))?.colour).toBe(themes.dark.danger)
    expect(notice(stand)).toBe('Ray: m2 left the cluster')
    onUsage?.(usageOf(), '')
    expect(stand.console.state.log.at(-1)?.text).toBe('Ray: 3 of 3 nodes are alive')
  })

  it('reports a head that does not answer once, and one that is silent', async () => {
    const { stand, ray } = await open()
    const { onUsage, onSilent } = ray.watches[0]?.options ?? {}
    onUsage?.(usageOf(), '')
    onUsage?.(undefined, 'Connection refused')
    onUsage?.(undefined, 'Connection refused')
    expect(header(stand)).toContain(' ray down ')
    const said = 'Ray: the head on m1 does not answer: Connection refused'
    expect(stand.console.state.log.filter(({ text }) => text === said)).toHaveLength(1)
    expect(notice(stand)).toBe(said)
    onUsage?.(usageOf(), '')
    expect(header(stand)).toContain(' ray 3/3 ')
    onSilent?.('it has sent nothing for 9 s')
    expect(header(stand)).toContain(' ray ? ')
    expect(notice(stand)).toBe('Ray: cannot reach m1: it has sent nothing for 9 s')
  })

  it('tries again after a while, and when the head is connected again', async () => {
    const { stand, ray } = await open()
    ray.watches[0]?.end('there is no python')
    await settle()
    expect(header(stand)).toContain(' ray ? ')
    stand.clock.advance(10_000)
    expect(ray.watches).toHaveLength(2)
    ray.watches[1]?.options.onUsage(usageOf(), '')
    const session = (kind: 'closed' | 'ready') =>
      stand.fleet.events.emit({
        type: 'session',
        host: 'm1',
        state: kind === 'ready' ? { kind, sinceMs: 0, attempt: 1 } : { kind },
      })
    session('closed')
    expect(ray.watches[1]?.options.signal.aborted).toBe(true)
    expect(header(stand)).toContain(' ray ? ')
    session('ready')
    await settle()
    expect(ray.watches).toHaveLength(3)
  })

  it('keeps the receivers visible on 80 columns', async () => {
    const { stand, ray } = await open(fakeRay(), { columns: 80, rows: 24 })
    ray.watches[0]?.options.onUsage(usageOf({ demands: ["{'CPU': 3.0}: 600+ pending tasks/actors"] }), '')
    expect(header(stand)).toMatch(/ 3\/3 up {2}ray 3\/3 · 600 pending {2}TYPING INTO ALL 3: m\[1-3\] $/)
  })
})

describe('ray … in the palette', () => {
  it('submits a job, shows its log, and keeps it running when the panel is closed', async () => {
    const { stand, ray } = await open()
    stand.type(`${LEADER}:ray submit --cpus 2 python train.py --lr 0.1\r`)
    expect(ray.orders).toHaveLength(1)
    const { order, handlers, ends } = ray.orders[0] ?? {}
    expect(order).toMatchObject({ do: 'submit', job: { entrypoint: 'python train.py --lr 0.1', cpus: 2 } })
    handlers?.onBegin()
    handlers?.onStdout(Buffer.from('epoch 1\nepoch 2\n'))
    stand.clock.advance(200)
    expect(panel(stand)).toContain(':ray submit python train.py --lr 0.1')
    expect(panel(stand)).toContain('epoch 2')
    stand.type('\x1b\x1b')
    expect(stand.console.state.panel).toBeUndefined()
    stand.type(`${LEADER}q`)
    expect(stand.quits()).toBe(1)
    expect(ends).toEqual([])
    stand.type(`${LEADER}o`)
    stand.type('c')
    expect(ends).toEqual(['stop'])
    handlers?.onEnd({ kind: 'exit', code: 3 })
    stand.clock.advance(200)
    expect(panel(stand)).toContain('1 host: 1 cancelled')
  })

  it('replaces the log of one job by that of another', async () => {
    const { stand, ray } = await open()
    stand.type(`${LEADER}:ray logs one\r`)
    stand.type(`${LEADER}ylogs two\r`)
    expect(ray.orders.map(({ ends }) => ends)).toEqual([['abandon'], []])
  })

  it('shows a plan for Ray only, and waits for an answer', async () => {
    const { stand } = await open()
    stand.type(`${LEADER}:ray up on m2\r`)
    await settle()
    await settle()
    expect(stand.console.state.tab).toBe('bring-up')
    expect(stand.console.state.bringUp.change?.order).toMatchObject({ direction: 'up', areas: ['ray'], hosts: ['m2'] })
  })

  it('says what is wrong before anything starts', async () => {
    const { stand, ray } = await open()
    stand.type(`${LEADER}:ray up on m7\r`)
    expect(stand.console.state.mode).toMatchObject({
      kind: 'dialog',
      dialog: { input: { error: expect.stringContaining('m7') } },
    })
    expect(ray.orders).toEqual([])
  })
})
