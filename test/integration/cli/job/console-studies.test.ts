/** What the console reads of studies in a real queue file. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConsoleStudies, linesOf } from '../../../../src/cli/job/console-studies.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { retryJobs } from '../../../../src/scheduler/jobs/study-change.ts'
import type { StudySpec } from '../../../../src/scheduler/study/study.ts'
import { worldSpec } from '../../../support/queue-world.ts'

const SPEC: StudySpec = {
  parameters: ['size=int:1:100'],
  method: 'random',
  seed: 1,
  metrics: [{ name: 'loss' }],
  repeat: 1,
  failures: 10,
}

const OTHER = { spec: worldSpec({ runS: 1 }), user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }

/** `driver` writes as another process does, `store` is the console's. */
function openQueue() {
  const directory = mkdtempSync(join(tmpdir(), 'muster-studies-'))
  const path = join(directory, 'queue.db')
  const driver = new JobStore(path)
  const store = new JobStore(path)
  const create = (name: string, nowMs: number, hasJobs = true) =>
    driver.studies.create(
      { name, user: 'ann', priority: 0, spec: SPEC, ...(hasJobs ? { job: worldSpec({ runS: 1 }) } : {}) },
      nowMs,
    )
  const add = (id: number, size: number) => {
    const study = driver.studies.get(id)
    if (study === undefined) throw new Error('no such study')
    return driver.addTrial(study, { point: { size: String(size) }, repetition: 0 }, 1)
  }
  return {
    driver,
    store,
    create,
    add,
    [Symbol.dispose]() {
      store[Symbol.dispose]()
      driver[Symbol.dispose]()
      rmSync(directory, { recursive: true })
    },
  }
}

describe('studies in the console', () => {
  it('are read as the same object until something has changed, and then only with what is new', () => {
    using queue = openQueue()
    const { driver, store, create, add } = queue
    const id = create('wf', 1)
    const studies = new ConsoleStudies(store)
    const [first, second] = [add(id, 1), add(id, 2)]
    const before = studies.study(id)
    expect(before?.trials.map(({ point }) => point.size)).toEqual(['1', '2'])
    expect(before?.open).toHaveLength(2)
    driver.submit(OTHER, 3)
    expect(studies.study(id)).toBe(before)
    driver.studies.settle(id, first, { kind: 'done', values: { loss: '0.5' }, endedMs: 5 })
    const after = studies.study(id)
    expect(after?.counts).toEqual({ open: 1, done: 1, failed: 0, cancelled: 0, pruned: 0 })
    expect(after?.trials[0]?.end?.values).toEqual({ loss: '0.5' })
    expect(after?.trials[1]).toBe(before?.trials[1])
    driver.studies.settle(id, second, { kind: 'done', values: { loss: '0.25' }, endedMs: 6 })
    expect(studies.lines(10).lines[0]?.best?.number).toBe(1)
    expect(studies.study(99)).toBeUndefined()
  })

  it('are read again when ended trials run again, also if they have ended before the next reading', () => {
    using queue = openQueue()
    const { driver, store, create, add } = queue
    const id = create('wf', 1)
    const trial = add(id, 1)
    const job = trial.job ?? 0
    const end = (kind: 'done' | 'failed') => {
      driver.applyAll([{ id: job, event: { kind: 'stop', reason: 'cancelled' } }], 3)
      driver.studies.settle(id, trial, { kind, values: { loss: '0.5' }, endedMs: 5 })
    }
    end('failed')
    driver.studies.setState(id, { kind: 'done', repeated: 0, replaced: 0 })
    const studies = new ConsoleStudies(store)
    const counts = () => studies.lines(10).lines[0]?.counts
    expect(counts()).toMatchObject({ open: 0, failed: 1 })
    retryJobs(driver, [job], 6)
    end('failed')
    retryJobs(driver, [job], 7)
    expect(counts()).toMatchObject({ open: 1, failed: 0 })
    end('failed')
    expect(counts()).toMatchObject({ open: 0, failed: 1 })
    retryJobs(driver, [job], 8)
    end('done')
    expect(counts()).toMatchObject({ open: 0, failed: 0, done: 1 })
    expect(studies.lines(10).lines[0]?.best?.number).toBe(0)
  })

  it('have one line each in the list, with their jobs or without', () => {
    using queue = openQueue()
    const { store, create, add, driver } = queue
    const early = create('early', 1)
    driver.submit(OTHER, 2)
    create('elsewhere', 3, false)
    create('late', 4)
    add(early, 1)
    add(early, 2)
    const groups = store.groups(10).groups.flatMap((group) => {
      const lead = store.get(group.first)
      return lead === undefined ? [] : [{ ...group, lead }]
    })
    const lines = linesOf(groups, new ConsoleStudies(store).lines(10).lines)
    expect(lines.map(({ study, count }) => [study?.study.name, count])).toEqual([
      ['late', 0],
      ['elsewhere', 0],
      [undefined, 1],
      ['early', 2],
    ])
    expect(new Set(lines.map(({ spec }) => spec)).size).toBe(4)
  })
})
