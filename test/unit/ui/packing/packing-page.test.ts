/** The Packing tab in a console on fakes: a gang that is only tried, what is really used, and Ray's picture. */

import { afterEach, describe, expect, it } from 'vitest'
import type { EngineUsage } from '../../../../src/scheduler/jobs/engine.ts'
import type { JobState } from '../../../../src/scheduler/jobs/job.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars } from '../../../../src/ui/console/header.ts'
import { chosenLine, LIST } from '../../../../src/ui/jobs/jobs-tables.ts'
import type { ClusterSource } from '../../../../src/ui/jobs/queue-view.ts'
import { type EnginePicture, enginePicture } from '../../../../src/ui/packing/engine-picture.ts'
import { exampleWhatIf, formatWhatIf, parseWhatIf } from '../../../../src/ui/packing/what-if.ts'
import { tableView } from '../../../../src/ui/state/console-state.ts'
import { areaOf } from '../../../../src/ui/work-views/panel.ts'
import type { WorkPort } from '../../../../src/ui/work-views/work-port.ts'
import { mouseBytes } from '../../../support/key-names.ts'
import { type ConsoleHarness, createConsoleHarness } from '../console/console-harness.ts'
import { FakeQueue, hostSpecs, jobOf, runningOn, STORE, statusOf } from '../jobs/fake-queue.ts'
import { fakeRay, nodeUsage, usageOf } from '../ray/fake-ray.ts'

const LEADER = '\x1d'
const stands: ConsoleHarness[] = []

const USAGE: EngineUsage = {
  nodes: [
    ...[
      { name: 'n1', cpuMilli: 4000, cpuUsedMilli: 2000, memoryBytes: 8e9, memoryUsedBytes: 1e9, gpus: 2, trouble: '' },
    ],
    ...[
      {
        name: 'n2',
        cpuMilli: 4000,
        cpuUsedMilli: 0,
        memoryBytes: 8e9,
        memoryUsedBytes: 0,
        gpus: 2,
        trouble: 'drained',
      },
    ],
  ],
  jobs: [
    {
      ...{ id: '7', name: 'one', user: 'ada', isOwn: true },
      shares: [{ node: 'n1', cpuMilli: 1000, memoryBytes: 1e9, devices: [1] }],
    },
    { id: '8', name: 'x', user: 'bob', isOwn: false, waits: 'no room', shares: [] },
  ],
}

class FakeCluster implements ClusterSource {
  readonly place: ClusterSource['place']
  watching = 0
  readonly #end = () => {
    this.watching -= 1
  }
  tell: ((picture: EnginePicture | string) => void) | undefined

  constructor(place: ClusterSource['place']) {
    this.place = place
  }

  watch(onPicture: (picture: EnginePicture | string) => void): Disposable {
    this.watching += 1
    this.tell = onPicture
    return { [Symbol.dispose]: () => this.#end() }
  }
}

/** Of 8 GPUs each; jobs of one GPU, of which some wait. */
function manyNodes(nodes: number, jobs: number): EngineUsage {
  const nodeOf = (index: number) => `node-${index % nodes}`
  return {
    nodes: Array.from({ length: nodes }, (_, index) => ({
      ...{ name: nodeOf(index), cpuMilli: 64_000, cpuUsedMilli: 8000, memoryBytes: 2 ** 38, memoryUsedBytes: 8e9 },
      ...{ gpus: 8, trouble: '' },
    })),
    jobs: Array.from({ length: jobs }, (_, index) => {
      const own = { id: `job-${index}`, name: 'train', user: 'bob', isOwn: false }
      const device = Math.floor(index / nodes)
      if (device >= 8) return { ...own, waits: 'no node has enough free GPUs', shares: [] }
      return { ...own, shares: [{ node: nodeOf(index), cpuMilli: 1000, memoryBytes: 1e9, devices: [device] }] }
    }),
  }
}

