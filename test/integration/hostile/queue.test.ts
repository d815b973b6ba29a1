/**
 * A host of the queue that lies in its rounds and between them, mark and all: each round ends, what it tells can be, and it is
 * believed about itself alone.
 */

import { setImmediate } from 'node:timers/promises'
import { describe, it } from 'vitest'
import { type DriverEvent, driveJobs, LEASE_MS } from '../../../src/scheduler/jobs/driver.ts'
import type { DriverHost } from '../../../src/scheduler/jobs/driver-host.ts'
import { HostClock, HostLine, type JobShell, type JobShellHandlers } from '../../../src/scheduler/jobs/host-line.ts'
import { parseHostAnswer, type RoundResult } from '../../../src/scheduler/jobs/host-program.ts'
import { isFinal, type Job } from '../../../src/scheduler/jobs/job.ts'
import { JobStore, type Submission } from '../../../src/scheduler/jobs/store.ts'
import { bundleKeyOf } from '../../support/bundle-key.ts'
import { untilEnded } from '../../support/hostile-host/hostile-transport.ts'
import { mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, type Mutation, playedCount, playMutations } from '../../support/hostile-host/play.ts'
import { worldSpec } from '../../support/queue-world.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const KEY = 'abc-1-1-0'

describe('a hostile host of the queue', () => {
  it('ends each round within bounds, and has possible numbers', async () => {
    await playMutations(async ({ choice, note }) => {
      const clock = new ManualClock()
      const hostClock = new HostClock()
      let handlers: JobShellHandlers | undefined
      let [mark, told] = ['', 0]
      const answer = (number: number) => {
        const good = [
          'up 100.25',
          'host 8 16000000',
          `${KEY} begun at=99.5`,
          `+${KEY} exit 0 at=99.5 to=100`,
          `metric ${KEY} 0 0.5`,
          `end ${number}`,
        ]
        const foreign = [
          `${mark}abc-2-1-0 exit 0`,
          `${mark}+abc-9-1-0 gone`,
          `${mark}end ${number}`,
          `${mark}trouble x`,
          mark,
          'm1',
        ]
        const mutated = mutate(Buffer.from(good.map((line) => `${mark}${line}\n`).join('')), choice, foreign)
        note(...mutated.how)
        const own = handlers
        for (const piece of mutated.pieces) own?.onText(piece.toString())
        for (let count = 0; mutated.endless !== undefined && count < 200; count++)
          own?.onText(mutated.endless.toString())
        if (mutated.end !== 'silent' && mutated.end !== 'well') own?.onEnd(`it ended: ${mutated.end}`)
      }
      using line = new HostLine({
        ...{ host: 'm2', clock, hostClock, onLost() {} },
        onNotice(text) {
          told += text.length
          parseHostAnswer(text, hostClock)
        },
        port: {
          open(_, opened) {
            handlers = opened
            return {
              write(text) {
                mark = /mark=([0-9a-f]+);/.exec(text)?.[1] ?? mark
                const number = Number(/round=(\d+);/.exec(text)?.[1])
                queueMicrotask(() => answer(number))
              },
              [Symbol.dispose]() {
                handlers = undefined
              },
            }
          },
        },
      })
      for (let round = 0; round < 2; round++) {
        const asked = line.round({ orders: [{ kind: 'check', key: KEY }], wantsFacts: true, besides: '' })
        const result: RoundResult = await untilEnded(asked, clock, 61_000)
        if (result.kind === 'trouble') {
          expectNoDefect(result.reason, 'the trouble')
          continue
        }
        const { facts, bundles } = parseHostAnswer(result.text, hostClock)
        for (const number of [facts?.cores ?? 0, facts?.memoryBytes ?? 0])
          if (!Number.isSafeInteger(number) || number < 0) throw new Error(`it has ${number}`)
        for (const bundle of bundles.values()) {
          const isReal = Object.values(bundle).every((value) => typeof value !== 'number' || Number.isFinite(value))
          if (!isReal) throw new Error(`its times are ${JSON.stringify(bundle)}`)
        }
        await setImmediate()
      }
      if (told > 8 * 1024 * 1024) throw new Error(`${told} characters of notices`)
    })
  })
})

