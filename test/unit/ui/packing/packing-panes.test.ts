import { describe, expect, it } from 'vitest'
import type { JobState } from '../../../../src/scheduler/jobs/job.ts'
import type { KnownHost } from '../../../../src/scheduler/jobs/packing.ts'
import { type PaneView, type Rect, themes } from '../../../../src/ui/compositor/scene.ts'
import { enginePicture } from '../../../../src/ui/packing/engine-picture.ts'
import type { PackingInput } from '../../../../src/ui/packing/packing-input.ts'
import { drawPacking } from '../../../../src/ui/packing/packing-panes.ts'
import { FIRST_TABLE_VIEW } from '../../../../src/ui/rows/table-view.ts'
import { hostSpecs, jobOf, runningOn, statusOf } from '../jobs/fake-queue.ts'

const theme = themes.none
const area = (columns: number, rows: number): Rect => ({ column: 0, row: 1, width: columns, height: rows - 2 })
const linesOf = ({ notice }: PaneView): string[] => notice.map((row) => row.map(({ text }) => text).join(''))
const packingPanes = (input: PackingInput): readonly PaneView[] => drawPacking(input).panes
const textOf = (panes: readonly PaneView[]): string => panes.flatMap(linesOf).join('\n')
const picture = (panes: readonly PaneView[]): string[] =>
  panes.filter(({ host }) => host === ' packing').flatMap(linesOf)
const titles = (panes: readonly PaneView[]): string[] =>
  panes.map(({ title }) =>
    title
      .map(({ text }) => text)
      .join('')
      .trim(),
  )

const inputOf = (status: PackingInput['status'], columns: number, rows: number, rest: Partial<PackingInput> = {}) => ({
  ...{ status, trouble: undefined, nowMs: 0, offset: 0, rect: area(columns, rows), theme },
  ...rest,
})

const jobs = [
  jobOf(1, runningOn('n1', 0)),
  jobOf(2, runningOn('n1', 0)),
  jobOf(3, runningOn('n2', 0, 1, 2, 3), {
    request: { cpuMilli: 16_000, memoryBytes: 2 ** 30, gpuCount: 4, gpuMilli: 1000 },
  }),
  jobOf(4, runningOn('n3', 1), {
    request: { cpuMilli: 16_000, memoryBytes: 2 ** 30, gpuCount: 1, gpuMilli: 300 },
  }),
  jobOf(5, { kind: 'queued' }),
  jobOf(6, { kind: 'queued' }),
]

