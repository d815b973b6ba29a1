/** The whole way of a change on hosts that answer as the test says: who is asked how often. */
import { describe, expect, it } from 'vitest'
import { clockText, timeText } from '../../../../src/base/time-text.ts'
import { areaOf } from '../../../../src/ops/kernel/area.ts'
import { changeHosts } from '../../../../src/ops/kernel/change.ts'
import { formatFinding } from '../../../../src/ops/kernel/finding.ts'
import type { Plan } from '../../../../src/ops/kernel/plan.ts'
import { type Answer, operationOf, StandInHosts } from './stand-in-hosts.ts'

const OPTIONS = {
  direction: 'up',
  mark: 'mark',
  owner: 'nobody',
  fanOut: 8,
  signal: new AbortController().signal,
  now: () => 0,
  isSelected: (_: string): boolean => true,
  openJournal: () => ({ path: '', write: () => {} }),
} as const
const HANDLERS = { confirm: () => Promise.resolve(true), onEvent: () => {}, onSay: () => {} }

/**
 * Brings up a file on m1 while m2 is away, for another reason each time; `steps` gives the steps of each look, and `locks` what
 * m1 answers to whoever wants to lock it (by default that it has no locks); a step called `bad` fails.
 */
async function bringUp(
  steps: readonly Parameters<typeof operationOf>[2][],
  { isAgreed = false, locks = [] }: { isAgreed?: boolean; locks?: readonly Answer[] } = {},
) {
  let asked = 0
  const lockAnswers = [...locks]
  const hosts = new StandInHosts((host, script) => {
    if (host === 'm2') asked += 1
    if (host === 'm2') return { outcome: { kind: 'unreachable', reason: `the connection is made, try ${asked}` } }
    if (!script.includes('muster-lock-holder')) return script === 'bad' ? { outcome: { kind: 'exit', code: 1 } } : {}
    return lockAnswers.shift() ?? { outcome: { kind: 'exit', code: 76 } }
  })
  let looks = 0
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => ['m1', 'm2'],
      factsOf: (_, host) => {
        if (host === 'm1') looks += 1
        return {}
      },
      plan: () => [operationOf('file', 'm1', steps[looks - 1] ?? [])],
    },
    undefined,
  )
  const plans: Plan[] = []
  const said: string[] = []
  const end = await changeHosts(
    { ...OPTIONS, hosts, areas: [area], isAgreed },
    { ...HANDLERS, onPlan: (plan) => plans.push(plan), onSay: (text) => said.push(text) },
  )
  return {
    end: end.kind,
    found:
      end.kind === 'done' ? end.findings.map((each) => `${each.gravity} ${each.host}: ${formatFinding(each)}`) : [],
    plans: plans.length,
    said,
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

  it('says which steps are needed again though they are done', async () => {
    const again = [['write', 'more'], ['write', 'more'], ['more']]
    expect((await bringUp(again)).found).toEqual(['blocker m1: file is still missing, though its steps are done'])
    expect((await bringUp([['write'], ['write'], ['more']])).found).toEqual([])
  })

  it('says which steps are needed again though their checks held before them, and what to do', async () => {
    const start = { id: 'start', title: 'start it', check: { script: 'runs', lack: 'it is not there' } }
    expect(await bringUp([[start], [start], [start]])).toMatchObject({
      ran: ['m1 runs'],
      found: [
        'blocker m1: file is still missing, though “start it” was already done. Something else may do the same in another way: end that or complete it by hand, then run muster status area',
      ],
    })
    const more = await bringUp([
      ['write', start],
      ['write', start],
      ['write', start],
    ])
    expect(more.found).toEqual(['blocker m1: file is still missing, though its steps are done'])
    expect((await bringUp([[start], [start], []])).found).toEqual([])
  })

  it('says so of no step where another one failed', async () => {
    const again = [
      ['write', 'bad'],
      ['write', 'bad'],
      ['write', 'bad'],
    ]
    expect(await bringUp(again)).toMatchObject({ end: 'done', ran: ['m1 write', 'm1 bad'], found: [] })
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
      said: ['m1 is being changed by another Muster (somebody)'],
    })
  })

  it.each([
    ['2026-11-27T13:51:07.123Z', timeText(Date.UTC(2026, 10, 27, 13, 51), 0)],
    ['1970-01-01T00:00:00.000Z', clockText(0)],
    ['9999-99-99T99:99:99.999Z', '9999-99-99T99:99:99.999Z'],
  ])('shows the time of the other Muster as local time: %s', async (time, shown) => {
    const busy = { outcome: { kind: 'exit', code: 75 }, stdout: `ada@m1, process 7, since ${time}` } as const
    const { said } = await bringUp([['write']], { isAgreed: true, locks: [busy, busy] })
    expect(said).toEqual([`m1 is being changed by another Muster (ada@m1, process 7, since ${shown})`])
  })
})