/** A host that begins what it is told to and ends it when it was asked about it three times, as the program for hosts would. */
class ModelHost {
  readonly begun = new Map<string, number>()
  readonly ended = new Set<string>()
  handlers: JobShellHandlers | undefined
  mark = ''
  readonly #say: (host: ModelHost, lines: readonly string[]) => void

  constructor(say: (host: ModelHost, lines: readonly string[]) => void) {
    this.#say = say
  }

  open(handlers: JobShellHandlers): JobShell {
    this.handlers = handlers
    return {
      write: (text) => {
        if (this.handlers !== handlers) return
        this.mark = /mark=([0-9a-f]+);/.exec(text)?.[1] ?? this.mark
        queueMicrotask(() => this.#say(this, this.#answer(text)))
      },
      [Symbol.dispose]: () => {
        if (this.handlers === handlers) this.handlers = undefined
      },
    }
  }

  #answer(text: string): readonly string[] {
    const lines = ['up 100.25', ...(text.includes('\nfacts\n') ? ['host 8 16000000'] : [])]
    for (const [, order = '', key = ''] of text.matchAll(/^(start|check|stop) (\S+)/gm)) {
      const asked = this.begun.get(key)
      if (order === 'start' && asked === undefined) lines.push(`+${key} begun at=100`)
      if (asked !== undefined || order === 'start') this.begun.set(key, (asked ?? 0) + 1)
      if (order === 'stop' || (asked ?? 0) > 3) this.ended.add(key)
      if (this.ended.has(key)) lines.push(`${key} exit ${order === 'stop' ? 143 : 0} at=100 to=101`)
      else lines.push(`${key} ${this.begun.has(key) ? 'begun at=100' : 'none'}`)
    }
    return [...lines, `end ${/^round=(\d+);/m.exec(text)?.[1]}`]
  }
}

