/** A head of a Ray cluster that lies: to the queue, to `ray jobs` and to `ray watch`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { TERMINAL } from '../../../src/cli/output/table.ts'
import { formatUsage } from '../../../src/cli/ray/watch.ts'
import { openRay } from '../../../src/ops/ray/job-engine.ts'
import { askForJobs, type RayJobEvent, type RayJobOrder } from '../../../src/ops/ray/jobs.ts'
import type { ClusterUsage } from '../../../src/ops/ray/usage.ts'
import { watchCluster } from '../../../src/ops/ray/watch.ts'
import { hostileHosts, resultOf } from '../../support/hostile-host/hostile-hosts.ts'
import { type Choice, mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { rayWanted } from '../../unit/ops/ray/ray-wanted.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, '../../fixtures/ray', name), 'utf8')
const signal = new AbortController().signal
const WANTED = rayWanted({
  head: { host: 'm10', isHead: true, ip: '10.0.0.1', address: '10.0.0.1', custom: {}, labels: {} },
})
const NAMES = new Map([['10.0.0.1', 'm10']])
const KEYS = ['abc-1-1-0', 'abc-2-1-0']
const FOREIGN = ['abc-9-1-0 exit 0', 'abc-9-1-0', 'end', 'down', 'trouble \x1b]0;x\x07', 'm1', 'metric abc-1-1-0 0 5']

function head(good: string, choice: Choice, note: (...how: readonly string[]) => void) {
  return hostileHosts((_, __, options) => {
    const answer = mutate(Buffer.from(good), choice, FOREIGN)
    note(...answer.how)
    // Nobody waits in a test for what is asked without a limit.
    return resultOf(answer, { stdout: Buffer.alloc(0) }, options)
  })
}

describe('a hostile head of Ray', () => {
  it('affects only the jobs that it was asked about, and prints nothing that acts', async () => {
    const good = `${KEYS[0]} running\n${KEYS[1]} exit 3\nend\n`
    await playMutations(async ({ choice, note }) => {
      const orders = KEYS.map((key) => ({ kind: 'check', key }) as const)
      const { trouble = '', reports } = await openRay(WANTED).round(orders, head(good, choice, note), signal)
      expectPrintable(trouble, 'the trouble')
      expectNoDefect(trouble, 'the trouble')
      for (const key of reports.keys()) if (!KEYS.includes(key)) throw new Error(`it spoke about ${key}`)
    })
  })

  it('lists possible jobs only, and has printable errors', async () => {
    const job = {
      type: 'job',
      submission_id: 'x',
      status: 'RUNNING',
      entrypoint: 'python a.py',
      message: 'ok',
      start_time: 1.7e12,
      end_time: null,
      driver_exit_code: null,
    }
    const lines = [
      job,
      { type: 'submitted', id: 'x' },
      { type: 'log', text: 'hello\n' },
      { type: 'stopped', isStopped: true },
      { type: 'error', reason: 'Traceback\nRuntimeError: no' },
    ]
    const good = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`
    const ORDERS: readonly RayJobOrder[] = [
      { do: 'list' },
      { do: 'stop', id: 'x' },
      { do: 'logs', id: 'x', follow: true },
    ]
    await playMutations(async ({ choice, note }) => {
      const events: RayJobEvent[] = []
      const order = choice.one(ORDERS) ?? { do: 'list' }
      const end = await askForJobs(WANTED, order, {
        hosts: head(good, choice, note),
        signal,
        timeoutMs: 1000,
        onEvent: (event) => void events.push(event),
      })
      if (end.kind !== 'done') {
        expectPrintable(end.reason, 'the reason')
        expectNoDefect(end.reason, 'the reason')
      }
      for (const event of events) {
        if (event.type !== 'job') continue
        const { startMs, endMs, exitCode } = event.job
        for (const ms of [startMs, endMs]) if (ms !== undefined) new Date(ms).toISOString()
        if (exitCode !== undefined && !Number.isSafeInteger(exitCode)) throw new Error(`its exit code is ${exitCode}`)
      }
    })
  })

  it.each([
    'usage-2.58-autoscaler-v1.json',
    'usage-2.58-autoscaler-v2.json',
  ])('is drawn as far as its answer makes sense: %s', async (name) => {
    const good = `\n${JSON.stringify(JSON.parse(fixture(name)))}\n\n{"error": "its GCS does not answer"}\n`
    await playMutations(async ({ choice, note }) => {
      const clock = new ManualClock()
      const seen: ClusterUsage[] = []
      const told: string[] = []
      const reason = await watchCluster(WANTED, {
        ...{ hosts: head(good, choice, note), clock, signal, intervalMs: 1000, rounds: 0 },
        onUsage: (usage, why) => {
          if (usage === undefined) told.push(why)
          else seen.push(usage)
        },
        onSilent: (why) => void told.push(why),
      })
      for (const words of [...told, reason ?? '']) {
        expectPrintable(words, 'the reason')
        expectNoDefect(words, 'the reason')
      }
      for (const usage of seen) {
        const text = formatUsage(usage, NAMES, TERMINAL)
        expectPrintable(text.replaceAll('\n', ''), 'the table')
        if (/NaN|Infinity/.test(text))
          throw new Error(`the table has no numbers: ${/.*(NaN|Infinity).*/.exec(text)?.[0]}`)
      }
      if (clock.timerCount > 0) throw new Error('timers are left')
    }, 0.5)
  })
})
