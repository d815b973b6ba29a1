/**
 * Files of one host for others, through this machine: fetched once into a private directory here, then copied to each host.
 * What a host has already is not sent again, as `muster copy` does it. The directory goes when nobody needs it for now.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import type { Endpoint } from '../inventory/host.ts'
import type { Delivery, ExecResult } from '../ops/kernel/host-port.ts'
import type { RunOutcome } from '../ops/run/outcome.ts'
import { bytePathOf } from '../ssh/copy/byte-path.ts'
import { copyToHosts } from '../ssh/copy/copy-to-hosts.ts'
import type { CopyEvent } from '../ssh/copy/events.ts'
import { fetchFromHosts } from '../ssh/copy/fetch-from-hosts.ts'
import type { CopyWires } from '../ssh/copy/on-each-host.ts'
import { scanSources } from '../ssh/copy/source.ts'

export type CarrierWires = Pick<CopyWires, 'transports' | 'hostKeys' | 'credentials' | 'fanOut'>

type Fetched =
  | { readonly kind: 'here'; readonly directory: string }
  | { readonly kind: 'not'; readonly end: ExecResult }

export class FileCarrier {
  readonly #options: CarrierWires
  /** By host and path; those that failed are tried again. */
  readonly #fetched = new Map<string, Promise<Fetched>>()
  #directory: string | undefined
  #atWork = 0

  constructor(options: CarrierWires) {
    this.#options = options
  }

  async carry(
    host: Endpoint,
    delivery: Omit<Delivery, 'from'> & { readonly from: Endpoint | undefined },
    signal: AbortSignal,
  ): Promise<ExecResult> {
    this.#atWork += 1
    try {
      return await this.#carry(host, delivery, signal)
    } finally {
      this.#atWork -= 1
      if (this.#atWork === 0) this.#clear()
    }
  }

  #clear(): void {
    this.#fetched.clear()
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true })
    this.#directory = undefined
  }

  async #carry(
    host: Endpoint,
    { from, path, to }: Omit<Delivery, 'from'> & { readonly from: Endpoint | undefined },
    signal: AbortSignal,
  ): Promise<ExecResult> {
    const source = await this.#sourceOf(from, path, signal)
    if (source.kind === 'not') return source.end
    // The dot at the end means what is in the directory.
    const tree = await scanSources([bytePathOf(`${source.directory}/.`)])
    const [problem] = tree.problems
    if (problem !== undefined) return endOf({ kind: 'exit', code: 1 }, `${problem.path}: ${problem.reason}`)
    const told = new Told()
    const request = { tree, destinationOf: () => `${to.replace(/^~\//, '')}/`, isDryRun: false }
    await copyToHosts([host], request, this.#wires(signal, told))
    return told.end()
  }

  async #sourceOf(from: Endpoint | undefined, path: string, signal: AbortSignal): Promise<Fetched> {
    if (from === undefined || from.transport === 'local') {
      return { kind: 'here', directory: path.replace(/^~(?=\/)/, homedir()) }
    }
    const key = `${from.host} ${path}`
    const fetching = this.#fetched.get(key) ?? this.#fetch(from, path, signal)
    this.#fetched.set(key, fetching)
    const fetched = await fetching
    if (fetched.kind === 'not') this.#fetched.delete(key)
    return fetched
  }

  async #fetch(from: Endpoint, path: string, signal: AbortSignal): Promise<Fetched> {
    this.#directory ??= makeDirectory()
    const directory = mkdtempSync(join(this.#directory, 'of-'))
    const told = new Told()
    await fetchFromHosts(
      [from],
      { sourcesOf: () => [path.replace(/^~\//, '')], directory, isDryRun: false },
      this.#wires(signal, told),
    )
    const end = told.end()
    if (end.outcome.kind !== 'exit' || end.outcome.code !== 0) return { kind: 'not', end }
    return { kind: 'here', directory: join(directory, from.host, basename(path)) }
  }

  #wires(signal: AbortSignal, told: Told): CopyWires {
    return { ...this.#options, clock: systemClock, signal, onEvent: (event) => told.take(event) }
  }
}

const NAME = /^muster-files-(\d+)-/

/** Named after this process: those of processes that were killed go first. */
function makeDirectory(): string {
  for (const name of readdirSync(tmpdir())) {
    const pid = NAME.exec(name)?.[1]
    if (pid === undefined || !isDead(Number(pid))) continue
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true })
    } catch {
      // Somebody else's.
    }
  }
  return mkdtempSync(join(tmpdir(), `muster-files-${process.pid}-`))
}

function isDead(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** What a copy of one host tells, as the end of a command. */
class Told {
  #reason = ''
  #outcome: RunOutcome = { kind: 'cancelled' }

  take(event: CopyEvent): void {
    if (event.type === 'file' && event.action === 'failed') this.#reason ||= `${event.path}: ${event.reason ?? ''}`
    if (event.type !== 'result') return
    const { outcome, reason = '' } = event.result
    if (outcome === 'unreachable' || outcome === 'refused') this.#outcome = { kind: outcome, reason }
    else if (outcome !== 'cancelled') this.#outcome = { kind: 'exit', code: outcome === 'ok' ? 0 : 1 }
    this.#reason ||= reason
  }

  end(): ExecResult {
    return endOf(this.#outcome, this.#reason)
  }
}

function endOf(outcome: RunOutcome, reason: string): ExecResult {
  return { outcome, stdout: new Uint8Array(), stderr: Buffer.from(reason), durationMs: 0 }
}