describe('the picture of the Packing tab', () => {
  it('shows all of nine hosts on 80×24: cores, devices, letters, and the job of each letter', () => {
    const status = statusOf(hostSpecs(9), jobs)
    const panes = packingPanes(inputOf(status, 80, 24))
    const lines = picture(panes)
    for (const host of ['n1', 'n5', 'n9']) expect(lines.join('\n')).toMatch(new RegExp(`${host}\\b`))
    expect(lines.join('\n')).toMatch(/A+\S*B+/)
    expect(lines.join('\n')).toMatch(/C train-?[3…]|C tra…/)
    expect(textOf(panes)).toContain('GPUs 5.3/36 held, 27 free, 3.7 stranded (no core)  cores 40/144')
    expect(textOf(panes)).toMatch(/C 3 train-3.*D 4 train-4/)
    expect(textOf(panes)).toMatch(/E 5 train-5\s+n1: too few cores are free/)
    for (const { rect } of panes) expect(rect.row + rect.height).toBeLessThanOrEqual(23)
  })

  it('says how many cores are held beside the devices of a node that has one row, where there is room', () => {
    const node = { cpuMilli: 4000, memoryBytes: 8e9, memoryUsedBytes: 0, trouble: '' }
    const nodes = [4000, 0].map((cpuUsedMilli, at) => ({ name: `g${at}`, ...node, cpuUsedMilli, gpus: 2 }))
    const slurm = enginePicture({ nodes, jobs: [] }, 'Slurm', () => undefined)
    const shown: PackingInput['shown'] = [{ kind: 'queue' }, { kind: 'engine', place: '@slurm', picture: slurm }]
    const status = statusOf(hostSpecs(7, 0), [])
    const lines = (rows: number) => picture(packingPanes(inputOf(status, 80, rows, { shown })))
    const nodeLines = (rows: number) => lines(rows).filter((line) => /^g\d/.test(line))
    expect(nodeLines(23)).toEqual([expect.stringMatching(/^g0 .* 4\/4c$/), expect.stringMatching(/^g1 .* 0\/4c$/)])
    // Two beside each other.
    expect(nodeLines(18)).toEqual([expect.stringMatching(/^g0 +·+ ·+ g1 +·+ ·+$/)])
  })

  it.each([
    [3, 8, 240, 67],
    [60, 8, 120, 40],
    [64, 8, 240, 67],
    [6, 4, 80, 24],
  ])('fills the screen with %i hosts of %i devices on %i×%i', (count, gpus, columns, rows) => {
    const {
      panes,
      arrangement,
      area: inside,
      lastOffset,
    } = drawPacking(inputOf(statusOf(hostSpecs(count, gpus), jobs), columns, rows))
    expect(arrangement?.tiles).toHaveLength(count)
    expect(lastOffset).toBe(0)
    expect(arrangement?.rows).toBeGreaterThan(inside.height * 0.8)
    const cells = panes.reduce((sum, { rect }) => sum + rect.width * rect.height, 0)
    expect(cells).toBe(columns * (rows - 2))
    for (const pane of panes)
      for (const line of linesOf(pane)) expect(line.length).toBeLessThanOrEqual(pane.rect.width - 2)
  })

  it('has the name, the user and the end of a job in a block with room, and its use where it is known', () => {
    const long = jobOf(1, runningOn('n1', 0), { estimateS: 600 })
    const gpus = new Map([[0, { name: 'A100', busy: 0.97, usedBytes: 60 * 2 ** 30, totalBytes: 80 * 2 ** 30 }]])
    const used = new Map([['n1', { cpu: 0.5, memoryBytes: 0, gpus }]])
    const lines = picture(packingPanes(inputOf(statusOf(hostSpecs(1, 2), [long]), 120, 40, { used }))).join('\n')
    for (const word of [/A train-1 /, /97% 60\/80G/, /\bann\b/, /since \d\d:\d\d/, /ends in 10 min/])
      expect(lines).toMatch(word)
    expect(lines).toContain('GPU 1')
  })

  it('has the name of a host and what it really uses in its title, as far as there is room', () => {
    const titleOf = (name: string, columns: number) => {
      const hosts = hostSpecs(1).map((host) => ({ ...host, name }))
      const used = new Map([[name, { cpu: 0.344, memoryBytes: 12 * 2 ** 30, gpu: 0.911 }]])
      const lines = picture(packingPanes(inputOf(statusOf(hosts, []), columns, 24, { used })))
      return lines.find((line) => line.startsWith(name.slice(0, 6)))
    }
    expect(titleOf('n1', 80)).toMatch(/^n1 · uses 34 % cpu, 12G, 91 % gpu ─+$/)
    expect(titleOf('n1', 30)).toMatch(/^n1 · uses 34 % cpu, 12G ─*$/)
    expect(titleOf('n1', 23)).toMatch(/^n1 · uses 34 % cpu ─*$/)
    expect(titleOf('n1', 20)).toMatch(/^n1 · 34 % cpu ─*$/)
    expect(titleOf('ip-10-3-0.eu-west-1.compute.internal', 40)).toMatch(/^ip-10-3-0.*… · 34 % cpu/)
  })

  it('has a dash for unknown cores and memory of a host', () => {
    const [known, silent] = hostSpecs(2) as [KnownHost, KnownHost]
    const unknown = { ...silent, cpuMilli: 0, memoryBytes: 0, unknown: ['cores', 'memory'] as const }
    const shown = (hosts: readonly KnownHost[]) =>
      picture(packingPanes(inputOf(statusOf(hosts, []), 80, 24))).join('\n')
    expect(shown([known, unknown])).toMatch(/cpu ·+ +0\/16\b/)
    expect(shown([known, unknown])).toMatch(/cpu ·+ +-/)
    expect(shown([known, unknown])).toContain('GPUs 0/8 held, 8 free  cores 0/16')
    expect(shown([unknown])).toContain('GPUs 0/4 held, 4 free  cores -')
  })

  it('has cores and memory as bars with jobs for a host without GPUs', () => {
    const status = statusOf(hostSpecs(1, 0), [jobOf(1, runningOn('n1'))])
    const lines = picture(packingPanes(inputOf(status, 80, 24))).join('\n')
    expect(lines).toMatch(/^cpu A train-1 A+·.* 4\/16$/m)
    expect(lines).toMatch(/^mem A.* 8\/64G$/m)
  })

  it('scrolls when not even a row for each host fits, to the last host and no further', () => {
    const input = inputOf(statusOf(hostSpecs(300, 8), jobs), 80, 24)
    const { lastOffset } = drawPacking({ ...input, offset: 1000 })
    expect(lastOffset).toBeGreaterThan(0)
    expect(picture(packingPanes({ ...input, offset: lastOffset })).join('\n')).toContain('n300')
    expect(picture(packingPanes({ ...input, offset: 1000 })).join('\n')).toContain('n300')
    expect(picture(packingPanes(input)).join('\n')).toMatch(/\bn1\b/)
  })

  it('shows clusters below one another, each with its figures', () => {
    const status = statusOf(hostSpecs(2), jobs)
    const usage = {
      nodes: [
        {
          ...{ name: 'gpu7', cpuMilli: 4000, cpuUsedMilli: 1000, memoryBytes: 8e9, memoryUsedBytes: 1e9 },
          ...{ gpus: 2, trouble: '' },
        },
      ],
      jobs: [
        {
          ...{ id: '8', name: 'x', user: 'bob', isOwn: false },
          shares: [{ node: 'gpu7', cpuMilli: 1000, memoryBytes: 1e9, devices: [1] }],
        },
      ],
    }
    const shown: PackingInput['shown'] = [
      { kind: 'queue' },
      { kind: 'ray', picture: 'no answer yet …' },
      { kind: 'engine', place: '@slurm', picture: enginePicture(usage, 'Slurm', () => undefined) },
    ]
    const spot = { group: 2, host: 'gpu7', part: 1 } as const
    const panes = packingPanes(inputOf(status, 120, 40, { shown, spot }))
    const lines = picture(panes).join('\n')
    expect(lines).toMatch(/── own hosts +GPUs 5\/8 held/)
    expect(lines).toMatch(/── Ray +no answer yet/)
    expect(lines).toMatch(/── Slurm +GPUs 1\/2 {2}cores 1\/4 {2}of 1 node/)
    expect(titles(panes)).toContain('Slurm: gpu7 GPU 1')
    expect(textOf(panes)).toContain('* 8 of bob: x')
  })

  it('keeps few empty rows above several clusters, so that blocks have theirs', () => {
    const node = { cpuMilli: 4000, cpuUsedMilli: 0, memoryBytes: 8e9, memoryUsedBytes: 0, gpus: 4, trouble: '' }
    const nodes = ['m7', 'm8', 'm9', 'm10'].map((name) => ({ name, ...node }))
    const shown: PackingInput['shown'] = [
      { kind: 'queue' },
      { kind: 'engine', place: '@slurm', picture: enginePicture({ nodes, jobs: [] }, 'Slurm', () => undefined) },
    ]
    const lines = picture(packingPanes(inputOf(statusOf(hostSpecs(5), []), 120, 40, { shown })))
    expect(lines.filter((line) => line.trim() === '').length).toBeLessThanOrEqual(4)
    expect(lines.join('\n')).toMatch(/GPU 0/)
    const small = picture(packingPanes(inputOf(statusOf(hostSpecs(5), []), 80, 24, { shown })))
    expect(small.findIndex((line) => line.startsWith('── own hosts'))).toBeLessThanOrEqual(2)
  })

  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('marks nodes that take no jobs, which are never drawn as free, on %i×%i', (columns, rows) => {
    const node = { cpuMilli: 4000, cpuUsedMilli: 0, memoryBytes: 8e9, memoryUsedBytes: 0, gpus: 4, trouble: '' }
    const nodes = Array.from({ length: 8 }, (_, at) => ({
      ...node,
      name: `c${at}`,
      trouble: at === 1 ? 'drained' : '',
    }))
    const shown: PackingInput['shown'] = [
      { kind: 'queue' },
      { kind: 'engine', place: '@slurm', picture: enginePicture({ nodes, jobs: [] }, 'Slurm', () => undefined) },
    ]
    const text = picture(packingPanes(inputOf(statusOf(hostSpecs(8), []), columns, rows, { shown }))).join('\n')
    expect(text).toMatch(/c1(! +×{4}| drained ─)/)
    expect(text).not.toMatch(/c0(! | drained)/)
    expect(text).toContain('×')
  })

  it('says above the own hosts that no scheduler runs, beside another cluster on 80×24', () => {
    const shown: PackingInput['shown'] = [{ kind: 'queue' }, { kind: 'ray', picture: 'no answer' }]
    const own = { driver: undefined, command: (verb: string) => `muster ${verb} --hosts /a/long/path/to/hosts.yaml` }
    const lines = picture(packingPanes(inputOf(statusOf(hostSpecs(3), [], own), 80, 24, { shown })))
    expect(lines.find((line) => line.startsWith('── own hosts'))).toContain('  no scheduler running ─')
  })

  it('says of each cluster why there is nothing to draw, also if that is so of all', () => {
    const shown: PackingInput['shown'] = [
      { kind: 'queue' },
      { kind: 'ray', picture: 'no answer yet …' },
      { kind: 'engine', place: '@slurm', picture: 'sinfo: cannot connect' },
    ]
    const lines = picture(packingPanes(inputOf(statusOf([], []), 120, 40, { shown }))).join('\n')
    expect(lines).toMatch(/── own hosts +no hosts in hosts\.yaml/)
    expect(lines).toMatch(/── Ray +no answer yet/)
    expect(lines).toMatch(/── Slurm +sinfo: cannot connect/)
  })

  it.each([
    [80, 'GPUs 5.8/36, 23 free, 3.5 down, 3.7 stranded  cores 44/144'],
    [160, 'GPUs 5.8/36 held, 23 free, 3.5 on a host that is down, 3.7 stranded (no core)  cores 44/144'],
  ])('counts as free only whole devices that can be given away, on %i columns', (columns, figures) => {
    const more = [...jobs, jobOf(7, runningOn('n9', 2))]
    const status = statusOf(hostSpecs(9), more, { down: { n9: 'unreachable: no route' } })
    expect(textOf(packingPanes(inputOf(status, columns, 24)))).toContain(figures)
  })

  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('keeps each host in its place when jobs come and go, on %i×%i', (columns, rows) => {
    const many = Array.from({ length: 30 }, (_, index) =>
      jobOf(index + 1, runningOn(`n${(index % 6) + 1}`, index % 4), { name: `a long name of job ${index}` }),
    )
    const places = (own: typeof jobs, whatIf?: PackingInput['whatIf']) => {
      const scene = drawPacking(inputOf(statusOf(hostSpecs(6), own), columns, rows, whatIf ? { whatIf } : {}))
      return [scene.area, ...(scene.arrangement?.tiles.map(({ rect }) => rect) ?? [])]
    }
    for (const own of [many.slice(0, 1), many.slice(0, 5), many, [jobs[3] as (typeof jobs)[0]]])
      expect(places(own)).toEqual(places([]))
    const why = [`Bundle 0 fits on no host: ${'no core is free; '.repeat(20)}`]
    const gang = { bundles: 2, strategy: 'PACK', request: jobs[0]?.spec.request, by: 'ray', slider: 'bundles' }
    const asked = { gang: gang as never, trial: undefined }
    const answer = { places: undefined, why, victims: [{ job: 1, name: 'one' }] }
    expect(places(many, { ...asked, trial: answer })).toEqual(places(many, asked))
    // The heading of a what-if takes rows of the blocks, not the places of hosts beside each other.
    const across = (rects: ReturnType<typeof places>) => rects.map(({ column, width }) => [column, width])
    expect(across(places(many, asked))).toEqual(across(places(many)))
  })

  it.each([
    [80, 24],
    [120, 40],
  ])('says what would have to end for a what-if, and marks what is cut, on %i×%i', (columns, rows) => {
    const why = [`Bundle 0 fits on no host: ${'no core is free; '.repeat(80)}`]
    const gang = { bundles: 2, strategy: 'PACK', request: jobs[0]?.spec.request, by: 'ray', slider: 'bundles' }
    const victims = Array.from({ length: 20 }, (_, at) => ({ job: 100 + at, name: 'notebook' }))
    const whatIf = { gang: gang as never, trial: { places: undefined, why, victims } }
    const shown = picture(packingPanes(inputOf(statusOf(hostSpecs(6), jobs), columns, rows, { whatIf }))).map((line) =>
      line.trim(),
    )
    const at = shown.findIndex((line) => line.startsWith('It would fit if these jobs ended: 100 notebook, 101'))
    expect(shown[at - 1]).toMatch(/…$/)
    expect(shown.slice(at, at + 2).filter((line) => line.endsWith('…'))).toHaveLength(1)
  })

  it('says in all rows above the hosts why a what-if fits nowhere, on 80×24', () => {
    const reasons = Array.from(
      { length: 4 },
      (_, at) => `m${at}: needs 20 cores, 2 of 16 free; needs 300.0 GiB of memory, 56.0 of 128.0`,
    )
    const gang = { bundles: 2, strategy: 'PACK', request: jobs[0]?.spec.request, by: 'ray', slider: 'bundles' }
    const trial = { places: undefined, why: ['Bundle 1 fits on no host:', ...reasons] }
    const whatIf = { gang: gang as never, trial }
    const text = picture(packingPanes(inputOf(statusOf(hostSpecs(6), jobs), 80, 24, { whatIf }))).join(' ')
    expect(text.replace(/\s+/g, ' ')).toContain(`Bundle 1 fits on no host: ${reasons.join('; ')}`)
  })

  it('explains in a line why free GPUs cannot be used', () => {
    const fragmented = [
      jobOf(1, runningOn('n1', 0)),
      jobOf(2, runningOn('n2', 0), { request: { cpuMilli: 16_000, memoryBytes: 0, gpuCount: 1, gpuMilli: 1000 } }),
      jobOf(3, runningOn('n3', 0), { request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 1, gpuMilli: 1000 } }),
    ]
    const text = textOf(packingPanes(inputOf(statusOf(hostSpecs(3), fragmented), 160, 40))).replace(/\s+/g, ' ')
    expect(text).toContain(
      'fragmentation: 6 GPUs free, at most 3 on one host; 0.5 left on a shared GPU; 3 GPUs without a free core on n2',
    )
    expect(textOf(packingPanes(inputOf(statusOf(hostSpecs(3), []), 160, 40)))).not.toContain('fragmentation')
  })

  it('says which hosts have fewer GPUs than are declared, even if a job holds one that is not there', () => {
    const hosts = hostSpecs(2, 1).map((host) => ({ ...host, gpusDeclared: 11 }))
    const text = textOf(packingPanes(inputOf(statusOf(hosts, [jobOf(1, runningOn('n1', 5))]), 160, 40)))
    expect(text).toContain('n[1-2]: has 1 GPU, but 11 are declared')
    expect(text).toContain('train-1')
  })

  it('says which hosts of running jobs are no longer declared', () => {
    const status = statusOf(hostSpecs(2), [jobOf(1, runningOn('n1', 0)), jobOf(2, runningOn('n7', 0))])
    expect(textOf(packingPanes(inputOf(status, 80, 24)))).toContain('2 running (1 on n7, not in hosts.yaml), 0 waiting')
  })

  it('says that a host does not answer, that no scheduler is running, and that the queue cannot be read', () => {
    const status = statusOf(hostSpecs(2), [], { down: { n2: 'unreachable: no route' }, driver: undefined })
    const input = inputOf(status, 80, 24)
    expect(textOf(packingPanes(input))).toMatch(/1 host down +no scheduler running: muster job work/)
    expect(textOf(packingPanes(input))).toMatch(/n2 +unreachable: no route/)
    const changed = inputOf(statusOf(hostSpecs(2), [], { changed: 'n2' }), 120, 40)
    expect(textOf(packingPanes(changed))).toMatch(
      /waiting +hosts.yaml has changed for n2 since the scheduler started\. Run: /,
    )
    expect(textOf(packingPanes({ ...input, trouble: 'the file is damaged' }))).toContain('the file is damaged')
  })

  it('says that hosts.yaml has changed, even if there is little room beside the figures', () => {
    const second = (jobs: Parameters<typeof statusOf>[1], columns: number) => {
      const status = statusOf(hostSpecs(2), jobs, { changed: 'n[2,7]', down: { n2: 'unreachable' } })
      return textOf(packingPanes(inputOf(status, columns, 24))).split('\n')[1]
    }
    const gone = [jobOf(1, runningOn('n1', 0)), jobOf(2, runningOn('n7', 0))]
    expect(second([], 80)).toMatch(/^ 0 running, 0 waiting {2}1 host down {2}hosts.yaml has changed for n\[2,7\]$/)
    expect(second(gone, 80)).toMatch(
      /^ hosts.yaml has changed for n\[2,7\] · 2 running \(1 on n7, not in hosts.yaml\), …$/,
    )
    expect(second(gone, 160)).toMatch(
      /0 waiting {2}1 host down {2}hosts.yaml has changed for n\[2,7\] since the scheduler/,
    )
  })
})

