/**
 * An area of bring-up, such as NFS: its section of hosts.yaml, the facts that it needs, and pure functions from both to operations.
 * docs/decisions/0007-operations.md shows how to write one.
 */

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readlink, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileReason } from '../../base/errors.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { AnyFacts, FactSet, HostFacts } from './fact.ts'
import type { Finding } from './finding.ts'
import type { ScriptOptions, ScriptResult } from './host-port.ts'
import type { Operation } from './operation.ts'
import type { SharedHome } from './shared-home.ts'

export type ChangeDirection = 'up' | 'down'

/** A file that hosts.yaml names, relative to itself, and how it is read: `directory`: with everything beside it; `archive`: not at all. */
export type FileRequest = { readonly name: string; readonly kind: 'text' | 'directory' | 'archive' }

/** A file that hosts.yaml names, as it is on this machine. */
export type DeclaredFile =
  /** `digest`: of everything that counts. `text`: empty for an archive. */
  | { readonly kind: 'text'; readonly path: string; readonly text: string; readonly digest: string }
  | { readonly kind: 'unreadable'; readonly path: string; readonly because: string }

export type Declared = {
  readonly inventory: Inventory
  /** All hosts of the inventory, by name. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
  /** Files that hosts.yaml names, by that name. */
  readonly files?: ReadonlyMap<string, DeclaredFile>
}

/** A requirement of `up` that the doctor checks on a host, besides the facts. */
export type Preflight = {
  readonly host: string
  /** POSIX sh that changes nothing. */
  readonly script: string
  findingsOf(answer: string): Finding[]
}

/** Facts of the hosts that answered; `away` has the others, with the reason. */
export type AreaFacts<F> = {
  readonly facts: ReadonlyMap<string, HostFacts<F>>
  readonly away: ReadonlyMap<string, string>
  /** Undefined: not checked. */
  readonly sharedHomes?: readonly SharedHome[]
}

/** Runs commands to verify the real state. Every command has a time limit; none throws. */
export interface HostExec {
  exec(host: string, script: string, options: Omit<ScriptOptions, 'signal'>): Promise<ScriptResult>
}

export type AreaSpec<W, F> = {
  readonly name: string
  /** Undefined: hosts.yaml does not declare it. Pure. */
  wantedOf(declared: Declared): W | undefined
  hostsOf(wanted: W): readonly string[]
  /** Files that hosts.yaml names for it. */
  filesOf?(inventory: Inventory): readonly FileRequest[]
  /** Whether jobs of the queue may use it: `down` names those that run. */
  readonly isUsedByJobs?: boolean
  preflights?(wanted: W, operations: readonly Operation[]): readonly Preflight[]
  readonly areFactsRoot?: boolean
  factsOf(wanted: W, host: string): FactSet<F>
  /**
   * Operations of the hosts that answered, which create what is wanted (`up`) or remove it (`down`). `before`: those of the areas
   * that come first, on all hosts. Pure.
   */
  plan(
    direction: ChangeDirection,
    wanted: W,
    areaFacts: AreaFacts<F>,
    before: readonly Operation[],
  ): readonly Operation[]
  /**
   * Verifies on the hosts in `areaFacts`, which need no steps, that what is declared really works: logs in, mounts, asks. For the
   * verb `status` it only reads; for `check`, and after a change, it may write test files, which it removes.
   */
  verify?(
    wanted: W,
    areaFacts: AreaFacts<F>,
    hostExec: HostExec,
    depth: 'status' | 'check',
  ): Promise<readonly Finding[]>
}

/** An area for one inventory. */
export type Area = {
  readonly name: string
  readonly hosts: readonly string[]
  readonly areFactsRoot: boolean
  readonly isUsedByJobs: boolean
  /** Differs when something else is wanted. */
  digest(): string
  factsOf(host: string): FactSet<AnyFacts>
  plan(direction: ChangeDirection, areaFacts: AreaFacts<AnyFacts>, before?: readonly Operation[]): readonly Operation[]
  verify(areaFacts: AreaFacts<AnyFacts>, hostExec: HostExec, depth: 'status' | 'check'): Promise<readonly Finding[]>
  preflights(operations: readonly Operation[]): readonly Preflight[]
}

