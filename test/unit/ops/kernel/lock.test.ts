/** Locks that go while a change has them: nothing is changed without them, and they outlive what they protect. */
import { describe, expect, it, vi } from 'vitest'
import type { ApplyEvent } from '../../../../src/ops/kernel/apply.ts'
import { areaOf } from '../../../../src/ops/kernel/area.ts'
import { changeHosts } from '../../../../src/ops/kernel/change.ts'
import type { OpsHosts, ScriptOptions, ScriptResult } from '../../../../src/ops/kernel/host-port.ts'
import { HostLocks } from '../../../../src/ops/kernel/lock.ts'
import type { RunOutcome } from '../../../../src/ops/run/outcome.ts'
import { operationOf } from './stand-in-hosts.ts'

const NONE = new Uint8Array()
const DONE: RunOutcome = { kind: 'exit', code: 0 }

/** Hosts with locks; what happens there is in `story`. A step named `… long` goes on until it is stopped. */
class LockedHosts implements OpsHosts {
  readonly story: string[] = []
  readonly #holders = new Map<string, (outcome: RunOutcome) => void>()
  /** Called when a step begins. */
  onStep: (host: string, step: string) => void = () => {}

  async exec(host: string, script: string, options: ScriptOptions): Promise<ScriptResult> {
    const isLock = script.includes('muster-lock-holder')
    const outcome = isLock ? await this.#hold(host, options) : await this.#run(host, script, options)
    return { outcome, stdout: NONE, stderr: NONE, durationMs: 0 }
  }

  /** Ends the process that holds the lock. */
  killHolder(host: string): void {
    this.#holders.get(host)?.({ kind: 'signal', signal: 'SIGTERM' })
  }

  #hold(host: string, { signal, onOutput }: ScriptOptions): Promise<RunOutcome> {
    return new Promise((resolve) => {
      const end = (outcome: RunOutcome): void => {
        if (!this.#holders.delete(host)) return
        this.story.push(`${host} unlocked`)
        resolve(outcome)
      }
      this.#holders.set(host, end)
      this.story.push(`${host} locked`)
      signal.addEventListener('abort', () => end({ kind: 'cancelled' }))
      onOutput?.('stdout', 'held ')
      onOutput?.('stdout', '4711\n')
    })
  }

  async #run(host: string, script: string, { signal }: ScriptOptions): Promise<RunOutcome> {
    const step = /(\w+)$/.exec(script)?.[1]
    if (step === undefined || !/^(short|long)$/.test(step)) return DONE
    // What runs behind a lock looks for its holder first.
    if (!script.includes('/proc/4711/cmdline')) this.story.push(`${host} ${step} has no guard`)
    this.story.push(`${host} ${step} begins`)
    this.onStep(host, step)
    if (step === 'long' && !signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    // The remote end takes its time.
    await new Promise((resolve) => setImmediate(resolve))
    this.story.push(`${host} ${step} ended`)
    return step === 'long' ? { kind: 'cancelled' } : DONE
  }
}

type Told = {
  readonly signal?: AbortSignal
  readonly isAgreed?: boolean
  readonly onJournal?: (event: ApplyEvent) => void
  readonly onLook?: (look: number) => void
}

async function change(hosts: LockedHosts, steps: Readonly<Record<string, readonly string[]>>, told: Told = {}) {
  const said: string[] = []
  const events: string[] = []
  let looks = 0
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => Object.keys(steps),
      factsOf: () => ({}),
      plan: () => {
        looks += 1
        told.onLook?.(looks)
        return Object.entries(steps).map(([host, names]) => operationOf('it', host, names))
      },
    },
    undefined,
  )
  const end = await changeHosts(
    {
      hosts,
      areas: [area],
      direction: 'up',
      mark: 'mark',
      owner: 'a test',
      fanOut: 8,
      signal: told.signal ?? new AbortController().signal,
      now: () => 0,
      isAgreed: told.isAgreed ?? false,
      isSelected: () => true,
      openJournal: () => ({ write: (event) => told.onJournal?.(event) }),
    },
    {
      onPlan: () => {},
      confirm: () => Promise.resolve(true),
      onEvent: (event) => events.push(event.type),
      onSay: (text) => said.push(text),
    },
  ).catch((error: Error) => ({ kind: 'error', error }))
  return { kind: end.kind, said, events, looks }
}

