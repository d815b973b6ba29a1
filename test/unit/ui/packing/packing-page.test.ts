/** The Packing tab in a console on fakes: a gang that is only tried, what is really used, and Ray's picture. */
import { afterEach, describe, expect, it } from 'vitest'
import { footerBars } from '../../../../src/ui/console/header.ts'
import { exampleWhatIf, formatWhatIf, parseWhatIf } from '../../../../src/ui/packing/what-if.ts'
import { themes } from '../../../../src/ui/theme/theme.ts'
import { areaOf } from '../../../../src/ui/work-views/panel.ts'
import { createStand, type Stand } from '../console/stand.ts'
import { FakeQueue, hostSpecs, jobOf, runningOn, statusOf } from '../jobs/fake-queue.ts'
import { fakeRay, nodeUsage, usageOf } from '../ray/fake-ray.ts'

const LEADER = '\x1d'
const stands: Stand[] = []

async function open(columns = 120, rows = 40) {
  const jobs = [jobOf(1, runningOn('m1', 0))]
  const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
  const queue = new FakeQueue(jobs, statusOf(specs, jobs))
  const ray = fakeRay()
  const stand = createStand({ hosts: ['m1', 'm2', 'm3'], jobs: queue, ray, size: { columns, rows } })
  stands.push(stand)
  await settle()
  stand.type(`${LEADER}4`)
  await settle()
  return { stand, queue, ray }
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
const screen = ({ console }: Stand): string =>
  console.pages.packing
    .panes(areaOf(console.state), themes.none)
    .flatMap((pane) => [pane.title, ...pane.notice].map((row) => row.map(({ text }) => text).join('')))
    .join('\n')

const hints = ({ console }: Stand): string =>
  footerBars(console.state, themes.none, console.options.keymap)
    .left.map(({ text }) => text)
    .join('')

afterEach(() => {
  for (const { console } of stands.splice(0)) console[Symbol.dispose]()
})

describe('what if', () => {
  it('shows where a gang would go with other strategies, policies and one more bundle, and submits nothing', async () => {
    const { stand, queue } = await open()
    queue.trial = { places: [{ host: 'm2', devices: [0, 1] }], why: [] }
    stand.type('w--gpu 2 --cpu 8\r')
    await settle()
    expect(screen(stand)).toContain('1 × (8 CPU + 2 GPU) PACK: + on m2')
    expect(screen(stand)).toMatch(/^\++ \++$/m)
    expect(screen(stand)).toMatch(/^cpu \++·+ +8\/16$/m)
    queue.trial = { places: undefined, why: ['too few GPUs are free'] }
    stand.type('sp+')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ strategy: 'SPREAD', by: 'ray', bundles: 2 })
    expect(screen(stand)).toContain('2 × (8 CPU + 2 GPU) SPREAD: too few GPUs are free')
    stand.type('w')
    expect(screen(stand)).not.toContain('+')
    expect(queue.changes).toEqual([])
  })

  it('moves the marked slider with the arrow keys, in both directions', async () => {
    const { stand, queue } = await open(80, 24)
    queue.trial = { places: [{ host: 'm2', devices: [0] }], why: [] }
    stand.type('w--gpu 1 --bundles 2\r')
    await settle()
    expect(screen(stand)).toMatch(/strategy ●─── PACK .*▸policy ●─{9} muster .*bundles 2/)
    stand.type('\x1b[C\x1b[C')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ by: 'least-stranding' })
    expect(screen(stand)).toMatch(/▸policy ──●─{7} least-stranding/)
    stand.type('\x1b[D\x1b[D\x1b[D')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ by: 'random' })
    stand.type('\t\x1b[C\t\x1b[D')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ by: 'random', bundles: 3, strategy: 'STRICT_SPREAD' })
    expect(screen(stand)).toMatch(/▸strategy ───● STRICT_SPREAD .*bundles 3/)
  })

  it('takes an example when nothing is typed, and later the last what-if', async () => {
    const { stand, queue } = await open()
    stand.type('w')
    expect(stand.console.state.mode).toMatchObject({
      dialog: { input: { text: '', placeholder: '--bundles 2 --cpu 1 --gpu 1 --strategy SPREAD' } },
    })
    stand.type('\r')
    await settle()
    expect(screen(stand)).toContain('2 × (1 CPU + 1 GPU) SPREAD')
    stand.type('+\x1b[Cw')
    expect(stand.console.state.queue.whatIf).toBeUndefined()
    stand.type('w\r')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ bundles: 3, by: 'ray', strategy: 'SPREAD' })
    stand.type('ww--cpu 2 --memory 512MiB\r')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ bundles: 1, by: 'muster', request: { cpuMilli: 2000 } })
    expect(screen(stand)).toContain('1 × (2 CPU + 512MiB) PACK')
  })

  it('asks for no GPU in its example when no host has one, and parses its own text', () => {
    const texts = [
      formatWhatIf(exampleWhatIf([])),
      '--bundles 3 --cpu 0.5 --gpu 0.25 --strategy PACK',
      '--bundles 1 --cpu 0 --gpu 8 --memory 1536MiB --strategy STRICT_SPREAD',
    ]
    expect(texts[0]).toBe('--bundles 2 --cpu 1 --strategy SPREAD')
    for (const text of texts) {
      const parsed = parseWhatIf(text)
      expect(typeof parsed === 'string' ? parsed : formatWhatIf(parsed)).toBe(text)
    }
  })

  it('shows only keys that apply now in the footer', async () => {
    const { stand, queue } = await open(160)
    expect(hints(stand)).toMatch(/Esc shells +w what-if *$/)
    stand.type('w\r')
    await settle()
    expect(hints(stand)).toMatch(/w clear what-if .*Right next option .*Tab next slider *$/)
    stand.type('w')
    const specs = hostSpecs(40, 2)
    queue.next = statusOf(specs, [])
    stand.clock.advance(1000)
    await settle()
    expect(hints(stand)).toMatch(/w what-if .*Down more hosts *$/)
  })

  it.each([
    ["--gpu '1", 'unclosed quotation mark'],
    ['--gpu 1.5', '--gpu must be below 1 or a whole number'],
    ['--bundles 0', '--bundles must be 1 to 1000'],
    ['--memory much', '--memory must be a size like 16GiB'],
    ['--strategy ANY', '--strategy must be one of PACK, SPREAD, STRICT_PACK, STRICT_SPREAD'],
    ['--on m1', 'options: --bundles, --cpu, --gpu, --memory and --strategy'],
    ['--cpu', '--cpu needs a value'],
  ])('says what is wrong with “%s”', (text, wrong) => {
    expect(parseWhatIf(text)).toBe(wrong)
  })
})

