/** What packages plans, from a folder of answers, and which mistakes in hosts.yaml it reports. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { area as maker } from '../../../../src/ops/packages/packages.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'
import { declaredOf, readFixture, toldOf, worldOf } from '../kernel/plan-fixture.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/ops/packages')

describe('the plan of packages', () => {
  it.each(readdirSync(FIXTURES))('%s', (name) => {
    const fixture = readFixture(join(FIXTURES, name))
    const area = maker.prepare(declaredOf({ ...fixture, yaml: ['hosts: { m1: , m2: , m3: }', ...fixture.yaml] }))
    if (area === undefined) throw new Error('the fixture declares no packages')
    const operations = area.plan(fixture.direction, worldOf(fixture, area.factsOf))
    expect(toldOf(operations)).toEqual(fixture.operations)
  })
})

describe('packages in hosts.yaml', () => {
  it.each([
    [
      'an option',
      '{ install: [--reinstall] }',
      '2:23: install[1] --reinstall is not a package; write NAME or NAME=VERSION',
    ],
    ['a removal', '{ install: [nano-] }', '2:23: install[1] nano- is not a package; write NAME or NAME=VERSION'],
    ['a pattern', '{ install: ["lib*"] }', '2:23: install[1] lib* is not a package; write NAME or NAME=VERSION'],
    ['shell', '{ install: [$(reboot)] }', '2:23: install[1] $(reboot) is not a package; write NAME or NAME=VERSION'],
    [
      'a version that removes',
      '{ install: [a1=2-] }',
      '2:23: install[1] a1=2- is not a package; write NAME or NAME=VERSION',
    ],
    ['the root directory', '{ prefixes: [/] }', '2:24: prefixes[1] / must begin with / and name a directory below it'],
    ['a way out', '{ prefixes: [/opt/../etc] }', '2:24: prefixes[1] /opt/../etc may not contain ..'],
    ['nothing', '{ hosts: m1 }', '2:11: packages has neither install nor prefixes'],
    ['an unknown host', '{ install: [nano], hosts: m9 }', '2:37: there is no host m9; did you mean m1?'],
    [
      'a package twice',
      '[{ install: [nano] }, { install: [nano=1], hosts: m1 }]',
      '2:45: nano is declared twice for m1',
    ],
    ['an unknown key', '{ instal: [nano] }', '2:13: unknown key instal in packages; did you mean install?'],
  ])('reports %s', (_, section, line) => {
    expect(() => readInventory(`hosts: { m1: , m2: }\npackages: ${section}\n`)).toThrow(`hosts.yaml:${line}`)
  })

  it('takes names and versions of Debian and of RPM', () => {
    const words =
      '[g++, libstdc++6=12.2.0-14+deb12u1, libc6=2:2.36~rc1-9, NetworkManager=1:1.40.16-9.el9, ucx=1.14^git1-1]'
    expect(() => readInventory(`hosts: { m1: }\npackages: { install: ${words} }\n`)).not.toThrow()
  })
})
