/** The whole way of a change on hosts that answer as the test says: who is asked how often. */
import { describe, expect, it } from 'vitest'
import { areaOf } from '../../../../src/ops/kernel/area.ts'
import { changeHosts } from '../../../../src/ops/kernel/change.ts'
import type { Plan } from '../../../../src/ops/kernel/plan.ts'
import { type Answer, operationOf, StandInHosts } from './stand-in-hosts.ts'

/**
 * Brings up a file on m1 while m2 is away, for another reason each time; `steps` gives the steps of each look, and `locks` what
 * m1 answers to whoever wants to lock it (by default that it has no locks).
 */
async function bringUp(
  steps: readonly (readonly string[])[],
  { isAgreed = false, locks = [] }: { isAgreed?: boolean; locks?: readonly Answer[] } = {},
) {
  let asked = 0
  const lockAnswers = [...locks]
  const hosts = new StandInHosts((host, script) => {
    if (host === 'm2') asked += 1
    if (host === 'm2') return { outcome: { kind: 'unreachable', reason: `the connection is made, try ${asked}` } }
    if (!script.includes('muster-lock-holder')) return {}
    return lockAnswers.shift() ?? { outcome: { kind: 'exit', code: 76 } }
  })
  const left = [...steps]
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => ['m1', 'm2'],
      factsOf: () => ({}),
      plan: () => [operationOf('file', 'm1', left.shift() ?? [])],
    },
    undefined,
  )
  const plans: Plan[] = []
  const end = await changeHosts(
    {
      hosts,
      areas: [area],
      direction: 'up',
      mark: 'mark',
      owner: 'nobody',
      fanOut: 8,
      signal: new AbortController().signal,
      now: () => 0,
      isAgreed,
      isSelected: () => true,
      openJournal: () => ({ path: '', write: () => {} }),
    },
    {
      onPlan: (plan) => plans.push(plan),
      confirm: () => Promise.resolve(true),
      onEvent: () => {},
      onSay: () => {},
    },
  )
  const looks = steps.length - left.length
  return {
    end: end.kind,
    plans: plans.length,
    looks,
    asked,
    ran: hosts.scripts.filter((each) => /^m1 \w+$/.test(each)),
  }
}

describe('a change', () => {
  it('is confirmed once, although a host is now unreachable for another reason', async () => {
    expect(await bringUp([['write'], ['write'], []])).toMatchObject({
      end: 'done',
      plans: 1,
      looks: 3,
      ran: ['m1 write'],
    })
  })

  it('is confirmed again if the plan has changed', async () => {
    const both = [['write'], ['write', 'more'], []]
    expect(await bringUp(both)).toMatchObject({ end: 'done', plans: 2, ran: ['m1 write', 'm1 more'] })
  })

  it('reads facts only once with --yes, because the hosts are locked first', async () => {
    const told = await bringUp([['write'], []], { isAgreed: true })
    expect(told).toMatchObject({ end: 'done', plans: 1, looks: 2, asked: 2, ran: ['m1 write'] })
  })

  it('reads facts again after a lock that another Muster held', async () => {
    const busy = { outcome: { kind: 'exit', code: 75 }, stdout: 'somebody' } as const
    const told = await bringUp([['write'], ['write', 'more'], []], { isAgreed: true, locks: [busy] })
    expect(told).toMatchObject({ end: 'done', plans: 2, looks: 3, ran: ['m1 write', 'm1 more'] })
    expect(await bringUp([['write']], { isAgreed: true, locks: [busy, busy] })).toMatchObject({
      end: 'locked',
      ran: [],
    })
  })
})
