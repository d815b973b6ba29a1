/** What the queue needs of hosts, over SSH. */

import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { hostAddresses } from '../../inventory/host-addresses.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { type FileDelivery, type OpsHosts, reasonOfResult, type ScriptResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { JobHosts } from '../../scheduler/jobs/host-line.ts'
import type { CredentialDialog, HostKeyReviewer } from '../../ssh/questions.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { endpointOptions } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import type { OpenQueue } from './open-queue.ts'

/** A program has to be over by then, whatever its host does. */
const PROGRAM_MS = 60_000

export type ConnectedHosts = JobHosts &
  Disposable & {
    readonly ops: OpsHosts
    /** `onText`: what it prints, as it comes; the result has only the first 1 MB of it. */
    exec(host: string, program: string, signal: AbortSignal, onText?: (text: string) => void): Promise<ScriptResult>
    /** `together`: how many hosts are brought the same. Never rejects. */
    deliver(host: string, delivery: FileDelivery, together: number, signal: AbortSignal): Promise<ScriptResult>
  }

/** `addresses`: how the hosts reach each other, by name. */
export type ConnectedInventory = ConnectedHosts & { readonly addresses: ReadonlyMap<string, string> }

export async function connectHosts(
  inventory: Inventory,
  options: GlobalOptions,
  context: CliContext,
  dialog?: CredentialDialog & HostKeyReviewer,
): Promise<ConnectedInventory> {
  const { hosts } = inventory
  const endpoints = await resolveEndpoints(inventory, hosts, endpointOptions(options, context))
  const addresses = hostAddresses(hosts, endpoints)
  return Object.assign(connectEndpoints(endpoints, options, context, dialog), { addresses })
}

export function connectEndpoints(
  endpoints: readonly Endpoint[],
  options: GlobalOptions,
  context: CliContext,
  dialog?: CredentialDialog & HostKeyReviewer,
): ConnectedHosts {
  const opened = openOpsHosts(endpoints, options, context, dialog)
  const { hosts } = opened
  const exec: ConnectedHosts['exec'] = (host, program, own, onText) =>
    hosts.exec(host, 'exec sh -s', {
      stdin: Buffer.from(program),
      timeoutMs: PROGRAM_MS,
      signal: own,
      ...(onText === undefined ? {} : { onOutput: (stream, text) => (stream === 'stdout' ? onText(text) : undefined) }),
    })
  return {
    ops: hosts,
    exec,
    deliver: (host, delivery, together, own) => hosts.deliver(host, delivery, { together, signal: own }),
    open(host, { onText, onEnd }) {
      const decoder = new TextDecoder()
      return hosts.openShell(host, { onStdout: (bytes) => onText(decoder.decode(bytes, { stream: true })), onEnd })
    },
    [Symbol.dispose]: () => opened[Symbol.dispose](),
  }
}

/**
 * The directory, beside those of jobs, for a job to run in, and the hosts that have it; the others are listed on stderr.
 * @throws MusterError 'unreachable' when no host has it.
 */
export async function copyDirectory(
  source: string,
  names: readonly string[],
  { store, inventory }: OpenQueue,
  options: GlobalOptions,
  context: CliContext,
) {
  const name = `${store.id}-copied-${randomBytes(6).toString('hex')}`
  using hosts = await connectHosts(inventory, options, context)
  const bring = async (host: string): Promise<string | undefined> => {
    const program = `umask 077; mkdir -p ${JOBS_DIRECTORY} && cd ${JOBS_DIRECTORY} && pwd`
    const found = await hosts.exec(host, program, context.signal)
    const place = Buffer.from(found.stdout).toString().trim()
    if (found.outcome.kind !== 'exit' || found.outcome.code !== 0 || !place.startsWith('/'))
      return reasonOfResult(found, formatOutcome)
    const path = resolve(context.workingDirectory, source)
    const delivery = { from: undefined, path, kind: 'directory', to: `${place}/${name}` } as const
    const brought = await hosts.deliver(host, delivery, names.length, context.signal)
    return brought.outcome.kind === 'exit' && brought.outcome.code === 0
      ? undefined
      : reasonOfResult(brought, formatOutcome)
  }
  const ends = await Promise.all(names.map(async (host) => ({ host, trouble: await bring(host) })))
  for (const { host, trouble } of ends)
    if (trouble !== undefined)
      context.stderr.write(`muster: ${host}: ${printable(trouble)}: it gets neither the directory nor the job\n`)
  const well = ends.flatMap(({ host, trouble }) => (trouble === undefined ? [host] : []))
  if (well.length === 0) throw new MusterError('unreachable', `no host has ${printable(source)}: nothing was submitted`)
  return { directory: `../${name}`, hosts: well }
}
