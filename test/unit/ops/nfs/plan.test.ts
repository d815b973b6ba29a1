/** What NFS plans and what it says about what is there: a folder of facts, each laid over a server and a client that are as declared. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import { area as maker } from '../../../../src/ops/nfs/nfs.ts'
import { declaredOf, type PlanFixture, readFixture, toldOf, worldOf } from '../kernel/plan-fixture.ts'

type Fixture = PlanFixture & {
  /** `HOST GRAVITY ID: CAUSE` of a look. */
  readonly findings: readonly string[]
}

const FIXTURES = join(import.meta.dirname, '../../../fixtures/ops/nfs')
const asDeclared = readFixture<Fixture>(join(FIXTURES, 'as-declared.json'))
const endpoints = new Map(
  ['8', '10'].map((number) => [`m${number}`, { transport: 'ssh2', address: `10.0.0.${number}` } as Endpoint]),
)

describe('the plan of NFS', () => {
  it.each(readdirSync(FIXTURES))('%s', async (name) => {
    const fixture = readFixture<Fixture>(join(FIXTURES, name))
    const { direction, away = {} } = fixture
    const yaml = ['hosts: { m8: , m10: }', ...fixture.yaml]
    const area = maker.prepare({ ...declaredOf({ ...fixture, yaml }), endpoints })
    if (area === undefined) throw new Error('the fixture declares no NFS')
    const answering = area.hosts.filter((host) => away[host] === undefined)
    const hosts = answering.map((host) => [host, { ...asDeclared.hosts[host], ...fixture.hosts[host] }] as const)
    const areaFacts = worldOf({ hosts: Object.fromEntries(hosts), away }, area.factsOf)

    expect(toldOf(area.plan(direction, areaFacts))).toEqual(fixture.operations)
    const hostExec = { exec: () => Promise.reject(new Error('a look runs nothing')) }
    const findings = await area.verify(areaFacts, hostExec, 'status')
    expect(findings.map(({ host, gravity, id, cause }) => `${host} ${gravity} ${id}: ${cause}`)).toEqual(
      fixture.findings,
    )
  })
})