describe('the selected block', () => {
  const chosen = (part: number | 'cores', rest: Partial<PackingInput> = {}) => {
    const status = statusOf(hostSpecs(3), [
      jobOf(1, runningOn('n1', 0), { limitS: 7200 }),
      jobOf(2, runningOn('n1', 0)),
    ])
    const panes = packingPanes(inputOf(status, 120, 40, { spot: { group: 0, host: 'n1', part }, ...rest }))
    const pane = panes.find(({ host }) => host === ' chosen')
    return `${pane?.title.map(({ text }) => text).join('')}\n${pane === undefined ? '' : linesOf(pane).join('\n')}`
  }

  it('says which job holds it, how much of it, since when and until when', () => {
    const text = chosen(0)
    expect(text).toContain('n1 GPU 0')
    expect(text).toMatch(/A 1 train-1 · ann · 0\.5 of it · since \d\d:\d\d/)
    expect(text.replace(/\s+/g, ' ')).toMatch(/ends (at|on) .*\(limit\)/)
    expect(text).toContain('B 2 train-2')
  })

  it('says how many cores a job has here, unless those are all that it has', () => {
    const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
    const onHosts = (...hosts: string[]) => {
      const state = { ...runningOn('n1'), places: hosts.map((host) => ({ host, devices: [] })) } as JobState
      const spec = { request, bundles: hosts.length }
      const status = statusOf(hostSpecs(3, 0), [jobOf(1, state, spec)])
      const panes = packingPanes(inputOf(status, 120, 40, { spot: { group: 0, host: 'n1', part: 'cores' } }))
      expect(textOf(panes)).not.toContain('GPUs 0/0')
      return linesOf(panes.find(({ host }) => host === ' chosen') as PaneView).join(' ')
    }
    expect(onHosts('n1')).toContain('train-1 · ann · 1 core on n1 · since')
    expect(onHosts('n1', 'n2', 'n2')).toContain('train-1 · ann · 1 core here · 3 cores on n[1-2] · since')
  })

  it('says what is free, and how busy it is', () => {
    expect(chosen(1)).toMatch(/^ free/m)
    const used = new Map([['n1', { cpu: 0.5, memoryBytes: 0, gpus: new Map([[1, { name: 'A100', busy: 0.04 }]]) }]])
    expect(chosen(1, { used })).toMatch(/n1 GPU 1 \(A100\)[\s\S]*free · 4% busy/)
    expect(chosen('cores', { used })).toMatch(/n1 cores[\s\S]*8 of 16 cores free · 50% busy/)
  })

  it('marks a GPU that no job holds but that is in use, and says by what', () => {
    const gpu = { name: 'A100', busy: 0.97, usedBytes: 9 * 2 ** 30, totalBytes: 80 * 2 ** 30, processes: [71, 72] }
    const drawn = (gpus: [number, typeof gpu][], columns = 120) => {
      const used = new Map([['n1', { cpu: 0, memoryBytes: 0, gpus: new Map(gpus) }]])
      return textOf(packingPanes(inputOf(statusOf(hostSpecs(1, 2), []), columns, 40, { used })))
    }
    const whole = drawn([[0, gpu]])
    expect(whole).toMatch(/GPUs 0\/2 held, 2 free \(1 used without a job\)/)
    expect(whole).toMatch(/GPU 0 used without a job ▒+/)
    expect(whole).toContain('97% 9/80G')
    expect(whole).toContain('no job holds it, but it is in use · 97% busy, 9 of 80 GiB in use · pids 71, 72')
    expect(drawn([[0, gpu]], 36)).toMatch(/2 free \(1 in use\)/)
    // The server of MPS has a little memory of each GPU; an idle program that has opened one has more.
    expect(drawn([[0, { ...gpu, busy: 0, usedBytes: 30 * 2 ** 20 }]])).not.toContain('without a job')
    expect(drawn([[0, { ...gpu, busy: 0, usedBytes: 600 * 2 ** 20 }]])).toContain('1 used without a job')
    // A GPU of a job is not one of those, whatever it does.
    expect(chosen(0, { used: new Map([['n1', { cpu: 0, memoryBytes: 0, gpus: new Map([[0, gpu]]) }]]) })).not.toMatch(
      /no job holds/,
    )
  })

  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('shows its last ten minutes on %i×%i, also where its block has no room for them', (columns, rows) => {
    const begun = { ...runningOn('n1', 0), startedMs: 900_000 } as JobState
    const status = statusOf(hostSpecs(9), [jobOf(1, begun)])
    const pane = packingPanes(inputOf(status, columns, rows, { nowMs: 1_200_000 })).find(
      ({ host }) => host === ' chosen',
    )
    expect(pane === undefined ? [] : linesOf(pane).join('\n')).toMatch(/^ ·+─+/m)
  })
})