export type AreaMaker = {
  readonly name: string
  filesOf(inventory: Inventory): readonly FileRequest[]
  /** Undefined: it is not declared. */
  prepare(declared: Declared): Area | undefined
}

export function defineArea<W, F>(spec: AreaSpec<W, F>): AreaMaker {
  return {
    name: spec.name,
    filesOf: (inventory) => spec.filesOf?.(inventory) ?? [],
    prepare(declared) {
      const wanted = spec.wantedOf(declared)
      return wanted === undefined ? undefined : areaOf(spec, wanted)
    },
  }
}

/** The area for a wanted state that does not come from hosts.yaml. */
export function areaOf<W, F>(spec: Omit<AreaSpec<W, F>, 'wantedOf'>, wanted: W): Area {
  // Facts pass through the kernel without their type: it gives each area only the answers to its own facts.
  const own = (areaFacts: AreaFacts<AnyFacts>) => areaFacts as unknown as AreaFacts<F>
  return {
    name: spec.name,
    hosts: spec.hostsOf(wanted),
    areFactsRoot: spec.areFactsRoot ?? false,
    isUsedByJobs: spec.isUsedByJobs ?? false,
    digest: () => createHash('sha256').update(JSON.stringify(wanted, withEntries)).digest('hex'),
    factsOf: (host) => spec.factsOf(wanted, host) as FactSet<AnyFacts>,
    plan: (direction, areaFacts, before = []) => spec.plan(direction, wanted, own(areaFacts), before),
    verify: async (areaFacts, hostExec, depth) => (await spec.verify?.(wanted, own(areaFacts), hostExec, depth)) ?? [],
    preflights: (operations) => spec.preflights?.(wanted, operations) ?? [],
  }
}

/** JSON knows no maps and no sets. */
const withEntries = (_: string, value: unknown): unknown =>
  value instanceof Map || value instanceof Set ? [...value] : value

const MAX_BYTES = 8 * 1024 * 1024

/** `endpoints`: of all hosts of the inventory. Files are read again each time, because they may have changed. */
export async function prepareAreas(
  makers: readonly AreaMaker[],
  inventory: Inventory,
  endpoints: readonly Endpoint[],
): Promise<{ readonly declared: Declared; readonly areas: readonly Area[] }> {
  const requests = makers.flatMap((maker) => maker.filesOf(inventory))
  const files = await Promise.all(
    requests.map(async (request) => [request.name, await readDeclaredFile(request, inventory.file)] as const),
  )
  const byName = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
  const declared = { inventory, endpoints: byName, files: new Map(files) }
  return { declared, areas: makers.flatMap((maker) => maker.prepare(declared) ?? []) }
}

async function readDeclaredFile({ name, kind }: FileRequest, hostsFile = '.'): Promise<DeclaredFile> {
  const path = resolve(dirname(hostsFile), name)
  try {
    const { size, mtimeMs } = await stat(path)
    // An archive may be large, so its size and time represent its content.
    if (kind === 'archive') return { kind: 'text', path, text: '', digest: `${size} ${mtimeMs}` }
    const text = readBoundedSync(path, MAX_BYTES).toString()
    const hash = createHash('sha256').update(text)
    if (kind === 'directory') await addDirectory(hash, dirname(path))
    return { kind: 'text', path, text, digest: hash.digest('hex') }
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return { kind: 'unreadable', path, because: isMissing ? 'there is no such file' : fileReason(error) }
  }
}

/** Names, modes and contents of everything below it. */
async function addDirectory(hash: ReturnType<typeof createHash>, root: string, below = ''): Promise<void> {
  const names = (await readdir(join(root, below))).toSorted()
  for (const name of names) {
    const path = join(below, name)
    const facts = await lstat(join(root, path))
    hash.update(JSON.stringify([path, facts.mode]))
    if (facts.isDirectory()) await addDirectory(hash, root, path)
    else if (facts.isSymbolicLink()) hash.update(await readlink(join(root, path)))
    else if (facts.isFile()) for await (const chunk of createReadStream(join(root, path))) hash.update(chunk)
  }
}
