/** From a target on the command line to hosts, and to how each of them is reached. */

import { MusterError } from '../../base/errors.ts'
import { readStream } from '../../base/read-bounded.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Selection, TargetOptions } from '../../inventory/inventory.ts'
import { type InventorySource, namesForDns, selectHosts } from '../../inventory/load-inventory.ts'
import { type EndpointOptions, resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { fileSections } from '../bring-up/areas.ts'
import { stdinOf } from '../command-line/stdin.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { type NoticeContext, notice } from '../output/notices.ts'

const MAX_STDIN_BYTES = 16 * 2 ** 20

/** `endpoints`: of the hosts, in their order. */
export type SelectedHosts = Selection & { readonly endpoints: readonly Endpoint[] }

/** @throws MusterError `usage` or `configuration` */
export async function selectEndpoints(
  target: string | undefined,
  options: GlobalOptions,
  context: CliContext,
): Promise<SelectedHosts> {
  const { inventory, hosts } = await selectTarget(target, options, context)
  return { inventory, hosts, endpoints: await resolveEndpoints(inventory, hosts, endpointOptions(options, context)) }
}

/** @throws MusterError `usage` or `configuration` */
export async function selectTarget(
  target: string | undefined,
  options: GlobalOptions,
  context: CliContext,
  how: Pick<TargetOptions, 'isForNames'> = {},
): Promise<Selection> {
  const selection = { ...(await selectionOf(target, options, context)), ...how }
  return await selectNamed(inventorySource(options, context), target, selection, context)
}

/** As `selectHosts`, and says which names are looked up although no file declares them. @throws MusterError `usage` or `configuration` */
export async function selectNamed(
  source: InventorySource,
  target: string | undefined,
  options: TargetOptions,
  context: NoticeContext,
): Promise<Selection> {
  const selection = await selectHosts(source, target, options)
  const names = namesForDns(selection, options, source)
  if (names.length > 0)
    notice(context, `muster: not in hosts.yaml or ~/.ssh/config, so looked up in DNS: ${foldHostSet(names)}\n`)
  return selection
}

/** What `--hosts` says, else what is found. */
export function inventorySource({ hosts }: Pick<GlobalOptions, 'hosts'>, context: CliContext): InventorySource {
  const { environment: env, workingDirectory: cwd, signal } = context
  return { cwd, env, signal, sections: fileSections, ...(hosts === undefined ? {} : { file: hosts }) }
}

export function endpointOptions(
  { connectTimeout }: GlobalOptions,
  { environment: env, signal }: CliContext,
): EndpointOptions {
  return { env, signal, ...(connectTimeout === undefined ? {} : { connectTimeoutMs: connectTimeout * 1000 }) }
}

/** `--exclude`, and the names that `-` in a target stands for: words of stdin. */
export async function selectionOf(
  target: string | undefined,
  { exclude }: GlobalOptions,
  context: CliContext,
): Promise<{ readonly exclude?: string; readonly stdinNames?: readonly string[] }> {
  const needsStdin = [target, exclude].some(
    (text) => text !== undefined && /(?:^|[\s,!&^(])-(?=$|[\s,!&^)])/.test(text),
  )
  return {
    ...(exclude === undefined ? {} : { exclude }),
    ...(needsStdin ? { stdinNames: await readStdinNames(context) } : {}),
  }
}

/** @throws MusterError `usage` when stdin is a terminal */
async function readStdinNames(context: CliContext): Promise<readonly string[]> {
  if (context.stdin.isTTY) {
    throw new MusterError('usage', '- means host names from stdin, but stdin is a terminal', {
      hint: 'Pipe the names in: printf "m8\\nm9\\n" | muster hosts -',
    })
  }
  const tooLarge = () => new MusterError('usage', 'stdin has more than 16 MiB of host names')
  const names = await readStream(stdinOf(context), MAX_STDIN_BYTES, tooLarge)
  return names.toString('utf8').split(/\s+/).filter(Boolean)
}
