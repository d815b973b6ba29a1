/** Drift: a folder of what hosts hold with the rows that come out of it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { formatDrift } from '../../../../src/cli/env/check.ts'
import { TERMINAL } from '../../../../src/cli/output/table.ts'
import { driftOf, itemsOf } from '../../../../src/ops/env/drift.ts'
import {
  differingPart,
  type PrefixFacts,
  packageOfCondaFile,
  packageOfDist,
  type SystemFacts,
} from '../../../../src/ops/env/facts.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/ops/env/drift')

type PlainHost = {
  readonly system?: SystemFacts
  /** Null: there is none. Packages as `VERSION` or `VERSION BUILD` of conda. */
  readonly environment: { readonly python?: string; readonly packages: Readonly<Record<string, string>> } | null
}
type Fixture = {
  readonly about: string
  readonly followed: string
  readonly hosts: Readonly<Record<string, PlainHost>>
  readonly comparedWith?: string
  readonly rows: readonly unknown[]
}

function prefixOf(environment: PlainHost['environment']): PrefixFacts {
  if (environment === null) return { kind: 'none' }
  const { packages, ...rest } = environment
  const all = Object.entries(packages).map(([name, text]) => {
    const [version = '', build] = text.split(' ')
    const by = build === undefined ? ('pip' as const) : ('conda' as const)
    return [name, { name, version, by, ...(build === undefined ? {} : { build }) }] as const
  })
  return { kind: 'venv', path: '/opt/lab', packages: new Map(all), broken: [], ...rest }
}

describe('drift', () => {
  it.each(readdirSync(FIXTURES))('%s', (file) => {
    const fixture = JSON.parse(readFileSync(join(FIXTURES, file), 'utf8')) as Fixture
    const hosts = Object.entries(fixture.hosts).map(
      ([host, { system, environment }]) => [host, itemsOf(system, prefixOf(environment))] as const,
    )
    const { followed, rows } = driftOf(fixture.followed, new Map(hosts))
    const told = rows.map(({ values, ...row }) => {
      const all = [...values].map(([host, value]) => [host, value ?? null])
      return { ...row, reference: row.reference ?? null, hosts: Object.fromEntries(all) }
    })
    expect({ comparedWith: followed, rows: told }).toEqual({ comparedWith: fixture.comparedWith, rows: fixture.rows })
  })
})

describe('the table of drift', () => {
  const environment = (numpy: string) => prefixOf({ python: '3.11.7', packages: { numpy, torch: '2.1.0' } })
  const drift = driftOf(
    'm1',
    new Map([
      ['m1', itemsOf(undefined, environment('1.26.4'))],
      ['m2', itemsOf(undefined, environment('1.25.0'))],
      ['m3', itemsOf(undefined, environment('1.25.0'))],
      ['m4', itemsOf(undefined, { kind: 'none' })],
    ]),
  )

  it('has one column for equal hosts', () => {
    expect(formatDrift(drift, 80, TERMINAL)).toBe(
      [
        '         what         m1      m[2-3]  m4',
        'blocker  environment  venv    =       not there',
        'risk     numpy        1.26.4  1.25.0  =',
        '',
      ].join('\n'),
    )
  })

  it('has one line per item if columns are too wide', () => {
    expect(formatDrift(drift, 44, TERMINAL)).toBe(
      [
        '         what         m1      others',
        'blocker  environment  venv    m4 not there',
        'risk     numpy        1.26.4  m[2-3] 1.25.0',
        '',
      ].join('\n'),
    )
  })

  it('has one line per value if that is too wide, too', () => {
    expect(formatDrift(drift, 30, TERMINAL)).toBe(
      [
        'blocker  environment',
        '           m1 venv',
        '           m4 not there',
        'risk     numpy',
        '           m1 1.26.4',
        '           m[2-3] 1.25.0',
        '',
      ].join('\n'),
    )
  })
})

describe('packages by the names of files', () => {
  it.each([
    ['Flask_Cors-4.0.0.dist-info', 'Flask_Cors', '4.0.0'],
    ['ruamel.yaml-0.18.6.dist-info', 'ruamel.yaml', '0.18.6'],
    ['torch-2.1.0+cu121.dist-info', 'torch', '2.1.0+cu121'],
    ['old_thing-1.0-py3.11.egg-info', 'old_thing', '1.0'],
  ])('%s', (file, name, version) => {
    expect(packageOfDist(file)).toEqual({ name, version, by: 'pip' })
  })

  it.each([
    '~umpy-1.26.4.dist-info',
    '-umpy-1.0.dist-info',
    'x.dist-info',
    "a-1;rm -rf'.dist-info",
    '',
  ])('%j is none', (file) => {
    expect(packageOfDist(file)).toBeUndefined()
  })

  it('conda also names the build', () => {
    const expected = { name: 'nvidia-nccl-cu12', version: '2.18.1', by: 'conda', build: 'h0_1' }
    expect(packageOfCondaFile('nvidia-nccl-cu12-2.18.1-h0_1')).toEqual(expected)
    expect(packageOfCondaFile('history')).toBeUndefined()
  })

  it.each([
    ['2.1.0', '1.9', 'major'],
    ['2.1.0', '2.2', 'minor'],
    ['2.1', '2.1.1', 'other'],
    ['2.1.0', '2.1.0+cu121', 'other'],
    ['1!2.1', '2.1', 'other'],
  ])('%s and %s differ in the %s part', (one, two, part) => {
    expect(differingPart(one, two)).toBe(part)
  })
})
