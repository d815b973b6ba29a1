/** Plans out of operations: order, what cannot be done because of others, selections, statuses and words. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Area } from '../../../../src/ops/kernel/area.ts'
import { statusesOf, verifyAreas } from '../../../../src/ops/kernel/bring-up.ts'
import { countPlan, formatPlan, planEvent, stepsText } from '../../../../src/ops/kernel/format-plan.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import { hasSteps, makePlan } from '../../../../src/ops/kernel/plan.ts'
import { operationOf, StandInHosts } from './stand-in-hosts.ts'

const HOSTS = ['m8', 'm9', 'm10']

function areaOf(operations: readonly Operation[], name = 'area'): Area {
  return {
    name,
    hosts: HOSTS,
    areFactsRoot: false,
    isUsedByJobs: false,
    digest: () => name,
    preflights: () => [],
    factsOf: () => ({}),
    plan: () => operations,
    verify: async () => [],
  }
}

function worldsOf(away: Readonly<Record<string, string>> = {}, names = ['area']) {
  const there = HOSTS.filter((host) => !(host in away))
  const areaFacts = {
    facts: new Map(there.map((host) => [host, { atMs: 5, facts: {} }])),
    away: new Map(Object.entries(away)),
  }
  return new Map(names.map((name) => [name, areaFacts]))
}

const idsOf = (operations: readonly Operation[]) => operations.map(({ id }) => id)

describe('the order', () => {
  it('puts dependencies first, and otherwise keeps the order', () => {
    const operations = [
      operationOf('mount', 'm8', ['x'], ['area/export@m10']),
      operationOf('a', 'm9', ['x']),
      operationOf('export', 'm10', ['x']),
    ]
    const plan = makePlan('up', [areaOf(operations)], worldsOf())
    expect(idsOf(plan.operations)).toEqual(['area/export@m10', 'area/mount@m8', 'area/a@m9'])
  })

  it('refuses a circle, and two operations with one name', () => {
    const circle = [operationOf('a', 'm8', ['x'], ['area/b@m9']), operationOf('b', 'm9', ['x'], ['area/a@m8'])]
    expect(() => makePlan('up', [areaOf(circle)], worldsOf())).toThrow(
      'operations wait for each other: area/a@m8 → area/b@m9 → area/a@m8',
    )
    const twice = [operationOf('a', 'm8', ['x']), operationOf('a', 'm8', ['y'])]
    expect(() => makePlan('up', [areaOf(twice)], worldsOf())).toThrow('two operations are called area/a@m8')
  })

  it('holds for any operations without circles', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.nat({ max: 30 })), { maxLength: 30 }),
        fc.infiniteStream(fc.nat()),
        (edges, shuffle) => {
          const all = edges.map((to, index) =>
            operationOf(
              `o${index}`,
              HOSTS[index % 3] ?? '',
              ['x'],
              to.filter((other) => other < index).map((other) => `area/o${other}@${HOSTS[other % 3]}`),
            ),
          )
          const keys = new Map(all.map((operation) => [operation, shuffle.next().value]))
          const plan = makePlan(
            'up',
            [areaOf(all.toSorted((one, other) => (keys.get(one) ?? 0) - (keys.get(other) ?? 0)))],
            worldsOf(),
          )
          const ids = idsOf(plan.operations)
          expect(ids).toHaveLength(all.length)
          for (const { id, after } of plan.operations)
            for (const before of after) expect(ids.indexOf(before)).toBeLessThan(ids.indexOf(id))
        },
      ),
    )
  })

  it('of areas is reversed for down', () => {
    const areas = ['first', 'second'].map((name) =>
      areaOf([{ ...operationOf('a', 'm8', ['x']), id: `${name}/a@m8`, area: name }], name),
    )
    const order = (direction: 'up' | 'down') =>
      idsOf(makePlan(direction, areas, worldsOf({}, ['first', 'second'])).operations)
    expect([order('up'), order('down')]).toEqual([
      ['first/a@m8', 'second/a@m8'],
      ['second/a@m8', 'first/a@m8'],
    ])
  })
})

describe('an operation', () => {
  const operations = [operationOf('export', 'm10', ['x']), operationOf('mount', 'm8', ['x'], ['area/export@m10'])]
  const verdictOf = (plan: { operations: readonly Operation[] }, id: string) =>
    plan.operations.find((each) => each.id === id)?.verdict

  it('is blocked if it needs an unreachable host', () => {
    const plan = makePlan('up', [areaOf(operations.slice(1))], worldsOf({ m10: 'no route' }))
    expect(verdictOf(plan, 'area/mount@m8')).toMatchObject({
      kind: 'blocked',
      findings: [{ cause: 'it needs “area/export@m10”, and m10 cannot be reached: no route' }],
    })
    expect(verdictOf(plan, 'area/host@m10')).toMatchObject({
      kind: 'blocked',
      findings: [{ cause: 'not reached: no route' }],
    })
  })

  it('is blocked if it needs an operation that is pending and not selected', () => {
    const only = { isSelected: (host: string) => host === 'm8' }
    const plan = makePlan('up', [areaOf(operations)], worldsOf(), only)
    const cause = 'it needs “export on m10 (area)”, which has not been done and is not selected. Select m10 too'
    expect(verdictOf(plan, 'area/mount@m8')).toMatchObject({ kind: 'blocked', findings: [{ cause }] })
    const done = makePlan('up', [areaOf([operationOf('export', 'm10', []), ...operations.slice(1)])], worldsOf(), only)
    expect(verdictOf(done, 'area/mount@m8')).toMatchObject({ kind: 'steps' })
    expect(idsOf(done.operations)).toEqual(['area/mount@m8'])
  })
})

describe('the steps that cannot start', () => {
  const open = (name: string, host: string, after: readonly string[] = []) => operationOf(name, host, ['x'], after)

  it('are those behind a blocked operation, on its host or elsewhere', () => {
    const operations = [
      open('export', 'm10'),
      open('key', 'm8', ['area/export@m10']),
      open('same host', 'm8'),
      open('elsewhere', 'm9', ['area/key@m8']),
      open('free', 'm7'),
    ]
    const plan = makePlan('up', [areaOf(operations)], worldsOf(), { isSelected: (host) => host !== 'm10' })
    expect(countPlan(plan)).toMatchObject({ blocked: 1, steps: 3, stuckSteps: 2 })
    expect(stepsText(countPlan(plan))).toBe('1 of 3 steps')
  })
})

describe('the text of a plan', () => {
  const step = {
    id: 'make',
    title: 'make it',
    changes: ['+ new', '- old \u001b[31m'],
    undo: { title: 'take it back', script: 'x' },
  }
  const plan = makePlan(
    'up',
    [areaOf([operationOf('it', 'm8', [step]), operationOf('it', 'm9', [step]), operationOf('it', 'm10', [])])],
    worldsOf(),
  )

  const joined = (hosts: readonly string[]) => hosts.join('+')

  it('folds equal hosts, shows differences and explains a no-op', () => {
    expect(formatPlan(plan, joined, undefined, true)).toBe(`area · it · m8+m9
  make it
    + new
    - old \\x1b[31m
    if it fails: take it back
area · it · m10
  nothing to do: it is so
`)
  })

  it('begins with what changes, and folds what needs nothing into a line for each area and its hosts', () => {
    const idle = ['key', 'hosts'].flatMap((name) => HOSTS.map((host) => operationOf(name, host, [])))
    const mixed = [...idle, ...plan.operations.toReversed()]
    const lines = (direction: 'up' | 'down', operations = mixed, isWhole = false) =>
      formatPlan({ direction, operations }, joined, undefined, isWhole).split('\n')
    expect(lines('up')).toEqual([
      'area · it · m9+m8',
      ...['  make it', '    + new', '    - old \\x1b[31m', '    if it fails: take it back'],
      'nothing to do',
      '  area · key, hosts · m8+m9+m10',
      '  area · it · m10',
      '',
    ])
    const reasons = ['area · key · m8+m9+m10', '  nothing to do: it is so', 'area · hosts · m8+m9+m10']
    for (const whole of [lines('up', mixed, true), lines('down')]) expect(whole.slice(5, 8)).toEqual(reasons)
    expect(lines('up', idle).slice(0, 3)).toEqual(reasons)
  })

  it('lists unreachable hosts at the end, each with its reason', () => {
    const of = (away: Readonly<Record<string, string>>) =>
      formatPlan(makePlan('up', [areaOf([operationOf('it', 'm10', ['x'])])], worldsOf(away)), (hosts) =>
        hosts.join('+'),
      )
    expect(of({ m8: 'no route', m9: 'refused' })).toBe(`area · it · m10
  x
area · the host · m8+m9
  ! m8: not reached: no route
  ! m9: not reached: refused
`)
    expect(of({ m8: 'no route', m9: 'no route' })).toBe(`area · it · m10
  x
area · the host · m8+m9
  ! not reached: no route
`)
  })

  it('has counts, and an event without the scripts', () => {
    expect(countPlan(plan)).toMatchObject({ hosts: 3, toDo: 2, nothing: 1, blocked: 0, steps: 2 })
    expect(hasSteps(plan)).toBe(true)
    expect(plan.operations.map(planEvent).at(-1)).toEqual({
      type: 'operation',
      id: 'area/it@m10',
      area: 'area',
      host: 'm10',
      title: 'it',
      after: [],
      verdict: 'nothing',
      because: 'it is so',
    })
    expect(JSON.stringify(plan.operations.map(planEvent))).not.toContain('script')
  })
})

describe('a status', () => {
  it('is the worst of the known ones', () => {
    const differs = operationOf('b', 'm9', ['x'])
    const operations = [
      operationOf('a', 'm8', []),
      { ...differs, verdict: { ...differs.verdict, state: 'differs' } } as Operation,
    ]
    const area = areaOf(operations)
    const factsByArea = worldsOf({ m10: 'no route' })
    const plan = makePlan('up', [area], factsByArea)
    const broken = { area: 'area', host: 'm8', gravity: 'blocker', id: 'login', cause: 'cannot log in' } as const
    const of = (findings: readonly (typeof broken)[]) =>
      statusesOf([area], factsByArea, plan, findings).map(({ host, status }) => `${host} ${status}`)
    expect(of([])).toEqual(['m8 good', 'm9 differs', 'm10 away'])
    expect(of([broken])).toEqual(['m8 failed', 'm9 differs', 'm10 away'])
  })

  it('is that of the host that takes care of a shared home, and nothing is verified before that has been done', async () => {
    const kept = { kind: 'nothing', because: 'it shares /home with m8', keeper: 'm8' } as const
    const operations = (steps: readonly string[]) => [
      operationOf('key', 'm8', steps),
      { ...operationOf('key', 'm9', []), verdict: kept },
    ]
    const verified: string[] = []
    const told = async (steps: readonly string[]) => {
      const verify: Area['verify'] = async ({ facts }) => {
        verified.push([...facts.keys()].join('+'))
        return []
      }
      const area = { ...areaOf(operations(steps)), verify }
      const factsByArea = worldsOf({ m10: 'no route' })
      const plan = makePlan('up', [area], factsByArea)
      const hosts = new StandInHosts(() => ({}))
      const findings = await verifyAreas([area], factsByArea, plan, { hosts, signal: AbortSignal.abort() }, 'status')
      const statuses = statusesOf([area], factsByArea, plan, findings)
      return statuses.map(({ host, status, because }) => `${host} ${status}: ${because.join()}`).slice(0, 2)
    }
    expect(await told(['make'])).toEqual([
      'm8 missing: key: missing',
      'm9 missing: key: missing; it shares /home with m8',
    ])
    expect(await told([])).toEqual(['m8 good: it is so', 'm9 good: it is so'])
    expect(verified).toEqual(['m8+m9'])
  })
})
