/** What trust plans: a folder of facts with the steps or the sentence that come out of them, and what holds for any facts. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import { planTrust } from '../../../../src/ops/trust/plan.ts'
import { afterwards, type PlainHosts, textOf, worldOf } from './mesh.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/ops/trust')

type Fixture = {
  readonly about: string
  readonly direction: 'up' | 'down'
  readonly members: readonly { name: string; address: string; port: number; user: string }[]
  readonly unusable?: Readonly<Record<string, string>>
  readonly away?: Readonly<Record<string, string>>
  readonly hosts: PlainHosts
  readonly operations: unknown
}

const keyOf = (host: string) => `<key of ${host}>`

/** An operation in the words of the fixtures. */
function told({ after, verdict }: Operation): unknown {
  if (verdict.kind === 'nothing') return verdict.because
  if (verdict.kind === 'blocked') return { blocked: verdict.findings.map(({ cause }) => cause) }
  const steps = verdict.steps.map((step) => ({
    title: step.title,
    changes: step.changes,
    ...(step.run.stdin === undefined ? {} : { writes: textOf(step, keyOf) }),
  }))
  return { state: verdict.state, ...(after.length === 0 ? {} : { after }), steps }
}

describe('the plan of trust', () => {
  it.each(readdirSync(FIXTURES))('%s', (name) => {
    const path = join(FIXTURES, name)
    const fixture = JSON.parse(readFileSync(path, 'utf8')) as Fixture
    const { direction, members, unusable = {}, away = {}, hosts } = fixture
    const wanted = { members, unusable: new Map(Object.entries(unusable)) }
    const operations = planTrust(direction, wanted, worldOf(hosts, away))
    const said = Object.fromEntries(operations.map((operation) => [operation.id, told(operation)]))
    expect(said).toEqual(fixture.operations)
  })
})

const base64 = (length: number) => fc.stringMatching(new RegExp(`^[A-Za-z0-9+/]{${length}}$`))
const key = base64(68).map((text) => `ssh-ed25519 ${text}`)
const line = fc.oneof(
  fc.constantFrom(
    '',
    '# a comment',
    'Host *',
    '|1|c2FsdA==|aGFzaA== ssh-rsa AAAA',
    'ssh-rsa AAAA me@desk',
    '\u00e9\u0001',
    'x\r',
  ),
  fc.stringMatching(/^[ -~]{0,20}$/).filter((text) => !text.startsWith('#')),
)
const file = fc.option(fc.array(line, { maxLength: 6 }).map((lines) => lines.join('\n')))
const host = fc.record({
  key: fc.constant(null),
  hostKeys: fc.array(key, { minLength: 1, maxLength: 3 }),
  authorizedKeys: file,
  knownHosts: file,
  config: file,
})
const mesh = fc
  .array(host, { minLength: 1, maxLength: 4 })
  .map((all): PlainHosts => Object.fromEntries(all.map((each, index) => [`m${index + 1}`, each])))
const wantedOf = (hosts: PlainHosts) => ({
  members: Object.keys(hosts).map((name, index) => ({
    name,
    address: `10.0.0.${index + 1}`,
    port: index % 2 === 0 ? 22 : 2222,
    user: 'ann',
  })),
  unusable: new Map<string, string>(),
})
const madeKey = (name: string) => `ssh-ed25519 ${name.padEnd(68, 'A')}`

describe('with any files on the hosts', () => {
  const up = (hosts: PlainHosts) => planTrust('up', wantedOf(hosts), worldOf(hosts))
  const down = (hosts: PlainHosts) => planTrust('down', wantedOf(hosts), worldOf(hosts))
  const open = (operations: readonly Operation[]) => operations.filter(({ verdict }) => verdict.kind !== 'nothing')

  it('up has nothing to do a second time', () => {
    fc.assert(
      fc.property(mesh, (hosts) => {
        expect(open(up(afterwards(hosts, up(hosts), madeKey)))).toEqual([])
      }),
    )
  })

  it('up and down complete a run that was interrupted anywhere', () => {
    fc.assert(
      fc.property(mesh, fc.nat(), (hosts, cut) => {
        const plan = up(hosts)
        const half = afterwards(hosts, plan.slice(0, cut % plan.length), madeKey)
        expect(afterwards(half, up(half), madeKey)).toEqual(afterwards(hosts, plan, madeKey))
      }),
    )
  })

  it('down restores every byte from before up, and then has nothing to do', () => {
    fc.assert(
      fc.property(mesh, (hosts) => {
        const there = afterwards(hosts, up(hosts), madeKey)
        const gone = afterwards(there, down(there), madeKey)
        expect(gone).toEqual(hosts)
        expect(open(down(gone))).toEqual([])
      }),
    )
  })

  it('says which line of its block is missing, and then neither adds nor removes lines', () => {
    fc.assert(
      fc.property(
        mesh,
        fc.constantFrom('authorizedKeys', 'knownHosts', 'config'),
        fc.constantFrom('first', 'last'),
        (hosts, file, which) => {
          const there = afterwards(hosts, up(hosts), madeKey)
          const m1 = there.m1 ?? Object.values(hosts)[0]
          const mark = which === 'first' ? /# >>> muster trust.*\n/ : /# <<< muster trust <<<\n/
          const cut = { ...there, m1: { ...m1, [file]: String(m1?.[file]).replace(mark, '') } } as PlainHosts
          for (const plan of [up(cut), down(cut)]) {
            const verdicts = plan.filter(({ host }) => host === 'm1').map(({ verdict }) => verdict)
            const findings = verdicts.flatMap((verdict) => (verdict.kind === 'blocked' ? verdict.findings : []))
            expect(findings).toMatchObject([
              { id: 'broken-block', cause: expect.stringContaining(`the ${which} line of Muster's block in ~/.ssh/`) },
            ])
          }
        },
      ),
    )
  })
})