async function open(columns = 120, rows = 40, sources: readonly ClusterSource[] = [], work?: WorkPort) {
  const jobs = [jobOf(1, runningOn('m1', 0))]
  const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
  const queue = new FakeQueue(jobs, statusOf(specs, jobs))
  queue.sources = sources
  const ray = fakeRay()
  const harness = createConsoleHarness({
    hosts: ['m1', 'm2', 'm3'],
    jobs: queue,
    ray,
    size: { columns, rows },
    ...(work && { work }),
  })
  stands.push(harness)
  await settle()
  harness.type(`${LEADER}4`)
  await settle()
  return { harness, queue, ray }
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
const screen = ({ console }: ConsoleHarness): string =>
  console.pages.packing
    .panes(areaOf(console.state), themes.none)
    .flatMap((pane) => [pane.title, ...pane.notice].map((row) => row.map(({ text }) => text).join('')))
    .join('\n')

const hints = ({ console }: ConsoleHarness): string =>
  footerBars(console.state, themes.none)
    .left.map(({ text }) => text)
    .join('')

afterEach(() => {
  for (const { console } of stands.splice(0)) console[Symbol.dispose]()
})

it('counts down to the limit of a job in seconds, not in steps of ten', async () => {
  const { harness, queue } = await open()
  const startedMs = harness.clock.now()
  const job = jobOf(1, { ...runningOn('m1', 0), startedMs } as JobState, { limitS: 20 })
  const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
  queue.next = statusOf(specs, [job])
  harness.clock.advance(3_000)
  await settle()
  expect(screen(harness)).toContain('ends in 17 s')
  harness.clock.advance(4_000)
  await settle()
  expect(screen(harness)).toContain('ends in 13 s')
})

it('knows which hosts are away, and which have come back, while no scheduler runs', async () => {
  const { harness, queue } = await open()
  const withoutScheduler = (driver: string | undefined) => {
    queue.next = statusOf(
      hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` })),
      [],
      {
        down: { m3: 'no route' },
        driver,
      },
    )
  }
  const lost = { kind: 'lost', attempt: 1, reason: 'connection reset', sinceMs: 0 } as const
  withoutScheduler(undefined)
  for (const host of ['m1', 'm3']) harness.fleet.up(host)
  harness.fleet.events.emit({ type: 'session', host: 'm2', state: lost })
  harness.clock.advance(1000)
  await settle()
  expect(screen(harness)).toMatch(/^m1 ─+ m2 connection reset ─+ m3 ─/m)
  expect(screen(harness)).not.toContain('no route')
  // A host that is being connected again still counts as away, also in a what-if.
  const again = { kind: 'connecting', attempt: 2, phase: 'name', sinceMs: 0 } as const
  harness.fleet.events.emit({ type: 'session', host: 'm2', state: again })
  harness.clock.advance(1000)
  await settle()
  expect(screen(harness)).toMatch(/^m1 ─+ m2 connecting \(attempt 2\) ─+ m3 ─/m)
  expect(screen(harness)).toContain('2 on a host that is down')
  harness.type('w')
  harness.type('--gpu 1\r')
  await settle()
  expect(queue.away.at(-1)).toEqual(['m2'])
  harness.type('\x1b')
  withoutScheduler('ann on here')
  harness.clock.advance(1000)
  await settle()
  expect(screen(harness)).not.toContain('connection reset')
  expect(screen(harness)).toMatch(/ m3 no route ─/)
})

describe('the filter', () => {
  it.each([
    [80, 24],
    [240, 67],
  ])('selects hosts by name, job and user, says when none matches, and is cleared by Esc, on %i×%i', async (columns, rows) => {
    const { harness } = await open(columns, rows)
    harness.type('/m2')
    expect(screen(harness)).toMatch(/ packing {2}\/m2▏ {2}1 of 3 /)
    expect(screen(harness)).not.toMatch(/^m[13]\b/m)
    harness.type('\r')
    expect(screen(harness)).toContain('GPUs 0.5/6 held')
    expect(hints(harness)).toMatch(/Esc clear filter.*\/ filter/)
    harness.type('\x1b')
    expect(harness.console.state.queue.spot).toMatchObject({ host: 'm2' })
    expect(screen(harness)).toMatch(/^m1\b/m)
    harness.type('/\x15job:train-1')
    expect(screen(harness)).toMatch(/^m1\b/m)
    expect(screen(harness)).not.toMatch(/^m[23]\b/m)
    harness.type('!\x7fx')
    expect(screen(harness)).toContain('no host matches “job:train-1x” · Esc clears the filter')
    harness.type('\r')
    harness.type('jkG\x1b')
    expect(screen(harness)).not.toContain('train-1x')
    harness.type('G')
    expect(harness.console.state.queue.spot).toMatchObject({ host: 'm3' })
  })

  it.each([
    [80, 24],
    [120, 40],
  ])('is separate for the waiting jobs, on %i×%i', async (columns, rows) => {
    const { harness, queue } = await open(columns, rows)
    const jobs = [jobOf(1, runningOn('m1', 0)), ...[2, 3, 4, 5, 6, 7].map((id) => jobOf(id, { kind: 'queued' }))]
    const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
    queue.next = statusOf(specs, jobs)
    harness.clock.advance(1000)
    await settle()
    harness.type('\t/train-3\r')
    expect(screen(harness)).toMatch(/waiting: 6 {2}\/train-3 {2}1 of 6 /)
    expect(screen(harness)).toContain('3 train-3')
    expect(screen(harness)).not.toContain('2 train-2')
    expect(screen(harness)).toMatch(/\bm3 ─/)
    harness.type('\x1b')
    harness.clock.advance(100)
    expect(screen(harness)).toContain('2 train-2')
    expect(harness.console.state.queue.packingList).toBe('waiting')
  })
})

describe('the list of jobs', () => {
  it('is said to be none where no job runs or waits', async () => {
    const { harness, queue } = await open(80, 24)
    queue.next = statusOf(hostSpecs(3, 2), [])
    harness.clock.advance(1000)
    await settle()
    harness.type('\t')
    expect(harness.console.state.notice?.text).toBe('no job runs or waits here, so there are no lists')
    expect(harness.console.state.queue.packingList).toBeUndefined()
  })

  it.each([
    [80, 24],
    [240, 67],
  ])('has a selected row, whose block is shown and whose job is opened, on %i×%i', async (columns, rows) => {
    const { harness, queue } = await open(columns, rows)
    const jobs = [0, 1, 2].map((device) => jobOf(device + 1, runningOn(`m${device + 1}`, 0)))
    const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
    queue.next = statusOf(specs, jobs)
    harness.clock.advance(1000)
    await settle()
    expect(screen(harness)).not.toContain('▸')
    harness.type('\t')
    expect(screen(harness)).toMatch(/▸A 1 train-1/)
    harness.type('jj')
    expect(screen(harness)).toMatch(/▸C 3 train-3/)
    expect(harness.console.state.queue.spot).toEqual({ group: 0, host: 'm3', part: 0 })
    harness.type('I')
    expect(screen(harness)).toMatch(/▸C 3 train-3/)
    expect(screen(harness)).toContain('jobs reversed')
    harness.type('G')
    expect(screen(harness)).toMatch(/▸A 1 train-1/)
    harness.type('k\r')
    expect(harness.console.state).toMatchObject({ tab: 'jobs', queue: { spec: 2, member: 2 } })
  })
})

it('says in its title that its hosts are in the reversed order', async () => {
  const { harness, queue } = await open(80, 24)
  queue.next = statusOf(hostSpecs(3, 2), [])
  harness.clock.advance(1000)
  await settle()
  expect(screen(harness)).not.toContain('reversed')
  harness.type('I')
  expect(screen(harness)).toContain('packing reversed')
})

it('counts what a job holds on all hosts, also on those that the filter hides', async () => {
  const { harness, queue } = await open(160, 45)
  const places = ['m1', 'm2', 'm3'].map((host) => ({ host, devices: [0] }))
  const request = { cpuMilli: 1000, memoryBytes: 2 ** 30, gpuCount: 1, gpuMilli: 1000 }
  const state = { ...runningOn('m1', 0), places, bundles: places.map(() => ({ kind: 'begun' })) } as JobState
  const jobs = [jobOf(1, state, { request, bundles: 3 })]
  const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
  queue.next = statusOf(specs, jobs)
  harness.clock.advance(1000)
  await settle()
  expect(screen(harness)).toMatch(/1 train-1 +ann +3 /)
  harness.type('/m2\r')
  expect(screen(harness)).toMatch(/1 train-1 +ann +3 /)
})

describe('the waiting jobs', () => {
  it.each([
    [80, 24],
    [240, 67],
  ])('have a selected one, which is in view and is opened, also with a filter, on %i×%i', async (columns, rows) => {
    const { harness, queue } = await open(columns, rows)
    const jobs = [jobOf(1, runningOn('m1', 0)), ...[2, 3, 4, 5, 6, 7].map((id) => jobOf(id, { kind: 'queued' }))]
    const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
    const why = 'n1: needs 4 idle GPUs, 0 of 4 idle; '.repeat(6)
    const waiting = jobs
      .slice(1)
      .map((job) => ({ job, first: job.id, last: job.id, count: 1, why, expectedMs: undefined }))
    queue.next = statusOf(specs, jobs, { waiting })
    harness.clock.advance(1000)
    await settle()
    expect(screen(harness)).not.toContain('▸')
    harness.type('\t')
    expect(screen(harness)).toMatch(/▸\S 2 train-2/)
    for (let presses = 0; presses < 60 && !/▸\S 4 train-4/.test(screen(harness)); presses += 1) harness.type('j')
    expect(screen(harness)).toMatch(/▸\S 4 train-4/)
    harness.type('G')
    expect(screen(harness)).toMatch(/▸\S 7 train-7/)
    // At the last job, its end.
    harness.type('G')
    const end = harness.console.state.queue.listOffsets.waiting
    harness.type('\x1b[6~G')
    expect(harness.console.state.queue.listOffsets.waiting).toBe(end)
    harness.type('/train-3\r')
    expect(screen(harness)).toMatch(/▸\S 3 train-3/)
    const footer = footerBars(harness.console.state, themes.none)
    expect(footer.left.filter(({ press }) => press === 'Esc').map(({ text }) => text.trim())).toEqual([
      'Esc',
      'clear filter',
    ])
    harness.type('\x1b')
    expect(screen(harness)).toMatch(/▸\S 3 train-3/)
    harness.type('\r')
    expect(harness.console.state).toMatchObject({ tab: 'jobs', queue: { spec: 3, member: 3 } })
  })
})

describe('what if', () => {
  it('shows where a gang would go with other strategies, policies and one more bundle, and submits nothing', async () => {
    const { harness, queue } = await open()
    const figures = (shown: Parameters<typeof screen>[0]) => /GPUs .* cores \S+/.exec(screen(shown))?.[0]
    const before = figures(harness)
    queue.trial = { places: [{ host: 'm2', devices: [0, 1] }], why: [] }
    harness.type('w--gpu 2 --cpu 8\r')
    await settle()
    expect(screen(harness)).toContain('1 × (8 CPU + 2 GPU) PACK: + on m2')
    expect(screen(harness)).toMatch(/\+ what-if \++ \+ what-if \++/)
    // The figures are of what is.
    expect(figures(harness)).toBe(before)
    expect(screen(harness)).toMatch(/cpu \++·+ +8\/16/)
    queue.trial = { places: undefined, why: ['too few GPUs are free'] }
    harness.type('sp+')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ strategy: 'SPREAD', by: 'ray', bundles: 2 })
    expect(screen(harness)).toContain('2 × (8 CPU + 2 GPU) SPREAD: too few GPUs are free')
    harness.type('w')
    expect(screen(harness)).not.toContain('+')
    expect(queue.changes).toEqual([])
  })

  it.each([
    [80, 24],
    [120, 40],
  ])('names the jobs that would wait longer, or would have to end for it, on %i×%i', async (columns, rows) => {
    const { harness, queue } = await open(columns, rows)
    const [fromMs, toMs] = [harness.clock.now() + 240_000, harness.clock.now() + 1_800_000]
    queue.trial = {
      places: [{ host: 'm2', devices: [0] }],
      why: [],
      later: [
        { job: 7, name: 'pretrain', fromMs, toMs },
        { job: 8, name: 'eval', fromMs, toMs: undefined },
      ],
    }
    harness.type('w--gpu 1\r')
    await settle()
    expect(screen(harness).replace(/\s+/g, ' ')).toContain(
      'If it ran for an hour, these would start later: 7 pretrain (in 4 min → in 30 min), 8 eval (in 4 min → no known start)',
    )
    queue.trial = { places: undefined, why: ['too few GPUs are free'], victims: [{ job: 1, name: 'train-1' }] }
    harness.type('+')
    await settle()
    expect(screen(harness)).toContain('It would fit if these jobs ended: 1 train-1')
  })

  it('moves the marked slider with the arrow keys, in both directions', async () => {
    const { harness, queue } = await open(80, 24)
    queue.trial = { places: [{ host: 'm2', devices: [0] }], why: [] }
    harness.type('w--gpu 1 --bundles 2\r')
    await settle()
    expect(screen(harness)).toMatch(/strategy ●─── PACK .*▸policy ●─{9} muster .*bundles - \+ 2/)
    harness.type('\x1b[C\x1b[C')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ by: 'least-stranding' })
    expect(screen(harness)).toMatch(/▸policy ──●─{7} least-stranding/)
    harness.type('\x1b[D\x1b[D\x1b[D')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ by: 'random' })
    harness.type('\t\x1b[C\t\x1b[D')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ by: 'random', bundles: 3, strategy: 'STRICT_SPREAD' })
    expect(screen(harness)).toMatch(/▸strategy ───● STRICT_SPREAD.*bundles - \+ 3/)
  })

  it('names the keys of the sliders in the footer, also at 80×24', async () => {
    const { harness, queue } = await open(80, 24)
    queue.trial = { places: [{ host: 'm2', devices: [0] }], why: [] }
    harness.type('w--gpu 1\r')
    await settle()
    const { left } = footerBars(harness.console.state, themes.none)
    expect(left.map(({ text }) => text).join('')).toMatch(/ Right next option .*Tab next slider/)
  })

  it('moves sliders to where they are clicked', async () => {
    const { harness, queue } = await open(80, 24)
    queue.trial = { places: [{ host: 'm2', devices: [0] }], why: [] }
    harness.type('w--gpu 1 --bundles 2\r')
    await settle()
    const click = async (text: string, offset: number) => {
      // Draws what the mouse finds.
      harness.type('')
      const lines = harness.console.drawn.flatMap(({ notice, rect }) =>
        notice.map((spans, row) => ({ text: spans.map((span) => span.text).join(''), row: rect.row + 1 + row, rect })),
      )
      const line = lines.find((one) => one.text.includes(text))
      if (line === undefined) throw new Error(`${text} is not shown`)
      harness.type(mouseBytes('press', line.rect.column + 1 + line.text.indexOf(text) + offset, line.row))
      await settle()
    }
    await click('policy ●', 'policy '.length + 3)
    expect(queue.tried.at(-1)).toMatchObject({ by: 'fgd' })
    await click('strategy ●', 'strategy '.length + 1)
    expect(queue.tried.at(-1)).toMatchObject({ by: 'fgd', strategy: 'SPREAD' })
    await click('bundles - + 2', 'bundles - '.length)
    expect(queue.tried.at(-1)).toMatchObject({ bundles: 3 })
  })

  it('takes an example when nothing is typed, and later the last what-if', async () => {
    const { harness, queue } = await open()
    harness.type('w')
    expect(harness.console.state.mode).toMatchObject({
      dialog: { input: { text: '', placeholder: '--bundles 2 --cpu 1 --gpu 1 --strategy SPREAD' } },
    })
    harness.type('\r')
    await settle()
    expect(screen(harness)).toContain('2 × (1 CPU + 1 GPU) SPREAD')
    harness.type('+\x1b[Cw')
    expect(harness.console.state.queue.whatIf).toBeUndefined()
    harness.type('w\r')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ bundles: 3, by: 'ray', strategy: 'SPREAD' })
    harness.type('ww--cpu 2 --memory 512MiB\r')
    await settle()
    expect(queue.tried.at(-1)).toMatchObject({ bundles: 1, by: 'muster', request: { cpuMilli: 2000 } })
    expect(screen(harness)).toContain('1 × (2 CPU + 512MiB) PACK')
  })

  it('is asked for from the picture of another cluster, and shows all of them', async () => {
    const { harness } = await open()
    harness.type('yy')
    expect(harness.console.state.queue.picture).toBe('ray')
    harness.type('w--cpu 2\r')
    await settle()
    expect(harness.console.state.queue.picture).toBe('all')
    expect(screen(harness)).toContain('1 × (2 CPU) PACK')
  })

  it('divides what hosts lack for it', async () => {
    const { harness, queue } = await open()
    queue.tryOut = async () => ({
      places: undefined,
      why: ['Bundle 1 fits on no host:', 'm1,m2: needs 4 idle GPUs, 0 of 4 idle', 'm3: has no GPU'],
    })
    harness.type('w--gpu 4\r')
    await settle()
    expect(screen(harness).replace(/\s+/g, ' ')).toContain(
      'Bundle 1 fits on no host: m1,m2: needs 4 idle GPUs, 0 of 4 idle; m3: has no GPU',
    )
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
    const { harness } = await open(160)
    expect(hints(harness)).toMatch(/Right select .*w what-if +y next cluster *$/)
    harness.type('w\r')
    await settle()
    expect(hints(harness)).toMatch(/Right next option .*w clear what-if/)
    expect(hints(harness).match(/Tab/g)).toHaveLength(1)
    expect(hints(harness)).not.toMatch(/Right select/)
    harness.type('w')
    expect(hints(harness)).toMatch(/Right select .*Tab job lists/)
  })

  it.each([
    ["--gpu '1", 'unclosed quotation mark'],
    ['--gpu 1.5', '--gpu 1.5: more than one GPU must be a whole number'],
    ['--bundles 0', '--bundles must be 1 to 1000'],
    ['--memory much', '--memory must be a size like 16GiB'],
    ['--strategy ANY', '--strategy must be one of PACK, SPREAD, STRICT_PACK, STRICT_SPREAD'],
    ['--on m1', '--on is not an option; a request looks like --bundles 2 --gpu 4'],
    ['2 x (4 gpu)', '2 is not an option; a request looks like --bundles 2 --gpu 4'],
    ['--cpu', '--cpu needs a value'],
  ])('says what is wrong with “%s”', (text, wrong) => {
    expect(parseWhatIf(text)).toBe(wrong)
  })
})

describe('the selected block', () => {
  it('follows arrows and clicks, and Enter shows its job', async () => {
    const { harness } = await open()
    const title = () => /m\d (GPU \d|cores|memory)/.exec(screen(harness))?.[0]
    expect(title()).toBe('m1 GPU 0')
    harness.type('\x1b[C')
    expect(title()).toBe('m1 GPU 1')
    harness.type('h\x1b[A')
    expect(title()).toBe('m1 memory')
    const { packing } = harness.console.pages
    const rows = packing.panes(areaOf(harness.console.state), themes.none)[0]?.notice ?? []
    const row = rows.findIndex((spans) => spans.some(({ text }) => text.startsWith('A train-1')))
    // SGR: columns and rows count from 1, and the frame is around the rows.
    harness.type(`\x1b[<0;4;${areaOf(harness.console.state).row + row + 2}M`)
    expect(title()).toBe('m1 GPU 0')
    harness.type('\r')
    expect(harness.console.state.tab).toBe('jobs')
    expect(hints(harness)).toMatch(/^ JOBS +Esc Packing /)
    // Esc goes back to where the row led from, once.
    harness.type('\x1b')
    expect(harness.console.state.tab).toBe('packing')
    harness.type('\x1b')
    expect(harness.console.state.tab).toBe('packing')
    expect(harness.console.state.queue.spec).toBe(1)
  })

  it('shows its job whatever was filtered or open in the tab Jobs', async () => {
    const { harness, queue } = await open()
    const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
    const jobs = [jobOf(1, runningOn('m1', 0)), ...[2, 3, 4].map((id) => jobOf(id, { kind: 'queued' }))]
    queue.next = statusOf(specs, jobs, { arrays: { 2: 3 } })
    harness.clock.advance(1000)
    await settle()
    const inJobs = async (keys: string) => {
      harness.type(`${LEADER}5`)
      await settle()
      harness.type(keys)
      await settle()
      return chosenLine(harness.console.state)?.first
    }
    const opened = () => {
      harness.type(`${LEADER}4g\r`)
      const { state } = harness.console
      return [state.tab, state.queue.isTableOpen, chosenLine(state)?.first]
    }
    expect(await inJobs('>/train-2\r')).toBe(2)
    expect(opened()).toEqual(['jobs', false, 1])
    // The order that the user chose stays.
    expect(tableView(harness.console.state, LIST)).toMatchObject({ filter: { text: '' }, sort: expect.any(String) })
    expect(await inJobs('/train-2\r')).toBe(2)
    harness.type('\r')
    await settle()
    expect(harness.console.state.queue.isTableOpen).toBe(true)
    expect(opened()).toEqual(['jobs', false, 1])
  })

  it('moves to the first and the last block with g and G', async () => {
    const { harness } = await open()
    harness.type('G')
    expect(harness.console.state.queue.spot).toMatchObject({ host: 'm3' })
    harness.type('g')
    expect(harness.console.state.queue.spot).toMatchObject({ host: 'm1' })
  })

  it('is that of the job that a filter of the jobs leaves', async () => {
    const { harness, queue } = await open(160, 45)
    const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
    queue.next = statusOf(specs, [jobOf(1, runningOn('m1', 0)), jobOf(2, runningOn('m3', 1))])
    harness.clock.advance(1000)
    await settle()
    harness.type('\t/train-2\r')
    expect(harness.console.state.queue.spot).toEqual({ group: 0, host: 'm3', part: 1 })
    harness.type('\x1b')
    expect(harness.console.state.queue.packingJob?.job).toBe(2)
  })

  it('stays when the queue changes, and waiting jobs scroll with Tab', async () => {
    const { harness, queue } = await open(80, 24)
    const jobs = [jobOf(1, runningOn('m1', 0)), ...[2, 3, 4, 5].map((id) => jobOf(id, { kind: 'queued' }))]
    const specs = hostSpecs(3, 2).map((host, index) => ({ ...host, name: `m${index + 1}` }))
    harness.type('\x1b[C')
    queue.next = statusOf(specs, jobs)
    harness.clock.advance(1000)
    await settle()
    expect(screen(harness)).toContain('m1 GPU 1')
    expect(screen(harness)).toContain('2 train-2')
    expect(screen(harness)).not.toContain('5 train-5')
    harness.type('\tjjjjjjjj')
    expect(screen(harness)).toContain('5 train-5')
    expect(hints(harness)).toContain('Esc hosts')
    harness.type('\x1b')
    harness.clock.advance(100)
    expect(harness.console.state.queue.packingList).toBe(undefined)
    expect(harness.console.state.tab).toBe('packing')
  })

  it('gives users colours with a key', async () => {
    const { harness } = await open()
    const styles = () =>
      harness.console.pages.packing
        .panes(areaOf(harness.console.state), themes.dark)
        .flatMap(({ notice }) => notice.flat())
        .filter(({ text }) => text.startsWith('A train-1'))
        .map(({ style }) => style.background)
    const before = styles()
    harness.type('u')
    expect(harness.console.state.queue.isByUser).toBe(true)
    harness.type('\x1b[C')
    const byUser = styles()
    harness.type('u')
    expect(byUser).not.toEqual(styles())
    expect(before.length).toBeGreaterThan(0)
  })

  it('draws nothing again while nothing has changed', async () => {
    const { harness } = await open()
    const draw = () => harness.console.pages.packing.panes(areaOf(harness.console.state), themes.none)
    const first = draw()
    expect(draw()).toBe(first)
    harness.type('\x1b[C')
    expect(draw()).not.toBe(first)
  })
})

describe('the current placement', () => {
  it('is shown in the titles of boxes, in the part of Ray as Ray has it while hosts are not sampled', async () => {
    const { harness, ray } = await open()
    expect(screen(harness)).not.toContain('uses')
    const memory = { used: 12 * 2 ** 30, total: 64 * 2 ** 30 }
    const nodes = [nodeUsage('10.9.0.1', { cpuPercent: 34, memory }), nodeUsage('10.9.0.2')]
    ray.watches[0]?.options.onUsage(usageOf({ nodes }), '')
    const [ownHosts = '', ofRay = ''] = screen(harness).split('── Ray')
    // Ray's head is not believed about hosts as they are outside of Ray.
    expect(ownHosts).not.toContain('uses')
    expect(ofRay).toContain('m1 · uses 34 % cpu, 12G')
  })

  it('is sampled from the first opening of the tab on, also for nodes of a cluster with a name or an address of a host', async () => {
    const started = new Map<string, Parameters<WorkPort['startCommand']>[2]>()
    const work: WorkPort = {
      startCommand(host, _command, handlers) {
        started.set(host, handlers)
        return { stop() {}, abandon() {}, pause() {}, resume() {} }
      },
      copy: async () => undefined,
      saveOutput: async () => '',
      fanOut: 64,
      spillDirectory: '',
    }
    const slurm = new FakeCluster('@slurm')
    const { harness, queue } = await open(120, 40, [slurm], work)
    const [silent] = hostSpecs(1, 0).map((host) => ({ ...host, name: 'm1', cpuMilli: 0, memoryBytes: 0 }))
    queue.next = silent && statusOf([{ ...silent, unknown: ['cores', 'memory'] }], [])
    harness.clock.advance(2000)
    await settle()
    expect(screen(harness)).toContain('cores -')
    expect([...started.keys()]).toEqual(['m1', 'm2', 'm3'])
    const second = (up: number, busy: number) =>
      `${up}.00 1.00\ncpu  ${busy} 0 0 ${up * 100} 0 0 0 0\ncores 2\nMemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n=\n`
    const gpus = [90, 60].map((busy, index) => `nvidia ${index}, u${index}, A100, ${busy}, 1, 2, 61, 310\n`).join('')
    for (const host of ['m1', 'm2']) started.get(host)?.onStdout(Buffer.from(gpus + second(1, 0) + second(2, 100)))
    harness.clock.advance(2000)
    await settle()
    expect(screen(harness)).toContain('m1 · uses 50 % cpu, 4G, 75 % gpu')
    // What no scheduler has asked yet is in the samples.
    expect(screen(harness)).toContain('cores 0/2')
    expect(screen(harness)).toMatch(/mem [· ]+ 0\/8G/)
    harness.type('yyy')
    const [node] = USAGE.nodes
    const names = ['m1', '10.9.0.2', 'elsewhere']
    const nodes = names.flatMap((name) => (node ? [{ ...node, name }] : []))
    slurm.tell?.(enginePicture({ nodes, jobs: [] }, 'Slurm', () => undefined))
    expect(screen(harness)).toContain('10.9.0.2 · uses 50 % cpu, 4G, 75 % gpu')
    expect(screen(harness)).toContain('m1 · uses 50 % cpu, 4G, 75 % gpu')
    expect(screen(harness)).toMatch(/elsewhere ─/)
  })

  it('selects each waiting job of an engine, also those that are not of the queue', async () => {
    const slurm = new FakeCluster('@slurm')
    const { harness } = await open(80, 24, [slurm])
    harness.type('yyy')
    const jobs = Array.from({ length: 9 }, (_, index) => {
      return { id: `${index + 20}`, name: 'wrap', user: 'bob', isOwn: false, waits: 'no room', shares: [] }
    })
    slurm.tell?.(enginePicture({ ...USAGE, jobs }, 'Slurm', () => undefined))
    harness.type('\t')
    const selected = () => /▸\S* (\d+) of bob/.exec(screen(harness))?.[1]
    const seen = [selected()]
    for (let presses = 1; presses < 9; presses += 1) {
      harness.type('j')
      seen.push(selected())
    }
    expect(seen).toEqual(['20', '21', '22', '23', '24', '25', '26', '27', '28'])
    harness.type('gG')
    expect(selected()).toBe('28')
  })

  it('shows the cluster of an engine, on demand', async () => {
    const [slurm, other] = [new FakeCluster('@slurm'), new FakeCluster('@other')]
    const { harness, ray } = await open(120, 40, [slurm, other])
    ray.watches[0]?.options.onUsage(undefined, 'refused')
    expect(screen(harness)).toContain('y: [all]   own hosts    Ray    Slurm    Other')
    expect(hints(harness)).toContain('y next cluster')
    expect([slurm.watching, other.watching]).toEqual([1, 1])
    harness.type('y')
    expect([slurm.watching, other.watching]).toEqual([0, 0])
    harness.type('y')
    expect(screen(harness)).toContain('the head of Ray does not answer: refused')
    harness.type('y')
    expect(screen(harness)).toContain('[Slurm]')
    expect(screen(harness)).toContain('no answer yet')
    slurm.tell?.(enginePicture(USAGE, 'Slurm', (name) => (name === 'one' ? 1 : undefined)))
    const lines = screen(harness)
    expect(lines).toContain('packing of Slurm')
    expect(lines).toContain('GPUs 1/4  cores 2/8  of 2 nodes  1 down or drained')
    expect(lines).toMatch(/^ 1 of the queue\n+ A 1 train-1/m)
    expect(lines).toMatch(/· +A{4,}/)
    expect(lines).toContain('* 8 of bob: x  no room')
    expect(hints(harness)).not.toContain('more hosts')
    slurm.tell?.('wrong: x\u001b[2J')
    expect(screen(harness)).toContain('wrong: x\\x1b[2J')
    const late = slurm.tell
    harness.type('y')
    expect([slurm.watching, other.watching]).toEqual([0, 1])
    late?.('too late')
    expect(screen(harness)).toContain('no answer yet')
    harness.type(`${LEADER}1`)
    harness.clock.advance(1000)
    await settle()
    expect(other.watching).toBe(0)
    harness.type(`${LEADER}4`)
    await settle()
    expect(other.watching).toBe(1)
    harness.type('y')
    expect(screen(harness)).toContain('[all]')
    expect([slurm.watching, other.watching]).toEqual([1, 1])
    harness.type('y')
    expect(screen(harness)).toContain('[own hosts]')
    expect(other.watching).toBe(0)
  })

  it('keeps the last picture of a cluster that stops answering, with its time, also while another tab is shown', async () => {
    const slurm = new FakeCluster('@slurm')
    const { harness } = await open(120, 40, [slurm])
    slurm.tell?.(enginePicture(USAGE, 'Slurm', () => undefined))
    expect(screen(harness)).toMatch(/── Slurm +GPUs 1\/4 /)
    harness.type(`${LEADER}1`)
    harness.clock.advance(1000)
    await settle()
    expect(slurm.watching).toBe(0)
    harness.type(`${LEADER}4`)
    await settle()
    expect(screen(harness)).toMatch(/── Slurm +GPUs 1\/4 .* not up to date/)
    harness.type('yyy')
    expect(screen(harness)).toMatch(/not up to date, read at \d\d:\d\d: reading it again …/)
    slurm.tell?.('no API server answers')
    expect(screen(harness)).toMatch(/not up to date, read at \d\d:\d\d: no API server answers/)
    expect(screen(harness)).toContain('GPUs 1/4')
    slurm.tell?.(enginePicture({ ...USAGE, jobs: [] }, 'Slurm', () => undefined))
    expect(screen(harness)).toContain('GPUs 0/4')
    expect(screen(harness)).not.toContain('not up to date')
  })

  it('says that an engine has no nodes, what it may not read, and only what is held of nodes of unknown size', async () => {
    const slurm = new FakeCluster('@slurm')
    const { harness } = await open(80, 24, [slurm])
    harness.type('yyy')
    slurm.tell?.(enginePicture({ nodes: [], jobs: [] }, 'Slurm', () => undefined))
    expect(screen(harness)).toContain('Slurm has no nodes')
    const [node] = USAGE.nodes
    const blind = {
      ...USAGE,
      note: 'nodes may not be listed',
      nodes: node ? [{ ...node, isBlind: true as const }] : [],
    }
    slurm.tell?.(enginePicture(blind, 'Slurm', () => undefined))
    expect(screen(harness)).toContain('GPUs 1 held  cores 2 held  of 1 node')
    expect(screen(harness)).toContain('nodes may not be listed')
  })

  it('shows 50 nodes with 1,000 jobs on a small screen', async () => {
    const slurm = new FakeCluster('@slurm')
    const { harness } = await open(80, 24, [slurm])
    harness.type('yyy')
    slurm.tell?.(enginePicture(manyNodes(50, 1000), 'Slurm', () => undefined))
    expect(screen(harness)).toContain('GPUs 400/400  cores 400/3200  of 50 nodes')
    expect(screen(harness)).toContain('waiting: 600')
    expect(screen(harness)).toContain('node-0')
    harness.type('jjjjjjjjjjjjjjjjjjjjjjjjjjjjjj')
    expect(screen(harness)).toContain('node-49')
  })

  it('shows what Ray has placed, on demand', async () => {
    const { harness, ray } = await open()
    const bundles = [{ index: 0, resources: { CPU: 2 }, nodeId: 'id-10.9.0.1' }]
    const groups = [{ id: 'a', name: 'train', state: 'CREATED', scheduling: '', bundles }]
    const logical = new Map([['CPU', { used: 3, total: 4 }]])
    const nodes = [nodeUsage('10.9.0.1', { logical }), nodeUsage('10.9.0.2')]
    ray.watches[0]?.options.onUsage(usageOf({ nodes, groups }), '')
    expect(screen(harness)).toMatch(/── Ray +cores 3\/8/)
    harness.type('yy')
    expect(screen(harness)).toContain('packing of Ray')
    expect(screen(harness)).toMatch(/^cpu [B-Z] train [B-Z]+\*+· .* 3\/4$/m)
    harness.type(`${LEADER}1${LEADER}:ray watch\r`)
    expect(harness.console.state.tab).toBe('packing')
    ray.watches[0]?.options.onUsage(undefined, 'refused')
    expect(screen(harness)).toContain('the head of Ray does not answer: refused')
  })

  it('shows placement groups of jobs of the queue as these jobs, and opens them', async () => {
    const { harness, ray, queue } = await open()
    const gang = jobOf(7, runningOn('@ray'), { engine: 'ray', name: 'rgang' })
    queue.next = statusOf(hostSpecs(3, 2), [gang, jobOf(8, runningOn('@slurm'), { engine: 'slurm', name: 'sgang' })])
    harness.clock.advance(1000)
    await settle()
    const group = (name: string, ip: string) => {
      const bundles = [{ index: 0, resources: { CPU: 2 }, nodeId: `id-${ip}` }]
      return { id: name, name, state: 'CREATED', scheduling: '', bundles }
    }
    // Anybody may name a group after a job that Ray does not have.
    const groups = [
      group(`${STORE}-8-1-0`, '10.9.0.2'),
      group(`${STORE}-7-1-0`, '10.9.0.1'),
      group('cc11dd22-7-1-0', '10.9.0.3'),
    ]
    const logical = new Map([['CPU', { used: 3, total: 4 }]])
    const nodes = ['10.9.0.1', '10.9.0.2', '10.9.0.3'].map((ip) => nodeUsage(ip, { logical }))
    ray.watches[0]?.options.onUsage(usageOf({ nodes, groups }), '')
    harness.type('yy')
    expect(screen(harness)).toMatch(/^cpu G rgang G+\*+· /m)
    expect(screen(harness)).toMatch(/ G 7 rgang · ann · 2 cores/)
    expect(screen(harness)).toContain('* tasks and actors in no placement group: 1 core')
    const [, other = '', own = ''] = /(\w) aa00bb11-8-1-0 .*?(\w) cc11dd22-7-1-0 /.exec(screen(harness)) ?? []
    expect(new Set([other, own, 'G', ''])).toHaveLength(4)
    harness.type('\r')
    expect([harness.console.state.tab, harness.console.state.queue.spec]).toEqual(['jobs', 7])
  })

  it('has no lists of the own hosts where only an engine has jobs, whatever the size', async () => {
    const { harness, queue } = await open(240, 67, [new FakeCluster('@slurm')])
    queue.next = statusOf(hostSpecs(3, 2), [jobOf(1, runningOn('@slurm'), { engine: 'slurm' })])
    harness.clock.advance(1000)
    await settle()
    harness.type('y')
    expect(screen(harness)).toContain('[own hosts]')
    harness.type('\t')
    expect(harness.console.state.notice?.text).toBe('no job runs or waits here, so there are no lists')
  })

  it('opens the job of a block of an engine, and says which block has none', async () => {
    const slurm = new FakeCluster('@slurm')
    const { harness, queue } = await open(120, 40, [slurm])
    queue.next = statusOf(hostSpecs(3, 2), [jobOf(1, runningOn('@slurm'), { engine: 'slurm' })])
    harness.clock.advance(1000)
    await settle()
    harness.type('yyy')
    slurm.tell?.(enginePicture(USAGE, 'Slurm', (name) => (name === 'one' ? 1 : undefined)))
    harness.type('\r')
    expect(harness.console.state.tab).toBe('packing')
    expect(harness.console.state.notice?.text).toBe('no job of the queue is selected')
    harness.type('\x1b[C\r')
    expect([harness.console.state.tab, harness.console.state.queue.spec]).toEqual(['jobs', 1])
  })
})
