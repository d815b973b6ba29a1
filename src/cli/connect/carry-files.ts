/**
 * Copies files of one host to others through this machine: fetched once into a private directory, then copied to all hosts together,
 * as `muster copy` does. The directory is removed when it is not needed any more. Only what a host sent leaves this machine: no link that
 * it sent is followed here, and on the other hosts none that is below the destination.
 */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { onAbort } from '../../base/abort.ts'
import { systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { isRunning } from '../../base/processes.ts'
import { homeDirectory } from '../../base/user-directories.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { DeliverOptions, FileDelivery, ScriptResult } from '../../ops/kernel/host-port.ts'
import type { RunOutcome } from '../../ops/run/outcome.ts'
import { bytePathOf, showPath } from '../../ssh/copy/byte-path.ts'
import { CHAIN_BYTES } from '../../ssh/copy/chain.ts'
import { copyToHosts } from '../../ssh/copy/copy-to-hosts.ts'
import type { CopyEvent } from '../../ssh/copy/events.ts'
import { fetchFromHosts } from '../../ssh/copy/fetch-from-hosts.ts'
import type { CopyWires } from '../../ssh/copy/on-each-host.ts'
import { type SourceTree, scanSources } from '../../ssh/copy/source.ts'

export type CarrierWires = Pick<CopyWires, 'transports' | 'hostKeys' | 'credentials' | 'fanOut'>
type Carried = Omit<FileDelivery, 'from'> & { readonly from: Endpoint | undefined }

/** Where the files are here, or why they are not. */
type Fetched = string | ScriptResult

/** A host that joins later than this after the first one is served by itself. */
const GATHER_MS = 2_000

/** Hosts that get the same files in one copy. */
type Group = {
  readonly delivery: Carried
  readonly signal: AbortSignal
  readonly members: Map<string, Member>
  readonly isFull: PromiseWithResolvers<void>
}

type Member = { readonly endpoint: Endpoint; readonly outcome: CopyOutcome; leave(end: ScriptResult): void }

export class FileCarrier {
  readonly #options: CarrierWires
  readonly #copyToHosts: typeof copyToHosts
  /** By host and path; failed ones are tried again. */
  readonly #fetched = new Map<string, Promise<Fetched>>()
  /** Groups whose copy has not started. */
  readonly #gathering = new Map<string, Group>()
  #directory: string | undefined
  #atWork = 0

  constructor(options: CarrierWires, copy = copyToHosts) {
    this.#options = options
    this.#copyToHosts = copy
  }

  /** Never rejects. */
  carry(endpoint: Endpoint, delivery: Carried, { signal, together, onOutput }: DeliverOptions): Promise<ScriptResult> {
    const { from, path, kind, to } = delivery
    const key = JSON.stringify([from?.host, path, kind, to])
    let group = this.#gathering.get(key)
    if (group === undefined || group.signal !== signal || group.members.has(endpoint.host)) {
      group = { delivery, signal, members: new Map(), isFull: Promise.withResolvers() }
      this.#gathering.set(key, group)
      void this.#bring(group, together, () => {
        if (this.#gathering.get(key) === group) this.#gathering.delete(key)
      })
    }
    const { promise, resolve } = Promise.withResolvers<ScriptResult>()
    this.#atWork += 1
    let hasLeft = false
    const leave = (end: ScriptResult) => {
      if (hasLeft) return
      hasLeft = true
      this.#atWork -= 1
      if (this.#atWork === 0) this.#clear()
      resolve(end)
    }
    group.members.set(endpoint.host, { endpoint, outcome: new CopyOutcome(onOutput), leave })
    if (group.members.size >= together) group.isFull.resolve()
    return promise
  }

  async #bring(group: Group, together: number, begin: () => void): Promise<void> {
    const { signal, delivery, members } = group
    let end: ScriptResult | undefined
    try {
      const tree = await this.#treeOf(delivery, signal)
      if ('outcome' in tree) end = tree
      else {
        if (together > 1 && tree.entries.some((entry) => entry.kind === 'file' && entry.sizeBytes >= CHAIN_BYTES)) {
          await gathered(group)
        }
        begin()
        await this.#copy(group, tree)
      }
    } catch (error) {
      end = endOf({ kind: 'exit', code: 1 }, messageOf(error))
    } finally {
      begin()
      for (const { outcome, leave } of members.values()) leave(end ?? outcome.end())
    }
  }

  async #copy({ delivery: { to }, members, signal }: Group, tree: SourceTree): Promise<void> {
    const destination = `${to.replace(/^~\//, '')}/`
    const request = { tree, destinationOf: () => destination, isDryRun: false, replacesLinks: true }
    const endpoints = [...members.values()].map(({ endpoint }) => endpoint)
    const onEvent = (event: CopyEvent) => {
      const member = members.get(event.host)
      member?.outcome.take(event)
      // A host that has its files continues without waiting for the last one.
      if (event.type === 'result') member?.leave(member.outcome.end())
    }
    await this.#copyToHosts(endpoints, request, this.#wires(signal, onEvent))
  }

  #clear(): void {
    this.#fetched.clear()
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true })
    this.#directory = undefined
  }

  /** The files to copy, here; or why there are none. */
  async #treeOf(delivery: Carried, signal: AbortSignal): Promise<SourceTree | ScriptResult> {
    const source = await this.#sourceOf(delivery, signal)
    if (typeof source !== 'string') return source
    // The dot at the end means what is in the directory.
    const tree = await scanSources([bytePathOf(`${source}${delivery.kind === 'directory' ? '/.' : ''}`)])
    const [problem] = tree.problems
    if (problem !== undefined) return endOf({ kind: 'exit', code: 1 }, `${problem.path}: ${problem.reason}`)
    const { from, path, keepsLinks = false } = delivery
    const link = from === undefined || keepsLinks ? undefined : tree.entries.find((entry) => entry.kind === 'link')
    if (from === undefined || link === undefined) return tree
    const where = `${printable(path)}/${showPath(link.below)}`
    return endOf({ kind: 'exit', code: 1 }, `${from.host} sent a link, ${where}, among files: nothing was copied`)
  }

  async #sourceOf({ from, path, kind }: Carried, signal: AbortSignal): Promise<Fetched> {
    if (from === undefined || from.transport === 'local') return path.replace(/^~(?=\/)/, homeDirectory(process.env))
    const key = `${from.host} ${path}`
    const fetching = this.#fetched.get(key) ?? this.#fetch(from, path, signal)
    this.#fetched.set(key, fetching)
    const fetched = await fetching
    if (typeof fetched !== 'string') {
      this.#fetched.delete(key)
      return fetched
    }
    const sent = kindOf(fetched)
    if (sent === kind) return fetched
    const reason = `${from.host} sent a ${sent} instead of the ${kind} ${printable(path)}: nothing was copied`
    return endOf({ kind: 'exit', code: 1 }, reason)
  }

  async #fetch(from: Endpoint, path: string, signal: AbortSignal): Promise<Fetched> {
    this.#directory ??= makeDirectory()
    const directory = mkdtempSync(join(this.#directory, 'of-'))
    const outcome = new CopyOutcome()
    await fetchFromHosts(
      [from],
      { sourcesOf: () => [path.replace(/^~\//, '')], directory, isDryRun: false },
      this.#wires(signal, (event) => outcome.take(event)),
    )
    const end = outcome.end()
    const isHere = end.outcome.kind === 'exit' && end.outcome.code === 0
    return isHere ? join(directory, from.host, basename(path)) : end
  }

  #wires(signal: AbortSignal, onEvent: (event: CopyEvent) => void): CopyWires {
    return { ...this.#options, clock: systemClock, signal, onEvent }
  }
}

/** Of what was fetched. A host chooses where a link leads, so none is followed. @throws the error of the system */
function kindOf(path: string): 'directory' | 'file' | 'link' {
  const facts = lstatSync(path)
  return facts.isSymbolicLink() ? 'link' : facts.isDirectory() ? 'directory' : 'file'
}

const NAME = /^muster-files-(\d+)-/

/** Named after this process; removes those of processes that were killed. */
function makeDirectory(): string {
  for (const name of readdirSync(tmpdir())) {
    const pid = NAME.exec(name)?.[1]
    if (pid === undefined || isRunning(Number(pid))) continue
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true })
    } catch {
      // It belongs to another user.
    }
  }
  return mkdtempSync(join(tmpdir(), `muster-files-${process.pid}-`))
}

