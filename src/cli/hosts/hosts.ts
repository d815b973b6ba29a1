/** `muster hosts [TARGET]`: the resolved inventory, with `--check` whether each host answers; or the target itself as a host set. */
import { Option } from 'commander'
import { counted } from '../../base/counted.ts'
import { MusterError } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { groupsByHost, targetNames } from '../../inventory/inventory.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { selectEndpoints, selectTarget } from '../connect/endpoints.ts'
import { foldFailures } from '../output/fold-failures.ts'
import { writeEvent } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
import { formatTable, type TableOutput } from '../output/table.ts'
import type { CheckHosts, HostCheck } from './connections.ts'

type SetOptions = {
  readonly expand?: boolean
  readonly fold?: boolean
  readonly count?: boolean
  readonly split?: number
}
type Options = GlobalOptions &
  SetOptions & { readonly check?: boolean; readonly persisted?: boolean; readonly stop?: boolean }

const USUAL_ROWS = 24

/** One of these at most. */
const MODES = ['expand', 'fold', 'count', 'split', 'check', 'persisted', 'stop'] as const

export const verb = hostsVerb(async function* (...check) {
  yield* (await import('./connections.ts')).checkHosts(...check)
})

/** `check`: replaced in tests. */
export function hostsVerb(check: CheckHosts): VerbCode {
  return {
    define: (command) =>
      command
        .argument('[target]', 'hosts to list (default: all)')
        .option('--check', 'connect to every host, and show whether it answers')
        .option('--persisted', 'list the connections that --persist keeps open, with their age and the time left')
        .option('--stop', 'close those connections (default: all of them)')
        .option('--expand', 'print only the names, one per line')
        .option('--fold', 'print the names as one host set')
        .option('--count', 'print only how many hosts there are')
        .addOption(
          new Option('--split <n>', 'print at most N host sets of equal size, one per line').argParser(wholeNumber(1)),
        ),
    help: `
Examples:
  muster hosts                      every host of hosts.yaml, completed from ssh_config
  muster hosts @workers --json      one JSON object per host
  muster hosts 'all!m[8-9]'         all hosts except two
  muster hosts root@h1,h2:2222      no file needed
  muster hosts --check              which hosts answer, and why the others do not
  muster hosts --persisted          connections that --persist keeps open
  muster hosts --stop m8            close the one to m8
  muster hosts --fold 'all!m8'      m[9-10],gpu[01-04]
  muster hosts --expand @gpus       one name per line, for loops of a shell
  sinfo -ho %N | muster hosts --count -   names from stdin
`,
    async run(target: string | undefined, options: Options, context: CliContext) {
      const [first, second] = MODES.filter((mode) => options[mode] !== undefined)
      const isPair = first === 'persisted' && second === 'stop'
      if (second !== undefined && !isPair)
        throw new MusterError('usage', `--${first} and --${second} cannot be used together`)
      if (first !== undefined && ['expand', 'fold', 'count', 'split'].includes(first))
        return await printSets(target, options, context)
      if (!options.persisted && !options.stop)
        return await listHosts(target, options, context, options.check ? check : undefined)
      const { showWarmHosts } = await import('./connections.ts')
      const selected = target === undefined ? undefined : await selectEndpoints(target, options, context)
      return await showWarmHosts(selected?.endpoints, { ...options, isStop: options.stop === true }, context)
    },
  }
}

/** Nothing is looked up: a name needs no address. */
async function printSets(target: string | undefined, options: Options, context: CliContext): Promise<number> {
  const names = targetNames(await selectTarget(target, options, context, { isForNames: true }))
  for (const part of splitEvenly(names, options.split ?? 1)) {
    const [set, count] = [foldHostSet(part), part.length]
    if (options.json) writeEvent({ type: 'host-set', set, count, hosts: part }, context)
    else context.stdout.write(`${options.expand ? part.join('\n') : options.count ? count : set}\n`)
  }
  return EXIT.ok
}

/** At most `count` parts in their order, larger by one at the beginning; none is empty. */
function splitEvenly(names: readonly string[], count: number): readonly (readonly string[])[] {
  const parts = Math.min(count, names.length)
  const start = (part: number) => part * Math.floor(names.length / parts) + Math.min(part, names.length % parts)
  return Array.from({ length: parts }, (_, part) => names.slice(start(part), start(part + 1)))
}

async function listHosts(
  target: string | undefined,
  options: GlobalOptions,
  context: CliContext,
  check: CheckHosts | undefined,
): Promise<number> {
  const { inventory, endpoints } = await selectEndpoints(target, options, context)
  const groups = groupsByHost(inventory)
  const checks = new Map<string, HostCheck>()
  const writeJson = (endpoint: Endpoint): void =>
    writeEvent(hostEvent(endpoint, groups.get(endpoint.host) ?? [], checks.get(endpoint.host)), context)
  if (check) {
    const byName = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
    for await (const answer of check(endpoints, options, context)) {
      if (context.signal.aborted) break
      checks.set(answer.host, answer)
      const endpoint = byName.get(answer.host)
      if (options.json && endpoint) writeJson(endpoint)
    }
  } else if (options.json) endpoints.forEach(writeJson)
  if (!options.json) context.stdout.write(formatHosts(endpoints, groups, check ? checks : undefined, context.stdout))
  if (!options.json && endpoints.length >= (context.stdout.rows ?? USUAL_ROWS))
    notice(context, formatFailures(endpoints, checks))
  if (check && context.signal.aborted) {
    context.stderr.write(`muster: stopped; checked ${checks.size} of ${endpoints.length} hosts\n`)
    return EXIT.interrupted
  }
  return [...checks.values()].some(({ outcome }) => outcome !== 'ok') ? EXIT.unreachable : EXIT.ok
}

/** What is not known is left out of the JSON line. */
function hostEvent(endpoint: Endpoint, groups: readonly string[], check: HostCheck | undefined): object {
  const { host, number, transport, address, port, user, proxyCommand, needsOpenSsh } = endpoint
  return {
    type: 'host',
    host,
    number,
    ...(transport === 'local' ? { transport, user } : { address, port, user, transport }),
    jump: endpoint.jump.map((hop) => hop.host),
    proxyCommand,
    needsOpenSsh,
    groups,
    outcome: check?.outcome,
    durationMs: check?.durationMs,
    reason: check?.reason,
  }
}

/** The failures again, after a table that is longer than the screen. */
function formatFailures(endpoints: readonly Endpoint[], checks: ReadonlyMap<string, HostCheck>): string {
  const failures = endpoints.flatMap(({ host, address }) => {
    const check = checks.get(host)
    return check === undefined || check.outcome === 'ok' ? [] : [{ host, address, reason: describeCheck(check) }]
  })
  if (failures.length === 0) return ''
  return `${foldFailures(failures)}muster: ${checks.size - failures.length} of ${counted(checks.size, 'host')} answered\n`
}

function describeCheck(check: HostCheck | undefined): string {
  if (check === undefined) return '-'
  return check.outcome === 'ok' ? `yes, ${Math.round(check.durationMs)} ms` : `${check.outcome}: ${check.reason ?? '?'}`
}

export function formatHosts(
  endpoints: readonly Endpoint[],
  groups: ReadonlyMap<string, readonly string[]>,
  checks: ReadonlyMap<string, HostCheck> | undefined,
  out: TableOutput,
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
  return formatTable(header, rows, out)
}
