/** What env plans: a folder of facts with the steps or the sentence that come out of them. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { area as maker } from '../../../../src/ops/env/env.ts'
import { declaredOf, readFixture, toldOf, worldOf } from '../kernel/plan-fixture.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/ops/env/plan')

describe('the plan of env', () => {
  it.each(readdirSync(FIXTURES))('%s', (name) => {
    const fixture = readFixture(join(FIXTURES, name))
    const yaml = ['hosts: { m1: , m2: , m3: }', ...fixture.yaml]
    const area = maker.prepare(declaredOf({ ...fixture, yaml }))
    if (area === undefined) throw new Error('the fixture declares no environment')
    const areaFacts = worldOf(fixture, area.factsOf)
    const operations = area.plan(fixture.direction, areaFacts)
    expect(toldOf(operations)).toEqual(fixture.operations)
    expect(JSON.stringify(area.plan(fixture.direction, areaFacts))).toBe(JSON.stringify(operations))
  })
})
