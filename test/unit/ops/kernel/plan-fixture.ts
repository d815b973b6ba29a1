/** Folders of JSON: what is declared and what hosts answer, with the steps or the sentence that come out of it. */
import { readFileSync } from 'node:fs'
import { sectionOf } from '../../../../src/inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../../../src/inventory/inventory.ts'
import { section } from '../../../../src/ops/env/section.ts'
import type { Area, AreaFacts, ChangeDirection, Declared, DeclaredFile } from '../../../../src/ops/kernel/area.ts'
import { type AnyFacts, type Known, known } from '../../../../src/ops/kernel/fact.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'

/** Of a host the answers to the facts as they are printed, or `!` and why one is not known. */
export type Answers = Readonly<Record<string, readonly string[] | string>>

export type PlanFixture = {
  readonly about: string
  readonly direction: ChangeDirection
  /** Of hosts.yaml. */
  readonly yaml: readonly string[]
  readonly file?: DeclaredFile
  readonly away?: Readonly<Record<string, string>>
  readonly hosts: Readonly<Record<string, Answers>>
  readonly operations: unknown
}

export function readFixture<F extends PlanFixture>(path: string): F {
  return JSON.parse(readFileSync(path, 'utf8')) as F
}

export function declaredOf({ yaml, file }: PlanFixture): Declared {
  const inventory = readInventory([...yaml, ''].join('\n'), 'hosts.yaml')
  return { inventory, endpoints: new Map(), ...filesOf(inventory, file) }
}

/** The file under the name that the environment gives it. */
function filesOf(inventory: Inventory, file: DeclaredFile | undefined): Pick<Declared, 'files'> {
  const name = sectionOf(inventory, section)?.file
  return file === undefined || name === undefined ? {} : { files: new Map([[name, file]]) }
}

export function worldOf(
  { hosts, away = {} }: Pick<PlanFixture, 'hosts' | 'away'>,
  factsOf: Area['factsOf'],
): AreaFacts<AnyFacts> {
  const facts = Object.entries(hosts).map(([host, answers]) => {
    const own = Object.entries(factsOf(host)).map(([fact, { parse }]): [string, Known<unknown>] => {
      const answer = answers[fact] ?? '!not asked'
      if (typeof answer === 'string') return [fact, { kind: 'unknown', because: answer.slice(1) }]
      const text = answer.join('\n')
      const value = parse(text, Buffer.from(text))
      return [fact, value === undefined ? { kind: 'unknown', because: 'says nothing' } : known(value)]
    })
    return [host, { atMs: 0, facts: Object.fromEntries(own) }] as const
  })
  return { facts: new Map(facts), away: new Map(Object.entries(away)) }
}

/** Operations in the words of the fixtures. */
export function toldOf(operations: readonly Operation[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(operations.map((operation) => [operation.id, told(operation)]))
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