describe('the jobs that wait', () => {
  it('have their whole reason, and scroll', () => {
    const why = `n1: too few cores are free. ${'It needs more than any host has. '.repeat(12)}The end.`
    const waiting = [5, 6, 7].map((id) => ({
      job: jobOf(id, { kind: 'queued' }),
      first: id,
      last: id,
      count: 1,
      why,
      expectedMs: undefined,
    }))
    const input = inputOf(statusOf(hostSpecs(3), jobs, { waiting }), 120, 40)
    const { lists } = drawPacking(input)
    const all = Array.from({ length: (lists.waiting ?? 0) + 1 }, (_, waiting) =>
      textOf(packingPanes({ ...input, listOffsets: { waiting, jobs: 0 } })),
    ).join('\n')
    expect(all.match(/The\s+end\./g)?.length).toBeGreaterThanOrEqual(3)
    for (const id of [5, 6, 7]) expect(all).toContain(`${id} train-${id}`)
  })

  it('are folded by submission, and those that have no row are counted', () => {
    const arrayed = [
      {
        job: jobOf(5, { kind: 'queued' }),
        first: 5,
        last: 384,
        count: 380,
        why: 'n1: too few cores are free',
        expectedMs: undefined,
      },
      {
        job: jobOf(390, { kind: 'queued' }),
        first: 390,
        last: 390,
        count: 1,
        why: 'n1: too few cores are free',
        expectedMs: undefined,
      },
    ]
    const counts = new Map([['queued', 384]])
    const input = inputOf(statusOf(hostSpecs(3), jobs, { waiting: arrayed, counts }), 240, 67)
    expect(textOf(packingPanes(input))).toMatch(
      / 5-384 train-5 {2}n1: .*\n.* 390 train-390 {2}n1: .*\n.*… and 3 more jobs: tab Jobs/,
    )
    const filtered = (text: string) => {
      const waiting = { ...FIRST_TABLE_VIEW, filter: { ...FIRST_TABLE_VIEW.filter, text } }
      return textOf(packingPanes({ ...input, tables: { hosts: FIRST_TABLE_VIEW, waiting, jobs: FIRST_TABLE_VIEW } }))
    }
    expect(filtered('train-7')).toContain('3 more jobs are not searched: tab Jobs')
    expect(filtered('200')).toContain(' 5-384 train-5 ')
  })
})