describe('the current placement', () => {
  it('is shown in the titles of boxes, from Ray while hosts are not sampled', async () => {
    const { stand, ray } = await open()
    expect(screen(stand)).not.toContain('uses')
    const memory = { used: 12 * 2 ** 30, total: 64 * 2 ** 30 }
    const nodes = [nodeUsage('10.9.0.1', { cpuPercent: 34, memory }), nodeUsage('10.9.0.2')]
    ray.watches[0]?.options.onUsage(usageOf({ nodes }), '')
    expect(screen(stand)).toContain('m1 · uses 34 % cpu, 12G')
  })

  it('shows what Ray has placed, on demand', async () => {
    const { stand, ray } = await open()
    const bundles = [{ index: 0, resources: { CPU: 2 }, nodeId: 'id-10.9.0.1' }]
    const groups = [{ id: 'a', name: 'train', state: 'CREATED', scheduling: '', bundles }]
    const logical = new Map([['CPU', { used: 3, total: 4 }]])
    const nodes = [nodeUsage('10.9.0.1', { logical }), nodeUsage('10.9.0.2')]
    ray.watches[0]?.options.onUsage(usageOf({ nodes, groups }), '')
    stand.type('y')
    expect(screen(stand)).toContain('packing of Ray')
    expect(screen(stand)).toMatch(/^cpu A+\*+·+ +3\/4$/m)
    stand.type(`${LEADER}1${LEADER}:ray watch\r`)
    expect(stand.console.state.tab).toBe('packing')
    ray.watches[0]?.options.onUsage(undefined, 'refused')
    expect(screen(stand)).toContain('GPUs')
  })
})