describe('a lock whose holder ends', () => {
  it('stops the steps on all hosts, and starts nothing more', async () => {
    const hosts = new LockedHosts()
    hosts.onStep = (host, step) => {
      if (host === 'm1' && step === 'long') hosts.killHolder('m2')
    }
    const { kind, said } = await change(hosts, { m1: ['short', 'long', 'short'], m2: ['short', 'long', 'short'] })
    expect(kind).toBe('lost')
    expect(said).toEqual([expect.stringMatching(/^the lock of m2 is gone: .*SIGTERM/)])
    const begun = hosts.story.filter((each) => each.endsWith('short begins'))
    expect(begun.toSorted()).toEqual(['m1 short begins', 'm2 short begins'])
    const released = hosts.story.indexOf('m1 unlocked')
    expect(hosts.story.slice(released).filter((each) => each.includes('ended'))).toEqual([])
  })

  it('starts nothing if the lock is lost before the first step', async () => {
    const hosts = new LockedHosts()
    const { kind, said } = await change(
      hosts,
      { m1: ['short'] },
      {
        onLook: (look) => {
          if (look === 2) hosts.killHolder('m1')
        },
      },
    )
    expect([kind, said.length]).toEqual(['lost', 1])
    expect(hosts.story).toEqual(['m1 locked', 'm1 unlocked'])
  })

  it('is taken again if it is lost before the plan, and facts are read again', async () => {
    const hosts = new LockedHosts()
    const locks = new HostLocks(hosts, { owner: 'a test', signal: new AbortController().signal })
    await locks.tryOnce('m1')
    expect(locks.isHeld('m1')).toBe(true)
    hosts.killHolder('m1')
    await new Promise((resolve) => setImmediate(resolve))
    expect([locks.isHeld('m1'), locks.watch().aborted]).toEqual([false, true])
    expect(await locks.take('m1')).toMatchObject({ kind: 'held' })
    expect([locks.isHeld('m1'), locks.watch().aborted]).toEqual([true, false])
    locks[Symbol.dispose]()
    expect(locks.lost).toEqual(new Map())
  })
})

describe('locks', () => {
  it('that take too long are reported as timed out, not as cancelled', async () => {
    vi.useFakeTimers()
    try {
      const silent: OpsHosts = {
        exec: async (_, __, { signal }) => {
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          return { outcome: { kind: 'cancelled' }, stdout: NONE, stderr: NONE, durationMs: 0 }
        },
      }
      using locks = new HostLocks(silent, { owner: 'a test', signal: new AbortController().signal })
      const taken = locks.take('m1')
      await vi.advanceTimersByTimeAsync(30_000)
      expect(await taken).toMatchObject({ kind: 'failed', reason: 'timed out', outcome: { kind: 'timeout' } })
    } finally {
      vi.useRealTimers()
    }
  })

  const isLast = (story: readonly string[]) => {
    const ended = story.findLastIndex((each) => each.endsWith(' ended'))
    return ended !== -1 && story.findIndex((each) => each.endsWith('unlocked')) > ended
  }

  it('are released after every step has ended, when the user stops the change', async () => {
    const stop = new AbortController()
    const hosts = new LockedHosts()
    hosts.onStep = () => stop.abort()
    const { kind } = await change(hosts, { m1: ['long'], m2: ['long'] }, { signal: stop.signal })
    expect(kind).toBe('cancelled')
    expect(hosts.story.filter((each) => each.endsWith('unlocked'))).toHaveLength(2)
    expect(isLast(hosts.story), hosts.story.join(', ')).toBe(true)
  })

  it('are released after every step has ended, when the journal cannot be written', async () => {
    const hosts = new LockedHosts()
    const both = Promise.withResolvers<void>()
    hosts.onStep = (host) => {
      if (host === 'm2') both.resolve()
    }
    const onJournal = ({ type, operation }: ApplyEvent): void => {
      if (type === 'end' && operation.host === 'm1') throw new Error('no space left on device')
    }
    const { kind, events } = await change(hosts, { m1: ['short'], m2: ['long'] }, { onJournal })
    expect(kind).toBe('error')
    expect(isLast(hosts.story), hosts.story.join(', ')).toBe(true)
    // What ended is told all the same.
    expect(events.filter((type) => type === 'end')).toHaveLength(2)
  })

  it('allow no step that the journal could not record, and report none as running', async () => {
    const hosts = new LockedHosts()
    const onJournal = ({ type }: ApplyEvent): void => {
      if (type === 'begin') throw new Error('no space left on device')
    }
    const { kind, events } = await change(hosts, { m1: ['short'], m2: ['short'] }, { onJournal })
    expect(kind).toBe('error')
    expect(events).toEqual(['end', 'end'])
    expect(hosts.story.filter((each) => each.includes('begins'))).toEqual([])
  })
})
