/** What env plans: a folder of facts with the steps or the sentence that come out of them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseHostsYaml } from '../../../../src/inventory/hosts-yaml.ts'
import { envArea } from '../../../../src/ops/env/env.ts'
import type { DeclaredFile, Direction } from '../../../../src/ops/kernel/area.ts'
import { type Known, known } from '../../../../src/ops/kernel/fact.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/ops/env/plan')

type Fixture = {
  readonly about: string
  readonly direction: Direction
  /** Of hosts.yaml, below `hosts: { m1: , m2: , m3: }`. */
  readonly yaml: readonly string[]
  readonly file?: DeclaredFile
  readonly away?: Readonly<Record<string, string>>
  /** Of each host the answers to the facts as they are printed, or `!` and why one is not known. */
  readonly hosts: Readonly<Record<string, Readonly<Record<string, readonly string[] | string>>>>
  readonly operations: unknown
}

function told({ verdict, after }: Operation): unknown {
  if (verdict.kind === 'nothing') return verdict.because
  if (verdict.kind === 'blocked') return { blocked: verdict.findings.map(({ cause }) => cause) }
  const steps = verdict.steps.map(({ title, changes, run }) => ({
    title,
    changes,
    ...(run.files === undefined ? {} : { brings: run.files }),
  }))
  return { state: verdict.state, ...(after.length === 0 ? {} : { after }), steps }
}

describe('the plan of env', () => {
  it.each(readdirSync(FIXTURES))('%s', (name) => {
    const fixture = JSON.parse(readFileSync(join(FIXTURES, name), 'utf8')) as Fixture
    const { yaml, direction, file, away = {}, hosts } = fixture
    const inventory = parseHostsYaml(['hosts: { m1: , m2: , m3: }', ...yaml, ''].join('\n'), 'hosts.yaml')
    const declared = { inventory, endpoints: new Map(), ...(file === undefined ? {} : { environmentFile: file }) }
    const area = envArea.prepare(declared)
    if (area === undefined) throw new Error('the fixture declares no environment')
    const facts = Object.entries(hosts).map(([host, answers]) => {
      const own = Object.entries(area.factsOf(host)).map(([fact, { parse }]): [string, Known<unknown>] => {
        const answer = answers[fact] ?? `!not asked`
        if (typeof answer === 'string') return [fact, { kind: 'unknown', because: answer.slice(1) }]
        const text = answer.join('\n')
        const value = parse(text, Buffer.from(text))
        return [fact, value === undefined ? { kind: 'unknown', because: 'says nothing' } : known(value)]
      })
      return [host, { atMs: 0, facts: Object.fromEntries(own) }] as const
    })
    const world = { facts: new Map(facts), away: new Map(Object.entries(away)) }
    const operations = area.plan(direction, world)
    expect(Object.fromEntries(operations.map((each) => [each.id, told(each)]))).toEqual(fixture.operations)
    expect(JSON.stringify(area.plan(direction, world))).toBe(JSON.stringify(operations))
  })
})
