/** A new engine needs a record and a line in ENGINES: verbs and driver know nothing else of it. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { shellQuote } from '../../../src/base/shell-quote.ts'
import { ENGINES, type EngineKind } from '../../../src/cli/job/engines.ts'
import { NO_FILES_CODE, outputOn } from '../../../src/ops/kernel/host-output.ts'
import type { EngineOrder, EngineReport } from '../../../src/scheduler/jobs/engine.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { bundleKeyOf } from '../../support/bundle-key.ts'
import { runMuster } from '../../support/run-muster.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** What the planted engine has, by key. */
const known = new Map<string, EngineReport>()
const orders: EngineOrder[] = []
/** What the log of a job has, by key; undefined: it cannot be read any more. */
const logs = new Map<string, string | undefined>()
/** Keys of the logs that were read. */
const read = new Set<string>()
let trouble: string | undefined
/** Where its cluster is. */
let address = 'moon'

const PLANTED: EngineKind = {
  name: 'planted',
  mostWaiting: 2,
  pollMs: { soon: 1, late: 5 },
  summary: 'the planted cluster does',
  docs: 'docs/planted.md',
  refuses: ['--silent'],
  mostCommandBytes: 1000,
  isDeclared: () => true,
  open: () => ({
    locate: async () => address,
    async round(asked) {
      orders.push(...asked)
      if (trouble !== undefined) return { trouble, reports: new Map() }
      for (const order of asked) {
        const { kind, key } = order
        if (kind === 'start' && !known.has(key)) known.set(key, onStart(order))
        if (kind === 'stop') known.set(key, 'cancelled')
      }
      // It need not answer for all of them.
      const some = asked.slice(0, 2).flatMap(({ key }) => {
        const report = known.get(key)
        return report === undefined ? [] : [[key, report] as const]
      })
      const waiting = asked.flatMap(({ key }) =>
        known.get(key) === 'waiting' ? [[key, { why: 'the moon is down', startS: 1_900_000_000 }] as const] : [],
      )
      const running = asked.flatMap(({ key }) => (known.get(key) === 'running' ? [[key, 'crater[1-2]'] as const] : []))
      return { trouble: undefined, reports: new Map(some), waits: new Map(waiting), nodes: new Map(running) }
    },
    tryOut: async ({ spec }) => ({ script: `run ${spec.command}\n`, words: 'it would never start', isNever: true }),
    ...outputOn('here', ({ key, rank = 'alone', fromByte }) => {
      read.add(key)
      if (!logs.has(key)) return `echo log of ${key} ${rank} | tail -c ${fromByte < 0 ? -fromByte : `+${fromByte + 1}`}`
      const text = logs.get(key)
      if (text === 'none') return `exit ${NO_FILES_CODE}`
      return text === undefined ? 'echo loss=666; exit 1' : `printf %s ${shellQuote(text)}`
    }),
  }),
}

let onStart: (order: Extract<EngineOrder, { kind: 'start' }>) => EngineReport

beforeAll(() => void (ENGINES as EngineKind[]).push(PLANTED))
afterAll(() => void (ENGINES as EngineKind[]).pop())

let directory: string
let store: JobStore
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-planted-engine-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { here: { transport: local } }\n')
  known.clear()
  orders.length = 0
  logs.clear()
  read.clear()
  onStart = () => 'waiting'
  trouble = undefined
  address = 'moon'
  store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
})
afterEach(() => {
  store[Symbol.dispose]()
  rmSync(directory, { recursive: true })
})

const muster = (args: readonly string[], signal = new AbortController().signal) =>
  runMuster(args, { directory, signal })

const trySubmit = (...args: readonly string[]) => muster(['job', 'submit', '--engine', 'planted', ...args])
const submit = async (...args: readonly string[]) => Number((await trySubmit(...args)).output)
const kind = (id: number) => store.get(id)?.state.kind
const keyOf = (id: number, attempt = 1) => bundleKeyOf(store, id, { attempt })