/** Turns the events of a copy to one host into the end of a command. */
class CopyOutcome {
  #reason = ''
  #outcome: RunOutcome = { kind: 'cancelled' }
  readonly #onOutput: DeliverOptions['onOutput']

  constructor(onOutput?: DeliverOptions['onOutput']) {
    this.#onOutput = onOutput
  }

  take(event: CopyEvent): void {
    if (event.type === 'file' && event.action === 'failed') this.#reason ||= `${event.path}: ${event.reason ?? ''}`
    if (event.type !== 'result') return
    const { outcome, reason = '', passedOnBytes = 0 } = event.result
    if (passedOnBytes > 0) this.#onOutput?.('stdout', `${formatBytes(passedOnBytes)} came from another host\n`)
    if (outcome === 'unreachable' || outcome === 'refused') this.#outcome = { kind: outcome, reason }
    else if (outcome !== 'cancelled') this.#outcome = { kind: 'exit', code: outcome === 'ok' ? 0 : 1 }
    this.#reason ||= reason
  }

  end(): ScriptResult {
    return endOf(this.#outcome, this.#reason)
  }
}

/** Waits until all expected hosts have joined, or for a moment. */
async function gathered({ isFull, signal }: Group): Promise<void> {
  const begin = () => isFull.resolve()
  using _timer = systemClock.after(GATHER_MS, begin)
  using _abort = onAbort(signal, begin)
  await isFull.promise
}

function endOf(outcome: RunOutcome, reason: string): ScriptResult {
  return { outcome, stdout: new Uint8Array(), stderr: Buffer.from(reason), durationMs: 0 }
}
