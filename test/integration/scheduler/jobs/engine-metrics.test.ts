/** Metrics of jobs that an engine runs, when their output cannot be read. */

import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../../src/base/clock.ts'
import type { JobEngine } from '../../../../src/scheduler/jobs/engine.ts'
import { HostRounds } from '../../../../src/scheduler/jobs/host-rounds.ts'
import type { JobEvent } from '../../../../src/scheduler/jobs/job.ts'
import type { Reading } from '../../../../src/scheduler/jobs/results.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { bundleKeyOf } from '../../../support/bundle-key.ts'
import { worldSpec } from '../../../support/queue-world.ts'

const MOST_TRIES = 30

let store: JobStore
let life: AbortController
let nowMs = 1_000_000_000
beforeEach(() => {
  store = new JobStore(':memory:')
  life = new AbortController()
})
afterEach(() => {
  life.abort()
  store[Symbol.dispose]()
})

const clock: Clock = { now: () => nowMs, after: () => ({ [Symbol.dispose]() {} }) }

/** It is done, and its metrics were not read. */
function endedJob(): number {
  const spec = worldSpec({ engine: 'some', metrics: [{ name: 'loss' }, { name: 'step' }] })
  const [id = 0] = store.submit({ spec, user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }, nowMs)
  const bundle = { kind: 'ended', end: { kind: 'exit', code: 0 } } as const
  const events: readonly JobEvent[] = [
    { kind: 'placed', places: [{ host: '@some', devices: [] }] },
    { kind: 'seen', rank: 0, bundle: { kind: 'begun' } },
    { kind: 'seen', rank: 0, bundle },
  ]
  for (const event of events) applyEvent(store, id, event, nowMs)
  expect(store.get(id)?.state.kind).toBe('done')
  return id
}

type Run = (program: string, signal: AbortSignal) => Promise<string | undefined>

/** An engine that answers with `trouble`, and where programs are run by `run`; counts both. */
function engineOf(run: Run, trouble?: string) {
  const counts = { rounds: 0, runs: 0 }
  const engine: JobEngine = {
    name: 'some',
    mostWaiting: 1,
    pollMs: { soon: 1, late: 5 },
    async round() {
      counts.rounds++
      return { trouble, reports: new Map() }
    },
    searchOutput({ jobs, programOf }, signal) {
      counts.runs++
      return run(programOf(new Map(jobs.map(({ key }) => [key, `tail of ${key}`]))), signal)
    },
  }
  return { engine, counts }
}

const roundsWith = (engines: readonly JobEngine[]) =>
  new HostRounds(
    { store, hosts: [], engines, clock, signal: life.signal, port: { open: () => expect.unreachable() } },
    { onAnswer() {}, onTrouble() {}, onFailure: (error) => expect.unreachable(String(error)) },
  )

/** Each time, whatever waits is due. */
async function sendOften(rounds: HostRounds, count: number): Promise<readonly Reading[]> {
  const readings: Reading[] = []
  for (let time = 0; time < count; time++) {
    nowMs += 10_000
    rounds.send(nowMs)
    await setImmediate()
    readings.push(...rounds.takeAnswers().flatMap((answer) => answer.readings))
  }
  return readings
}

describe('metrics of a job whose engine has ended it', () => {
  it.each([
    ['cannot be used', () => [engineOf(async () => undefined, 'it does not answer').engine]],
    ['runs no programs', () => [engineOf(async () => undefined).engine]],
    ['does not know its output any more', () => [engineOf(async () => '').engine]],
    ['is not declared any more', () => []],
  ])('are given up after some time when the engine %s', async (_, engines) => {
    const job = endedJob()
    using rounds = roundsWith(engines())
    expect(await sendOften(rounds, MOST_TRIES - 1)).toEqual([])
    expect(await sendOften(rounds, 2)).toEqual([{ job, attempt: 1, values: {}, isFinal: true }])
    expect(await sendOften(rounds, MOST_TRIES)).toEqual([])
    expect(rounds.isAtRest).toBe(true)
  })

  it('are read as soon as the output can be read again, and then the engine is left alone', async () => {
    const job = endedJob()
    const key = bundleKeyOf(store, job)
    let text = `metric other 0 1\n`
    const { engine, counts } = engineOf(async (program) => {
      expect(program).toContain(`tail of ${key}`)
      return text
    })
    using rounds = roundsWith([engine])
    expect(await sendOften(rounds, 5)).toEqual([])
    expect(rounds.isAtRest).toBe(false)
    text = `metric ${key} 0 0.5\nmetric ${key} 1 x\n`
    expect(await sendOften(rounds, 5)).toEqual([{ job, attempt: 1, values: { loss: '0.5' }, isFinal: true }])
    expect(counts).toEqual({ rounds: 6, runs: 6 })
    expect(rounds.isAtRest).toBe(true)
  })

  it('hold up no round with the engine while they are being read', async () => {
    endedJob()
    const { engine, counts } = engineOf(async () => await new Promise(() => {}))
    using rounds = roundsWith([engine])
    expect(await sendOften(rounds, 9)).toEqual([])
    expect(counts).toEqual({ rounds: 9, runs: 1 })
    expect(rounds.isAtRest).toBe(false)
  })
})