/** `muster job work` beside the test. */
async function whileWorking(test: () => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const working = muster(['job', 'work'], stop.signal)
  try {
    await Promise.race([test(), working.then(() => Promise.reject(new Error('the scheduler ended')))])
  } finally {
    stop.abort()
    await working
  }
}

describe('an engine that is planted with one line', () => {
  it('gets jobs, runs them, and tells how they end', async () => {
    const ids = [await submit('--', 'a'), await submit('--bundles', '2', '--', 'b'), await submit('--', 'c')]
    const [first = 0, gang = 0, third = 0] = ids
    await whileWorking(async () => {
      await waitUntil(() => known.size === 2, 'it to have as many as may wait in it')
      expect(orders.find(({ key }) => key === keyOf(gang))).toMatchObject({
        spec: { command: 'b', bundles: 2 },
        environment: { MUSTER_JOB: String(gang), MUSTER_ATTEMPT: '1' },
      })
      await waitUntil(() => store.report()?.waits?.[first] !== undefined, 'the report to say why it waits')
      const shown = await muster(['job', 'show', String(first)])
      expect(shown.output).toContain('the moon is down')
      expect(shown.output).toContain('2030-03-17')
      expect((await muster(['job', 'show', String(third)])).output).toContain('when fewer jobs wait there')
      known.set(keyOf(first), 'running')
      await waitUntil(() => kind(first) === 'running' && known.size === 3, 'one to run and another one to follow')
      expect((await muster(['job', 'list'])).output).toMatch(/running\t\S+ s\t\d\d:\d\d\tPlanted crater\[1-2\]\t/)
      expect((await muster(['job', 'show', String(first)])).output).toMatch(
        /^bundle 0: +Planted on crater\[1-2\]: started$/m,
      )
      expect((await muster(['job', 'show', String(gang)])).output).toMatch(/^bundles 0-1: +Planted/m)
      const { output } = await muster(['job', 'show', String(first), '--json'])
      expect(JSON.parse(output)).toMatchObject({ nodes: 'crater[1-2]' })
      expect((await muster(['pack', '--engine', 'embedded'])).output).toContain('3 with Planted (1, 2, 3)')
      expect((await muster(['job', 'logs', String(gang), '--rank', '1'])).output).toBe(`log of ${keyOf(gang)} 1\n`)
      expect((await muster(['job', 'logs', String(gang), '--all'])).output).toBe(`  0-1  log of ${keyOf(gang)} 0\n`)
      known.set(keyOf(first), 0)
      known.set(keyOf(gang), 3)
      known.set(keyOf(third), 'running')
      // It starts one of them again by itself.
      await waitUntil(() => kind(third) === 'running', 'the third to run')
      known.set(keyOf(third), 'waiting')
      await waitUntil(() => kind(third) === 'pending', 'the third to wait again')
      known.set(keyOf(third), 0)
      await waitUntil(() => ids.every((id) => ['done', 'failed'].includes(kind(id) ?? '')), 'all to end')
    })
    expect(ids.map(kind)).toEqual(['done', 'failed', 'done'])
    // Where it ran stays known, whatever the engine still knows.
    expect((await muster(['job', 'show', '1'])).output).toMatch(/^bundle 0: +Planted on crater\[1-2\]: exit 0$/m)
    expect((await muster(['job', 'list'])).output).toMatch(/done\t\S+ s\t\d\d:\d\d\tPlanted crater\[1-2\]\t/)
  })

  it('runs a job nowhere again that it had at another address, and says so', async () => {
    const id = await submit('--retries', '3', '--', 'a')
    const next = await submit('--', 'b')
    onStart = ({ spec }) => (spec.command === 'a' ? 'running' : 'waiting')
    await whileWorking(async () => {
      await waitUntil(() => kind(id) === 'running' && known.size === 2, 'one to run and one to wait')
    })
    const there = new Map(known)
    known.clear()
    orders.length = 0
    address = 'mars'
    const whyOf = () => store.report()?.waits?.[id]?.why
    await whileWorking(async () => {
      const keys = [keyOf(id), keyOf(next)]
      await waitUntil(() => keys.every((key) => orders.some((order) => order.key === key)), 'both to be looked for')
      expect(new Set(orders.map((order) => order.kind))).toEqual(new Set(['check']))
      // What an engine says that has never had it.
      for (const key of keys) known.set(key, 'forgotten')
      await waitUntil(() => whyOf() !== undefined, 'the report to name it')
      expect(whyOf()).toBe(
        `Planted was at moon when this job was handed over, and nothing of it is at mars. Put that back in hosts.yaml or the kubeconfig, or give the job up: muster job cancel --forget ${id}`,
      )
      expect([kind(id), kind(next), store.get(id)?.attempt]).toEqual(['running', 'pending', 1])
      // One that knows it is the same cluster.
      known.set(keyOf(id), 'running')
      await waitUntil(() => whyOf() === undefined, 'it to be found')
    })
    address = 'moon'
    for (const [key, report] of there) known.set(key, report)
    await whileWorking(async () => {
      await waitUntil(() => store.report()?.waits?.[next]?.why === 'the moon is down', 'the other one to be followed')
      for (const key of there.keys()) known.set(key, 0)
      await waitUntil(() => kind(id) === 'done' && kind(next) === 'done', 'both to end')
    })
  })

  it('follows the output of a job that waits, from its start to its end', async () => {
    const id = await submit('--', 'a')
    const stopped = await submit('--hold', '--', 'b')
    const ends = [id, stopped].map((one) => muster(['job', 'logs', String(one), '--follow']))
    await whileWorking(async () => {
      await waitUntil(() => known.get(keyOf(id)) === 'waiting', 'it to be handed over')
      known.set(keyOf(id), 'running')
      await waitUntil(() => kind(id) === 'running', 'it to run')
      known.set(keyOf(id), 0)
      await waitUntil(() => kind(id) === 'done', 'it to end')
    })
    expect(await ends[0]).toMatchObject({ exitCode: 0, output: `log of ${keyOf(id)} alone\n` })
    await muster(['job', 'cancel', String(stopped)])
    const cancelled = await ends[1]
    expect(cancelled?.messages).toMatch(/^muster: job \d+ is held\. Run: muster job release \d+\n/)
    expect(cancelled?.messages).toContain(`job ${stopped} is cancelled: bundle 0 has no output`)
  })

  it.each([
    { options: [] },
    { options: ['--json'] },
  ])('follows the output of a job through its attempts: options $options', async ({ options }) => {
    const id = await submit('--retries', '1', '--', 'a')
    const followed = muster(['job', 'logs', String(id), '--follow', ...options])
    const isFollowed = async (attempt: number) => {
      const key = keyOf(id, attempt)
      await waitUntil(() => known.get(key) === 'waiting', `attempt ${attempt} to be handed over`)
      known.set(key, 'running')
      await waitUntil(() => kind(id) === 'running' && read.has(key), `attempt ${attempt} to be followed`)
    }
    await whileWorking(async () => {
      await isFollowed(1)
      known.set(keyOf(id), 3)
      await isFollowed(2)
      await muster(['job', 'requeue', String(id)])
      await isFollowed(3)
      known.set(keyOf(id, 3), 0)
      await waitUntil(() => kind(id) === 'done', 'it to end')
    })
    const { exitCode, output, messages } = await followed
    const logs = [1, 2, 3].map((one) => `log of ${keyOf(id, one)} alone\n`)
    expect(exitCode).toBe(0)
    if (options.length === 0) expect(output).toBe(logs.join(''))
    else {
      const events = output.trim().split('\n')
      const said = events.map((line) => JSON.parse(line)).map(({ attempt, text }) => [attempt, text])
      expect(said).toEqual(logs.map((text, index) => [index + 1, text]))
    }
    expect(messages.split('\n').slice(-3)).toEqual([
      `muster: attempt 1 of job ${id} ended (exit 3): attempt 2 follows when it starts`,
      expect.stringMatching(
        `^muster: attempt 2 of job ${id} ended( \\(requeued\\))?: attempt 3 follows when it starts$`,
      ),
      '',
    ])
  })

  it('ends following where the next attempt is cancelled before it starts', async () => {
    const id = await submit('--retries', '1', '--', 'a')
    const followed = muster(['job', 'logs', String(id), '--follow'])
    await whileWorking(async () => {
      await waitUntil(() => known.size === 1, 'it to be handed over')
      known.set(keyOf(id), 'running')
      await waitUntil(() => kind(id) === 'running' && read.has(keyOf(id)), 'it to be followed')
      known.set(keyOf(id), 3)
      await waitUntil(() => store.get(id)?.attempt === 2, 'it to be tried again')
      await muster(['job', 'cancel', String(id)])
      expect(kind(id)).toBe('cancelled')
      const { exitCode, messages } = await followed
      expect(exitCode).toBe(0)
      expect(messages).toContain(`muster: job ${id} is cancelled: attempt 2 did not start\n`)
    })
  })

  it('says that the output of a job was deleted, not that it printed nothing', async () => {
    onStart = () => 'running'
    const id = await submit('--', 'a')
    await whileWorking(async () => {
      await waitUntil(() => kind(id) === 'running', 'it to run')
      logs.set(keyOf(id), 'none')
      // It may be about to make them.
      expect(await muster(['job', 'logs', String(id)])).toMatchObject({ exitCode: 0, output: '', messages: '' })
      known.set(keyOf(id), 0)
      await waitUntil(() => kind(id) === 'done', 'it to end')
    })
    expect(await muster(['job', 'logs', String(id)])).toMatchObject({
      exitCode: 2,
      messages: expect.stringMatching(
        /^muster: no output of job \d+ on Planted: its files were deleted\nmuster job clean, /,
      ),
    })
  })

  it('loses jobs that it does not know any more, and only those that ran', async () => {
    const [ran, retried, waits] = [await submit('--', 'a'), await submit('--retries', '1', '--', 'b'), 3]
    await whileWorking(async () => {
      await waitUntil(() => known.size === 2, 'it to have them')
      for (const id of [ran, retried]) known.set(keyOf(id), 'running')
      await waitUntil(() => kind(ran) === 'running' && kind(retried) === 'running', 'them to run')
      expect(await submit('--', 'c')).toBe(waits)
      await waitUntil(() => known.has(keyOf(waits)), 'it to have another one')
      known.delete(keyOf(waits))
      for (const id of [ran, retried]) known.set(keyOf(id), 'forgotten')
      await waitUntil(() => kind(ran) === 'lost' && store.get(retried)?.attempt === 2, 'the one to be lost')
      await waitUntil(() => known.has(keyOf(waits)), 'the one that had not begun to be handed over again')
    })
    expect(store.get(ran)?.state).toMatchObject({ reason: 'Planted no longer knows it' })
    expect(kind(waits)).toBe('pending')
  })

  it('stops jobs that are cancelled here, and a job that is stopped there is cancelled, not tried again', async () => {
    const [here, there] = [await submit('--', 'a'), await submit('--retries', '5', '--', 'b')]
    await whileWorking(async () => {
      await waitUntil(() => known.size === 2, 'it to have them')
      for (const id of [here, there]) known.set(keyOf(id), 'running')
      await waitUntil(() => kind(here) === 'running' && kind(there) === 'running', 'them to run')
      await muster(['job', 'cancel', String(here)])
      known.set(keyOf(there), 'cancelled')
      await waitUntil(() => kind(here) === 'cancelled' && kind(there) === 'cancelled', 'both to end')
    })
    expect(orders).toContainEqual({ kind: 'stop', key: keyOf(here) })
    expect(store.get(there)?.state).toMatchObject({ kind: 'cancelled', reason: 'cancelled in Planted' })
  })

  it('says itself how a job ended, and what a dry run would do', async () => {
    const [slow, refused] = [await submit('--', 'a'), await submit('--', 'b')]
    await whileWorking(async () => {
      await waitUntil(() => known.size === 2, 'it to have them')
      known.set(keyOf(slow), { kind: 'gone', reason: 'too slow', isTimedOut: true })
      known.set(keyOf(refused), { kind: 'refused', reason: 'no such thing' })
      await waitUntil(() => kind(slow) === 'timed-out' && kind(refused) === 'failed', 'both to end')
    })
    expect(store.get(slow)?.state).toMatchObject({ reason: 'too slow' })
    expect(store.get(refused)?.state).toMatchObject({ reason: 'no such thing' })
    const trial = await trySubmit('--dry-run', '--', 'c')
    expect([trial.exitCode, trial.output]).toEqual([1, 'run c\nit would never start\n'])
  })

  it('keeps its jobs in the queue while it cannot be used', async () => {
    trouble = 'its controller does not answer'
    const first = await submit('--', 'a')
    await whileWorking(async () => {
      await waitUntil(() => store.report()?.down['@planted'] === trouble, 'its trouble to be reported')
      const shown = (await muster(['job', 'show', String(first)])).output
      expect(shown).toContain('cannot reach Planted: its controller does not answer')
      expect([kind(first), kind(await submit('--', 'b'))]).toEqual(['pending', 'queued'])
      expect(known.size).toBe(0)
      trouble = undefined
      await waitUntil(() => known.size === 2, 'it to have both')
    })
  })

  it('reads metrics while its jobs run and once more when they have ended', async () => {
    const [one, gang] = [
      await submit('--metric', 'loss', '--metric', 'max:acc', '--', 'a'),
      await submit('--metric', 'loss', '--bundles', '2', '--', 'b'),
    ]
    logs.set(keyOf(one), 'loss=3 acc=.5\n10%\rloss=2\r')
    await whileWorking(async () => {
      await waitUntil(() => known.size === 2, 'it to have them')
      for (const id of [one, gang]) known.set(keyOf(id), 'running')
      await waitUntil(() => store.results.of(one).loss !== undefined, 'them to be read')
      expect(store.results.of(one)).toEqual({ loss: '2', acc: '.5' })
      logs.set(keyOf(one), "it's loss=1 acc=.75")
      logs.set(keyOf(gang), 'loss=-7\n')
      for (const id of [one, gang]) known.set(keyOf(id), 0)
      await waitUntil(() => store.results.unread().length === 0 && kind(gang) === 'done', 'them to be read again')
    })
    expect([one, gang].map((id) => store.results.of(id))).toEqual([{ loss: '1', acc: '.75' }, { loss: '-7' }])
  })

  it('runs a study, in which a trial fails whose log stays unreadable', async () => {
    onStart = ({ key, environment: { size = '' } }) => {
      logs.set(key, size === '4' ? undefined : `loss=${Math.abs(Number(size) - 3)}\n`)
      return 0
    }
    const create = ['study', 'create', 's', '--engine', 'planted', '--param', 'size=int:1:6', '--metric', 'min:loss']
    expect((await muster([...create, '--method', 'random', '--', 'a'])).exitCode).toBe(0)
    // It keeps the rounds short.
    const other = await submit('--', 'b')
    known.set(keyOf(other), 'running')
    await whileWorking(async () => {
      await waitUntil(() => store.studies.find('s')?.state.kind === 'done', 'all trials to be over', 30_000)
    })
    const shown = (await muster(['study', 'results', 's', '--json'])).output.trim().split('\n')
    const trials = shown.map((line) => JSON.parse(line))
    expect(trials).toHaveLength(6)
    for (const { state, parameters, metrics } of trials) {
      const size = Number(parameters.size)
      expect([state, metrics]).toEqual(size === 4 ? ['failed', {}] : ['done', { loss: Math.abs(size - 3) }])
    }
    expect(trials[0].parameters).toEqual({ size: '3' })
  })

  it('refuses what it cannot carry out', async () => {
    expect((await trySubmit('--silent', '10m', '--', 'a')).messages).toContain(
      '--engine planted cannot be used with --silent',
    )
    expect((await trySubmit('--', 'a'.repeat(1001))).messages).toContain('the command is too long for Planted')
    expect((await muster(['job', 'submit', '--engine', 'x', '--', 'a'])).messages).toContain('unknown engine: x')
  })
})