it('is not offered, and changes nothing, where all of its steps wait for what is blocked', async () => {
  const finding = { host: 'm1', gravity: 'blocker', id: 'x', cause: 'no disk' } as const
  const blocked = { ...operationOf('disk', 'm1', []), verdict: { kind: 'blocked', findings: [finding] } } as const
  const hosts = new StandInHosts()
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => ['m1'],
      factsOf: () => ({}),
      plan: () => [blocked, operationOf('file', 'm1', ['write'], [blocked.id])],
    },
    undefined,
  )
  const confirm = () => Promise.reject(new Error('it asks'))
  const end = await changeHosts({ ...OPTIONS, hosts, areas: [area] }, { ...HANDLERS, onPlan: () => {}, confirm })
  expect(end.kind).toBe('unchanged')
  expect(hosts.scripts).not.toContain('m1 write')
})

it.each(['check', 'verify'])('reports no host as away when the user cancels the %s after the steps', async (when) => {
  const cancel = new AbortController()
  let isWritten = false
  const hosts = new StandInHosts((_, script) => {
    if (script === 'write') isWritten = true
    return script.includes('muster-lock-holder') ? { outcome: { kind: 'exit', code: 76 } } : {}
  })
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => ['m1'],
      factsOf: () => ({}),
      plan() {
        if (isWritten && when === 'check') cancel.abort()
        return [operationOf('file', 'm1', isWritten ? [] : ['write'])]
      },
      async verify() {
        cancel.abort()
        return [{ host: 'm1', gravity: 'blocker', id: 'login', cause: 'cancelled' }]
      },
    },
    undefined,
  )
  const end = await changeHosts(
    { ...OPTIONS, hosts, areas: [area], signal: cancel.signal },
    { ...HANDLERS, onPlan: () => {} },
  )
  if (end.kind !== 'cancelled') throw new Error(`it ended as ${end.kind}`)
  expect([...(end.applied?.result.ends.values() ?? [])]).toEqual([{ kind: 'done' }])
})

it('does not verify a host that is not selected and needs steps itself', async () => {
  const verified: string[] = []
  const missing = new Set(['m1', 'm2'])
  const hosts = new StandInHosts((host, script) => {
    if (script === 'write') missing.delete(host)
    return script.includes('muster-lock-holder') ? { outcome: { kind: 'exit', code: 76 } } : {}
  })
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => ['m1', 'm2', 'm3'],
      factsOf: () => ({}),
      plan: () => ['m1', 'm2', 'm3'].map((host) => operationOf('file', host, missing.has(host) ? ['write'] : [])),
      async verify(_, { facts }) {
        verified.push(...facts.keys())
        return []
      },
    },
    undefined,
  )
  const end = await changeHosts(
    { ...OPTIONS, hosts, areas: [area], isSelected: (host) => host === 'm2' },
    { ...HANDLERS, onPlan: () => {} },
  )
  expect(end).toMatchObject({ kind: 'done', findings: [] })
  expect(verified).toEqual(['m2', 'm3'])
})
