/** `muster hosts [TARGET]`: the resolved inventory, and with `--check` who answers. */
import type { Command } from 'commander'
import type { Endpoint } from '../../inventory/host.ts'
import { groupsByHost } from '../../inventory/inventory.ts'
import { selectHosts } from '../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { type CliContext, EXIT, type GlobalOptions, type Outcome } from '../command-line/context.ts'
import { inventorySource } from '../connect/inventory-source.ts'
import { readStdinNames } from '../connect/stdin-names.ts'
import { formatTable } from '../output/table.ts'

/** Whether a host answers, as `muster hosts --check` tells it. */
export type HostCheck = {
  readonly host: string
  readonly outcome: 'ok' | 'unreachable' | 'refused'
  readonly durationMs: number
  /** Why not, printable, one line. */
  readonly reason?: string
}

/** Tries every host and yields each as soon as it is known. */
export type CheckHosts = (
  endpoints: readonly Endpoint[],
  options: GlobalOptions,
  context: CliContext,
) => AsyncIterable<HostCheck>

type Options = GlobalOptions & { readonly check?: boolean; readonly persisted?: boolean; readonly stop?: boolean }

export function registerHosts(program: Command, context: CliContext, outcome: Outcome, checkHosts?: CheckHosts): void {
  const command = program
    .command('hosts')
    .description('the resolved inventory: who the hosts are and how they are reached')
    .argument('[target]', 'hosts to list (default: all)')
    .addHelpText(
      'after',
      `
Examples:
  muster hosts                      every host of hosts.yaml, with what ssh_config adds
  muster hosts @workers --json      one JSON object a host
  muster hosts 'all!m[8-9]'         all but two
  muster hosts root@h1,h2:2222      no file needed
  muster hosts --persisted          who is kept warm by --persist, and how long still
  muster hosts --stop m8            ends that${checkHosts ? '\n  muster hosts --check              who answers, and why the others do not' : ''}
`,
    )
  if (checkHosts) command.option('--check', 'connect to every host and say who answers')
  command.option('--persisted', 'connections that --persist keeps warm: who, since when, how long still')
  command.option('--stop', 'end those connections (default: all of them)')
  command.action(async (target: string | undefined) => {
    const options = command.optsWithGlobals<Options>()
    if (options.persisted || options.stop) {
      const { showWarmHosts } = await import('./warm-hosts.ts')
      const endpoints = target === undefined ? undefined : (await selectEndpoints(target, options, context)).endpoints
      outcome.exitCode = await showWarmHosts(endpoints, { ...options, isStop: options.stop === true }, context)
      return
    }
    outcome.exitCode = await listHosts(target, options, context, options.check ? checkHosts : undefined)
  })
}

async function selectEndpoints(target: string | undefined, options: GlobalOptions, context: CliContext) {
  const { environment: env } = context
  const stdinNames = await readStdinNames(context.stdin, target, options.exclude)
  const { inventory, hosts } = await selectHosts(inventorySource(options, context), target, {
    ...(options.exclude === undefined ? {} : { exclude: options.exclude }),
    ...(stdinNames === undefined ? {} : { stdinNames }),
  })
  const endpoints = await resolveEndpoints(inventory, hosts, {
    env,
    signal: context.signal,
    ...(options.connectTimeout === undefined ? {} : { connectTimeoutMs: options.connectTimeout * 1000 }),
  })
  return { inventory, endpoints }
}

async function listHosts(
  target: string | undefined,
  options: GlobalOptions,
  context: CliContext,
  checkHosts: CheckHosts | undefined,
): Promise<number> {
  const { inventory, endpoints } = await selectEndpoints(target, options, context)
  const groups = groupsByHost(inventory)
  const checks = new Map<string, HostCheck>()
  const writeJson = (endpoint: Endpoint): void => {
    const time = new Date(context.now()).toISOString()
    context.stdout.write(
      `${JSON.stringify(hostEvent(endpoint, groups.get(endpoint.host) ?? [], time, checks.get(endpoint.host)))}\n`,
    )
  }
  if (checkHosts) {
    const byName = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
    for await (const check of checkHosts(endpoints, options, context)) {
      if (context.signal.aborted) break
      checks.set(check.host, check)
      const endpoint = byName.get(check.host)
      if (options.json && endpoint) writeJson(endpoint)
    }
  } else if (options.json) endpoints.forEach(writeJson)
  if (!options.json) context.stdout.write(formatHosts(endpoints, groups, checkHosts ? checks : undefined))
  if (checkHosts && context.signal.aborted) {
    context.stderr.write(`muster: stopped; ${checks.size} of ${endpoints.length} hosts were checked\n`)
    return EXIT.interrupted
  }
  return [...checks.values()].some((check) => check.outcome !== 'ok') ? EXIT.unreachable : EXIT.ok
}

function hostEvent(endpoint: Endpoint, groups: readonly string[], time: string, check: HostCheck | undefined): object {
  const { host, number, transport, address, port, user, proxyCommand, needsOpenSsh } = endpoint
  return {
    type: 'host',
    host,
    time,
    number,
    ...(transport === 'local' ? { transport, user } : { address, port, user, transport }),
    jump: endpoint.jump.map((hop) => hop.host),
    ...(proxyCommand === undefined ? {} : { proxyCommand }),
    ...(needsOpenSsh === undefined ? {} : { needsOpenSsh }),
    groups,
    ...(check === undefined ? {} : { outcome: check.outcome, durationMs: check.durationMs }),
    ...(check?.reason === undefined ? {} : { reason: check.reason }),
  }
}

function describeCheck(check: HostCheck | undefined): string {
  if (check === undefined) return '-'
  return check.outcome === 'ok' ? `yes, ${Math.round(check.durationMs)} ms` : `${check.outcome}: ${check.reason ?? '?'}`
}

/** A table with aligned columns; a column that says nothing of any host is left out. */
export function formatHosts(
  endpoints: readonly Endpoint[],
  groups: ReadonlyMap<string, readonly string[]>,
  checks: ReadonlyMap<string, HostCheck> | undefined,
): string {
  const rows = endpoints.map((endpoint) => {
    const isLocal = endpoint.transport === 'local'
    const via = endpoint.jump.map((hop) => hop.host).join(' → ') || (endpoint.proxyCommand ? 'proxy command' : '')
    return [
      endpoint.host,
      isLocal ? 'this machine' : endpoint.address,
      isLocal ? '' : String(endpoint.port),
      endpoint.user,
      endpoint.transport,
      via,
      (groups.get(endpoint.host) ?? []).join(' '),
      ...(checks ? [describeCheck(checks.get(endpoint.host))] : []),
    ]
  })
  const header = ['NAME', 'ADDRESS', 'PORT', 'USER', 'TRANSPORT', 'VIA', 'GROUPS', ...(checks ? ['ANSWERS'] : [])]
  return formatTable(header, rows)
}
