/** What copy and fetch share before the first connection: the hosts of a target, and the wires. */
import { systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { selectHosts } from '../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import type { CopyWires } from '../../ssh/copy/on-each-host.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { fanOutFor } from '../connect/fan-out.ts'
import { inventorySource } from '../connect/inventory-source.ts'
import { readStdinNames } from '../connect/stdin-names.ts'
import { createWires } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'

/** @throws MusterError `usage` or `configuration` */
export async function selectEndpoints(
  target: string,
  options: GlobalOptions,
  context: CliContext,
): Promise<readonly Endpoint[]> {
  const { environment: env, stdin, signal } = context
  const stdinNames = await readStdinNames(stdin, target, options.exclude)
  const { inventory, hosts } = await selectHosts(inventorySource(options, context), target, {
    ...(options.exclude === undefined ? {} : { exclude: options.exclude }),
    ...(stdinNames === undefined ? {} : { stdinNames }),
  })
  if (hosts.length === 0) throw new MusterError('usage', 'the target names no host')
  return await resolveEndpoints(inventory, hosts, {
    env,
    signal,
    ...(options.connectTimeout === undefined ? {} : { connectTimeoutMs: options.connectTimeout * 1000 }),
  })
}

/** To be disposed when all is over. */
export function openCopyWires(
  hosts: number,
  context: CliContext,
  options: GlobalOptions,
): Disposable & Omit<CopyWires, 'onEvent'> {
  const { environment, stderr, signal } = context
  const dialog = new TtyDialog()
  const wires = createWires({
    dialog,
    reviewer: dialog,
    environment,
    persist: options.persist,
    onWarning: (message) => stderr.write(`muster: ${message}\n`),
  })
  return { ...wires, clock: systemClock, fanOut: fanOutFor(hosts, options, context), signal }
}
