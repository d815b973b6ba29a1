/** The whole way of a change on hosts that answer as the test says: who is asked how often. */
import { describe, expect, it } from 'vitest'
import { areaOf } from '../../../../src/ops/kernel/area.ts'
import { changeHosts } from '../../../../src/ops/kernel/change.ts'
import type { Plan } from '../../../../src/ops/kernel/plan.ts'
import { operationOf, StandInHosts } from './stand-in-hosts.ts'

/** Brings up a file on m1 while m2 is away, for another reason each time; `steps` gives the steps of each look. */
async function bringUp(steps: readonly (readonly string[])[]) {
  let asked = 0
  const hosts = new StandInHosts((host, script) => {
    asked += 1
    if (host === 'm2') return { outcome: { kind: 'unreachable', reason: `the connection is made, try ${asked}` } }
    return script.includes('muster-lock-holder') ? { outcome: { kind: 'exit', code: 76 } } : {}
  })
  const looks = [...steps]
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => ['m1', 'm2'],
      factsOf: () => ({}),
      plan: () => [operationOf('file', 'm1', looks.shift() ?? [])],
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
  return { end: end.kind, plans: plans.length, ran: hosts.scripts.filter((each) => /^m1 \w+$/.test(each)) }
}

describe('a change', () => {
  it('is asked for once, though a host that is away is so for another reason meanwhile', async () => {
    expect(await bringUp([['write'], ['write'], []])).toEqual({ end: 'done', plans: 1, ran: ['m1 write'] })
  })

  it('is asked for again when something else would be done now', async () => {
    const both = [['write'], ['write', 'more'], []]
    expect(await bringUp(both)).toEqual({ end: 'done', plans: 2, ran: ['m1 write', 'm1 more'] })
  })
})
