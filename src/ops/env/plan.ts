/** What the plans for venv, conda and Docker share. Pure. */
import type { AreaFacts, ChangeDirection } from '../kernel/area.ts'
import { type KnownFacts, knownValue } from '../kernel/fact.ts'
import { blockedBy, type Operation, operationId, type Step, type Verdict } from '../kernel/operation.ts'
import { keepersOf, sharedHomeSentence } from '../kernel/shared-home.ts'
import type { DockerFacts } from './docker.ts'
import type { InHome, ParcelFacts, PrefixFacts, SystemFacts } from './facts.ts'
import { AREA, type EnvWanted } from './wanted.ts'

export type EnvFacts = {
  readonly system: SystemFacts
  readonly content: PrefixFacts | DockerFacts
  readonly parcel: ParcelFacts
  /** What lies in the home directory and on its file system; undefined: not asked. */
  readonly inHome?: InHome
}
export type OwnFacts = KnownFacts<EnvFacts>
export type EnvAreaFacts = AreaFacts<EnvFacts>

export function operation(
  name: string,
  host: string,
  title: string,
  verdict: Verdict,
  after: readonly string[] = [],
): Operation {
  return { id: operationId(AREA, name, host), area: AREA, host, title, after, verdict }
}

export function nothing(because: string): Verdict {
  return { kind: 'nothing', because }
}

/** Another host maintains it. */
export function keptBy({ keeper, because }: Kept): Verdict {
  return { kind: 'nothing', because, keeper }
}

export function blocked(host: string, id: string, cause: string, hint?: string): Verdict {
  return blockedBy({ host, gravity: 'blocker', id, cause, ...(hint === undefined ? {} : { hint }) })
}

export function steps(state: 'missing' | 'differs', all: readonly Step[]): Verdict {
  return { kind: 'steps', state, steps: all }
}

/** A step; its id derives from the operation's. */
export function step(name: string, host: string, word: string, rest: Omit<Step, 'id'>): Step {
  return { id: `${operationId(AREA, name, host)}/${word}`, ...rest }
}

/** A verdict of one step. */
export function oneStep(
  state: 'missing' | 'differs',
  name: string,
  host: string,
  word: string,
  rest: Omit<Step, 'id'>,
): Verdict {
  return steps(state, [step(name, host, word, rest)])
}

/** Blocks all hosts if the file of the environment cannot be read. */
export function fileTrouble({ spec, file }: EnvWanted): Operation[] | undefined {
  if (file?.kind !== 'unreadable') return undefined
  const cause = `${file.path} cannot be read: ${file.because}`
  return spec.hosts.map((host) => operation('file', host, 'what it is made from', blocked(host, 'no-file', cause)))
}

/** The host that maintains an environment for another one, and why. */
type Kept = { readonly keeper: string; readonly because: string }

/** Hosts that share their environment (or the parcel) with another host: on an NFS share of hosts.yaml, or in a shared home. */
export function keptElsewhere(
  direction: ChangeDirection,
  { spec, sharedBy }: EnvWanted,
  { facts, sharedHomes = [] }: EnvAreaFacts,
  what: keyof InHome = 'environment',
): ReadonlyMap<string, Kept> {
  const isInHome = (host: string): boolean => {
    const fact = facts.get(host)?.facts.inHome
    return fact !== undefined && knownValue(fact)?.[what] === true
  }
  // The followed host comes first: it has the environment, or makes it.
  const isFirst = (host: string) => direction === 'up' && host === spec.from
  const homes = sharedHomes.map(({ hosts, path }) => ({
    hosts: hosts.filter(isInHome).toSorted((one, two) => Number(isFirst(two)) - Number(isFirst(one))),
    path,
  }))
  return new Map([
    ...[...keepersOf(homes)].map(
      ([host, shared]) => [host, { keeper: shared.keeper, because: sharedHomeSentence(shared) }] as const,
    ),
    ...[...sharedBy].map(([host, keeper]) => [host, { keeper, because: sharedSentence(keeper) }] as const),
  ])
}

function sharedSentence(owner: string): string {
  return `it is on an NFS share, and ${owner} takes care of it`
}
