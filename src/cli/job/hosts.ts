/** What the queue needs of hosts, over SSH. */
import type { Endpoint } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import type { FileDelivery, OpsHosts, ScriptResult } from '../../ops/kernel/host-port.ts'
import type { JobHosts } from '../../scheduler/jobs/host-line.ts'
import type { CredentialDialog, HostKeyReviewer } from '../../ssh/questions.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { endpointOptions } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'

/** A program has to be over by then, whatever its host does. */
const PROGRAM_MS = 60_000

export type ConnectedHosts = JobHosts &
  Disposable & {
    readonly ops: OpsHosts
    exec(host: string, program: string, signal: AbortSignal): Promise<ScriptResult>
    /** `together`: how many hosts are brought the same. Never rejects. */
    deliver(host: string, delivery: FileDelivery, together: number, signal: AbortSignal): Promise<ScriptResult>
  }

export async function connectHosts(
  inventory: Inventory,
  options: GlobalOptions,
  context: CliContext,
): Promise<ConnectedHosts> {
  const endpoints = await resolveEndpoints(inventory, inventory.hosts, endpointOptions(options, context))
  return connectEndpoints(endpoints, options, context, new TtyDialog())
}

export function connectEndpoints(
  endpoints: readonly Endpoint[],
  options: GlobalOptions,
  context: CliContext,
  dialog: CredentialDialog & HostKeyReviewer,
): ConnectedHosts {
  const opened = openOpsHosts(endpoints, options, context, dialog)
  const { hosts } = opened
  const exec = (host: string, program: string, own: AbortSignal) =>
    hosts.exec(host, 'exec sh -s', { stdin: Buffer.from(program), timeoutMs: PROGRAM_MS, signal: own })
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