describe('a hostile host beside an honest one, to the driver of the queue', () => {
  const ANSWERS = 25
  const HOSTS: readonly DriverHost[] = ['a', 'b'].map((name) => ({
    ...{ name, address: name, cpuMilli: 2000, gpuCount: 0, labels: {}, custom: undefined },
  }))
  const on = (host: string): Submission => ({
    spec: worldSpec({
      retries: 100,
      request: {
        ...{ cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
        selectors: [{ label: 'host', is: 'in', values: [host] }],
      },
    }),
    ...{ user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}, {}] },
  })

  it('starts, ends and repeats nothing on the other host, and stores no impossible time or size', async () => {
    let answers = 0
    const play = async ({ choice, note }: Mutation) => {
      const clock = new ManualClock()
      using store = new JobStore(':memory:')
      const [own, foreign] = ['b', 'a'].map((host) => store.submit(on(host), clock.now()))
      const foreignKeys = (foreign ?? []).map((id) => bundleKeyOf(store, id))
      const honest = new ModelHost((host, lines) => {
        host.handlers?.onText(lines.map((line) => `${host.mark}${line}\n`).join(''))
      })
      let played = 0
      const liar = new ModelHost((host, lines) => {
        const good = Buffer.from(lines.map((line) => `${host.mark}${line}\n`).join(''))
        const lies = foreignKeys.flatMap((key) =>
          ['begun', 'exit 0', 'exit 7', 'gone', 'none', 'rebooted', 'exit 0 at=0 to=1e9'].map(
            (word) => `${key} ${word}`,
          ),
        )
        const words = [...lies, ...lies.map((lie) => `+${lie}`), 'host 999999999999 999999999999', 'up 1e9', 'up 0.5']
        const answer = mutate(good, choice, [...words.map((word) => `${host.mark}${word}`), 'a'])
        note(...answer.how)
        played++
        const { handlers } = host
        for (const piece of answer.pieces) handlers?.onText(piece.toString())
        for (let count = 0; answer.endless !== undefined && count < 100; count++)
          handlers?.onText(answer.endless.toString())
        if (answer.end === 'lost' || answer.end === 'killed') handlers?.onEnd(`it ended: ${answer.end}`)
      })
      const lease = store.lease.take('test', clock.now(), LEASE_MS)
      if (lease === undefined) throw new Error('somebody else drives')
      const over = new AbortController()
      const events: DriverEvent[] = []
      const driving = driveJobs({
        ...{ store, lease, hosts: HOSTS, clock, isPreempting: false, isUntilEmpty: false, signal: over.signal },
        port: { open: (host, handlers) => (host === 'a' ? honest : liar).open(handlers) },
        onEvent: (event) => void events.push(event),
      })
      driving.catch(() => over.abort())
      let quietTurns = 0
      for (let turn = 0; turn < 1500 && played < ANSWERS && !over.signal.aborted; turn++) {
        const before = played
        // An answer without its last line is waited for until the round is given up.
        clock.advance(quietTurns > 20 ? 5000 : 100)
        await setImmediate()
        quietTurns = played > before ? 0 : quietTurns + 1
        for (const [at, id] of (foreign ?? []).entries()) {
          const job = store.get(id) as Job
          const key = foreignKeys[at] ?? ''
          const isBegun = job.state.kind === 'running' || isFinal(job.state)
          if (
            job.attempt !== 1 ||
            (isBegun && !honest.begun.has(key)) ||
            (isFinal(job.state) && !honest.ended.has(key))
          )
            throw new Error(`it is believed: job ${id} on the other host is ${JSON.stringify(job.state)}`)
        }
      }
      answers += played
      over.abort()
      await driving
      if (honest.begun.size > foreignKeys.length) throw new Error('something began twice on the other host')
      for (const id of [...(own ?? []), ...(foreign ?? [])]) expectPossible(store.get(id) as Job, clock.now())
      for (const { name, cpuMilli, memoryBytes } of store.report()?.hosts ?? []) {
        if (cpuMilli !== 2000) throw new Error(`${name} has ${cpuMilli} processors`)
        if (!Number.isSafeInteger(memoryBytes) || memoryBytes < 0) throw new Error(`${name} has ${memoryBytes} bytes`)
        if (name === 'a' && memoryBytes > 16_000_000 * 1024) throw new Error('it speaks of the memory of the other')
      }
      for (const event of events) {
        if (event.kind !== 'host' || event.trouble === undefined) continue
        if (event.host === 'a' && event.trouble !== 'cancelled')
          throw new Error(`the other is in trouble: ${event.trouble}`)
        expectNoDefect(event.trouble, 'the trouble')
      }
      if (clock.timerCount > 0) throw new Error('timers are left')
    }
    await playMutations(play, 1 / ANSWERS)
    if (answers < playedCount() * 0.9) throw new Error(`only ${answers} answers were mutated`)
  })
})

/** What is kept of a job is within the time in which it was there. */
function expectPossible({ submittedMs, attempt, state }: Job, nowMs: number): void {
  if (attempt > 1000) throw new Error(`it was tried ${attempt} times`)
  if (!('bundles' in state)) return
  const { startedMs = submittedMs, placedMs = startedMs, bundles = [] } = state
  const ms = [startedMs, placedMs, ...('endedMs' in state ? [state.endedMs] : [])]
  for (const bundle of bundles)
    if (bundle.kind !== 'sent' && bundle.beganMs !== undefined)
      ms.push(bundle.beganMs, bundle.beganMs + ('ranMs' in bundle ? (bundle.ranMs ?? 0) : 0))
  for (const at of ms)
    if (!(at >= submittedMs && at <= nowMs)) throw new Error(`${at} is not within ${submittedMs} and ${nowMs}`)
}
