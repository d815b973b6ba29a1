import { describe, expect, it } from 'vitest'
import type { KnownHost } from '../../../../src/scheduler/jobs/packing.ts'
import { type PaneView, type Rect, themes } from '../../../../src/ui/compositor/scene.ts'
import { lastOffset, packingPanes, shareCells } from '../../../../src/ui/packing/packing-panes.ts'
import { hostSpecs, jobOf, runningOn, statusOf } from '../jobs/fake-queue.ts'

const theme = themes.none
const area = (columns: number, rows: number): Rect => ({ column: 0, row: 1, width: columns, height: rows - 2 })
const linesOf = ({ notice }: PaneView): string[] => notice.map((row) => row.map(({ text }) => text).join(''))
const textOf = (panes: readonly PaneView[]): string => panes.flatMap(linesOf).join('\n')
const boxesOf = (panes: readonly PaneView[]) => panes.filter(({ host }) => host.startsWith(' box '))

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

describe('the boxes of the Packing tab', () => {
  it('show nine hosts whole on 80×24, each with cores, memory, devices and letters of jobs', () => {
    const status = statusOf(hostSpecs(9), jobs)
    const panes = packingPanes({ status, trouble: undefined, nowMs: 0, offset: 0, rect: area(80, 24), theme })
    const boxes = boxesOf(panes)
    expect(boxes).toHaveLength(9)
    const [n1, n2, n3] = boxes.map(linesOf)
    expect(n1).toEqual(['cpu AAABBBB······   8/16', 'mem AAB·········· 16/64G', 'AAABB ····· ····· ·····'])
    expect(n2?.[2]).toBe('CCCCC CCCCC CCCCC CCCCC')
    expect(n3?.[2]).toBe('····· DD··· ····· ·····')
    for (const { rect } of panes) expect(rect.row + rect.height).toBeLessThanOrEqual(23)
    expect(textOf(panes)).toContain('GPUs 5.3/36 held, 27 free, 3.7 stranded (no core)  cores 40/144')
    expect(textOf(panes)).toContain('E 5 train-5  n1: too few cores are free')
  })

  it('have the name of a host and what it really uses in their titles, as far as there is room', () => {
    const titleOf = (name: string, columns: number) => {
      const hosts = hostSpecs(1).map((host) => ({ ...host, name }))
      const used = new Map([[name, { cpu: 0.344, memoryBytes: 12 * 2 ** 30, gpu: 0.911 }]])
      const common = { status: statusOf(hosts, []), trouble: undefined, nowMs: 0, offset: 0, used, theme }
      const [box] = boxesOf(packingPanes({ ...common, rect: area(columns, 24) }))
      return box?.title
        .map(({ text }) => text)
        .join('')
        .trim()
    }
    expect(titleOf('n1', 80)).toBe('n1 · uses 34 % cpu, 12G, 91 % gpu')
    expect(titleOf('n1', 30)).toBe('n1 · uses 34 % cpu, 12G')
    expect(titleOf('n1', 24)).toBe('n1 · uses 34 %')
    expect(titleOf('ip-10-3-0.eu-west-1.compute.internal', 50)).toMatch(/^ip-10-3-0.*… · uses 34 %$/)
    expect(titleOf('ip-10-3-0.eu-west-1.compute.internal', 24)).toMatch(/^ip-10-3-0.*…$/)
  })

  it('show a dash for unknown cores and memory of a host', () => {
    const [known, silent] = hostSpecs(2) as [KnownHost, KnownHost]
    const unknown = { ...silent, cpuMilli: 0, memoryBytes: 0, unknown: ['cores', 'memory'] as const }
    const shown = (hosts: readonly KnownHost[]) =>
      packingPanes({ status: statusOf(hosts, []), trouble: undefined, nowMs: 0, offset: 0, rect: area(80, 24), theme })
    const [n1, n2] = boxesOf(shown([known, unknown])).map(linesOf)
    expect([n1?.[0], n2?.[0], n2?.[1]]).toEqual([
      expect.stringMatching(/^cpu ·+ {2}0\/16$/),
      expect.stringMatching(/^cpu ·+ -$/),
      expect.stringMatching(/^mem ·+ -$/),
    ])
    expect(textOf(shown([known, unknown]))).toContain('GPUs 0/8 held, 8 free  cores 0/16')
    expect(textOf(shown([unknown]))).toContain('GPUs 0/4 held, 4 free  cores -')
  })

  it('show sixty-four hosts of eight devices whole on 240×67', () => {
    const status = statusOf(hostSpecs(64, 8), jobs)
    const panes = packingPanes({ status, trouble: undefined, nowMs: 0, offset: 0, rect: area(240, 67), theme })
    const boxes = boxesOf(panes)
    expect(boxes).toHaveLength(64)
    for (const { rect } of boxes) {
      expect(rect.column + rect.width).toBeLessThanOrEqual(240)
      expect(rect.row + rect.height).toBeLessThanOrEqual(66)
    }
  })

  it('leave their free rows to the jobs that wait', () => {
    const waiting = (count: number) => {
      const status = statusOf(hostSpecs(count), jobs)
      const panes = packingPanes({ status, trouble: undefined, nowMs: 0, offset: 0, rect: area(80, 24), theme })
      expect(boxesOf(panes)).toHaveLength(count)
      for (const { rect } of panes) expect(rect.row + rect.height).toBeLessThanOrEqual(23)
      return textOf(panes).match(/train-[56]/g)
    }
    expect(waiting(3)).toEqual(['train-5', 'train-6'])
    expect(waiting(9)).toEqual(['train-5'])
  })

  it('scroll when they do not fit, to the last host and no further', () => {
    const input = {
      status: statusOf(hostSpecs(64, 8), jobs),
      trouble: undefined,
      nowMs: 0,
      offset: Number.POSITIVE_INFINITY,
      rect: area(80, 24),
      theme,
    }
    const last = lastOffset(input)
    expect(last).toBeGreaterThan(0)
    expect(boxesOf(packingPanes({ ...input, offset: last })).at(-1)?.host).toBe(' box n64')
    expect(boxesOf(packingPanes({ ...input, offset: last + 5 })).at(-1)?.host).toBe(' box n64')
    expect(boxesOf(packingPanes({ ...input, offset: 0 }))[0]?.host).toBe(' box n1')
  })

  it.each([
    [80, 'GPUs 5.8/36, 23 free, 3.5 down, 3.7 stranded  cores 44/144'],
    [160, 'GPUs 5.8/36 held, 23 free, 3.5 on a host that is down, 3.7 stranded (no core)  cores 44/144'],
  ])('count as free only whole devices that can be given away, on %i columns', (columns, figures) => {
    const more = [...jobs, jobOf(7, runningOn('n9', 2))]
    const status = statusOf(hostSpecs(9), more, { down: { n9: 'unreachable: no route' } })
    const input = { status, trouble: undefined, nowMs: 0, offset: 0, rect: area(columns, 24), theme }
    expect(textOf(packingPanes(input))).toContain(figures)
  })

  it('say that a host does not answer, that no scheduler is running, and that the queue cannot be read', () => {
    const status = statusOf(hostSpecs(2), [], { down: { n2: 'unreachable: no route' }, driver: undefined })
    const input = { status, trouble: undefined, nowMs: 0, offset: 0, rect: area(80, 24), theme }
    expect(textOf(packingPanes(input))).toMatch(/1 host down +no scheduler running: muster job work/)
    expect(boxesOf(packingPanes(input)).map(linesOf)[1]?.[0]).toBe('unreachable: no route')
    expect(textOf(packingPanes({ ...input, trouble: 'the file is damaged' }))).toContain('the file is damaged')
  })
})

describe('the cells of an amount', () => {
  const cells = (amounts: readonly number[], whole: number, width: number): string =>
    shareCells(
      amounts.map((amount, index) => ({ job: index + 1, amount })),
      whole,
      width,
      theme,
    )
      .map(({ text }) => text)
      .join('')

  it('give each job at least one, and keep one for what is free', () => {
    expect(cells([500, 500], 1000, 4)).toBe('AABB')
    expect(cells([10], 1000, 4)).toBe('A···')
    expect(cells([990], 1000, 4)).toBe('AAA·')
    expect(cells([970, 10, 20], 1000, 4)).toBe('AABC')
    expect(cells([], 1000, 4)).toBe('····')
    expect(cells([2000], 1000, 4)).toBe('AAAA')
  })

  it('are as many as asked for, however many hold parts', () => {
    expect(cells(new Array(9).fill(100), 1000, 4)).toBe('ABC·')
    expect(cells([5], 0, 4)).toBe('AAAA')
    expect(cells([], 0, 4)).toBe('····')
  })
})
