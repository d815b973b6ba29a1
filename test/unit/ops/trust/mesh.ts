/** Hosts of a mesh for tests of planning: facts out of plain values, and what a plan's steps would leave behind. */
import type { AreaFacts } from '../../../../src/ops/kernel/area.ts'
import { type Known, known } from '../../../../src/ops/kernel/fact.ts'
import type { FileState } from '../../../../src/ops/kernel/files.ts'
import type { Operation, Step } from '../../../../src/ops/kernel/operation.ts'
import type { TrustFacts } from '../../../../src/ops/trust/facts.ts'

const FILES = { authorizedKeys: 'authorized_keys', knownHosts: 'known_hosts', config: 'config' } as const

/** Null: not there. A character of a file stands for a byte. */
export type PlainHost = {
  /** `ssh-ed25519 …`; `!` and a reason: it cannot be used; `?` and a reason: there is none, and none can be made. */
  readonly key: string | null
  readonly hostKeys: readonly string[]
  readonly authorizedKeys: string | null
  readonly knownHosts: string | null
  readonly config: string | null
  /** Facts that are not known, and why. */
  readonly unknown?: Readonly<Record<string, string>>
}

export type PlainHosts = Readonly<Record<string, PlainHost>>

export function worldOf(hosts: PlainHosts, away: Readonly<Record<string, string>> = {}): AreaFacts<TrustFacts> {
  const facts = Object.entries(hosts).map(([name, host]) => {
    const { key, hostKeys, unknown = {} } = host
    const tell = <T>(fact: string, value: T): Known<T> =>
      unknown[fact] === undefined ? known(value) : { kind: 'unknown', because: unknown[fact] }
    const own =
      key === null
        ? ({ kind: 'none' } as const)
        : key.startsWith('?')
          ? ({ kind: 'none', obstacle: key.slice(1) } as const)
          : key.startsWith('!')
            ? ({ kind: 'unusable', because: key.slice(1) } as const)
            : ({ kind: 'key', publicKey: key } as const)
    const all = {
      key: tell('key', own),
      hostKeys: tell('hostKeys', hostKeys),
      authorizedKeys: tell('authorizedKeys', stateOf(host.authorizedKeys)),
      knownHosts: tell('knownHosts', stateOf(host.knownHosts)),
      config: tell('config', stateOf(host.config)),
    }
    return [name, { atMs: 0, facts: all }] as const
  })
  return { facts: new Map(facts), away: new Map(Object.entries(away)) }
}

function stateOf(text: string | null): FileState {
  return text === null ? { kind: 'none' } : { kind: 'file', text, mode: '600', sum: `${text.length}-0` }
}

const STEP = /^trust\/([a-z-]+)@([\w.-]+)\/(make|write|remove)$/

/** What the files hold after these operations; a key that is made is `keyOf(host)`. */
export function afterwards(
  hosts: PlainHosts,
  operations: readonly Operation[],
  keyOf: (host: string) => string,
): PlainHosts {
  const result: Record<string, PlainHost> = { ...hosts }
  const steps = operations.flatMap(({ verdict }) => (verdict.kind === 'steps' ? verdict.steps : []))
  for (const step of steps) {
    const [, name = '', host = '', word = ''] = STEP.exec(step.id) ?? []
    const before = result[host]
    if (before === undefined) throw new Error(`${step.id} is of no host`)
    const [field] = Object.entries(FILES).find(([, file]) => file === name.replace('-', '_')) ?? ['key']
    const value = word === 'make' ? keyOf(host) : word === 'remove' ? null : textOf(step, keyOf)
    result[host] = { ...before, [field]: value }
  }
  return result
}

/** The file that a step writes; null: it removes it. */
export function textOf({ run: { stdin } }: Step, keyOf: (host: string) => string): string | null {
  if (stdin === undefined) return null
  return stdin
    .map((part) => {
      if (typeof part === 'string' || part instanceof Uint8Array) return Buffer.from(part).toString('latin1')
      return keyOf(STEP.exec(part.output)?.[2] ?? '')
    })
    .join('')
}