describe('the jobs with their letters', () => {
  const many = Array.from({ length: 192 }, (_, at) =>
    jobOf(at + 1, runningOn(`n${Math.floor(at / 4) + 1}`, (at % 4) * 2, (at % 4) * 2 + 1), {
      request: { cpuMilli: 1000, memoryBytes: 2 ** 30, gpuCount: 2, gpuMilli: 1000 },
    }),
  )

  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('are all in a list that scrolls to the selected one, on %i×%i', (columns, rows) => {
    const input = inputOf(statusOf(hostSpecs(60, 8), many), columns, rows, { list: 'jobs' })
    const { jobs, lists } = drawPacking(input)
    expect(lists.jobs).toBeGreaterThan(0)
    // Each chosen job is drawn once. To save time, only every third is chosen at one size, and every ninth at the others.
    const step = columns === 80 ? 3 : 9
    const chosen = jobs.filter((_, index) => index % step === 0)
    const shown = new Set(
      chosen.flatMap((chosenJob) =>
        packingPanes({ ...input, chosenJob })
          .filter(({ host }) => host === ' packed jobs')
          .flatMap(linesOf)
          .flatMap((line) => /^▸(\w) \d+ (train-\d+) +ann +2/.exec(line)?.slice(1).join(' ') ?? []),
      ),
    )
    expect(shown.size).toBe(chosen.length)
    expect(shown).toContain('B train-64')
    if (columns < 150) expect(picture(packingPanes(input)).join('\n')).toMatch(/ \d+ more: Tab/)
  })

  it('are one entry of the legend where they are one array', () => {
    const array = [1, 2, 3, 4, 5, 6].map((id) => jobOf(id, runningOn('n1', 0), { name: 'sweep' }))
    const long = Array.from({ length: 20 }, (_, at) => jobOf(at + 7, runningOn('n2', 0), { name: 'grid' }))
    const lines = picture(packingPanes(inputOf(statusOf(hostSpecs(6), [...array, ...long]), 80, 24))).join('\n')
    expect(lines).toContain('ABCDEF 1-6 sweep')
    expect(lines).toContain('G…Z 7-26 grid')
    expect(lines).not.toContain('more')
  })

  it('lead to their blocks by a click', () => {
    const chosen: unknown[] = []
    const input = inputOf(statusOf(hostSpecs(60, 8), many), 240, 67, {
      selectJob: ({ job }, spot) => chosen.push(job, spot),
    })
    packingPanes(input)
      .find(({ host }) => host === ' packed jobs')
      ?.mouse?.list?.select(5, 0)
    expect(chosen).toEqual([6, { group: 0, host: 'n2', part: 2 }])
  })
})

describe('a wide terminal', () => {
  it('has the jobs beside the picture, in the whole height where none waits', () => {
    const running = jobs.filter(({ state }) => state.kind === 'running')
    for (const shown of [jobs, running]) {
      const panes = packingPanes(inputOf(statusOf(hostSpecs(3), shown), 240, 67))
      const cells = panes.reduce((sum, { rect }) => sum + rect.width * rect.height, 0)
      expect(cells).toBe(240 * 65)
      expect(textOf(panes)).toMatch(/C 3 train-3 +ann/)
    }
  })

  it('has whole names in the list of jobs from 160 columns on', () => {
    const named = jobs.map((job) => ({ ...job, spec: { ...job.spec, name: 'finetune-7b-lora', estimateS: 600 } }))
    expect(textOf(packingPanes(inputOf(statusOf(hostSpecs(3), named), 160, 44)))).toMatch(
      /C 3 finetune-7b-l\S+ +ann +4 in 10 min/,
    )
  })
})
