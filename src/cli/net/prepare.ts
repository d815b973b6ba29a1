/** What the verbs of `muster net` share before the first measurement: the hosts that are meant. */
import type { Endpoint } from '../../inventory/host.ts'
import { selectHosts } from '../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { inventorySource } from '../connect/inventory-source.ts'
import { readStdinNames } from '../connect/stdin-names.ts'

/** For a command that does nothing, from when it runs. */
const SIGN_IN_MS = 10_000

/** @throws MusterError `usage` or `configuration` */
export async function selectEndpoints(
  target: string | undefined,
  options: GlobalOptions,
  context: CliContext,
): Promise<readonly Endpoint[]> {
  const { environment: env, signal } = context
  const stdinNames = await readStdinNames(context.stdin, target, options.exclude)
  const { inventory, hosts } = await selectHosts(inventorySource(options, context), target, {
    ...(options.exclude === undefined ? {} : { exclude: options.exclude }),
    ...(stdinNames === undefined ? {} : { stdinNames }),
  })
  return await resolveEndpoints(inventory, hosts, {
    env,
    signal,
    ...(options.connectTimeout === undefined ? {} : { connectTimeoutMs: options.connectTimeout * 1000 }),
  })
}

/** Logs in everywhere before a screen is opened: questions are asked on the terminal as it is now. */
export async function signIn(names: readonly string[], hosts: OpsHosts, { signal, stderr }: CliContext): Promise<void> {
  if (names.length > 1) stderr.write(`connecting to ${names.length} hosts\n`)
  await Promise.all(names.map((name) => hosts.exec(name, ':', { timeoutMs: SIGN_IN_MS, signal })))
}
