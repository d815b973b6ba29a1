/**
 * Open MPI (4.1) with Muster as its launch agent: mpirun runs in the first bundle and asks an agent to start `orted` on each other
 * host; the agent tells the line, and the bundles on those hosts start it. What the first host tells is not a line to run: only the
 * settings that orted needs are taken from it, each in the form that it has, and Muster writes the line.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { portsOf } from './asking.ts'
import type { LaunchedGang, LaunchStep } from './launcher.ts'
import type { InnerGang } from './networks.ts'
import { asProgram, asRank } from './rank.ts'

/** Root may run it: a job runs as whoever submitted it. */
const ENVIRONMENT = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }

/** What ranks get; `names`: variables of mpirun's own environment. */
export type MpiRun = InnerGang & { readonly program: string; readonly names: readonly string[] }

export function openMpiStep(run: MpiRun, bundle: number): LaunchStep {
  const { gang, network } = run
  if (bundle > 0) return daemon(gang, bundle, network)
  const [first] = gang.bundles
  const mpirun = first?.said.mpirun === 'mpirun.openmpi' ? 'mpirun.openmpi' : 'mpirun'
  const [port] = portsOf(first?.said)
  const pairs = [
    ...(port === undefined ? [] : [['oob_tcp_dynamic_ipv4_ports', `${port}`] as const]),
    ...rankPorts(gang),
    ['plm_rsh_no_tree_spawn', '1'] as const,
  ]
  const more = `--leave-session-attached${mca(pairs)} --mca plm_rsh_agent "$MUSTER_DIRECTORY/agent"`
  const line = `${mpirun} ${words(run)}${run.names.map((name) => ` -x ${shellQuote(name)}`).join('')} ${more}`
  return {
    kind: 'start',
    command: `${agent(first?.address ?? '')}exec ${line} ${asRank(run.program)}`,
    environment: ENVIRONMENT,
  }
}

/** With ssh in place of Muster: variables of the job go along with their values. */
export function openMpiByHand(run: MpiRun): string {
  const { spec, environment } = run.gang
  const variables = Object.entries({ ...spec.environment, ...environment }).map(([name, value]) => `${name}=${value}`)
  const names = [...new Set(['PATH', 'LD_LIBRARY_PATH', ...run.names])].filter(
    (name) => !variables.some((one) => one.startsWith(`${name}=`)),
  )
  const exports = [...names, ...variables].map((word) => ` -x ${shellQuote(word)}`)
  return `mpirun ${words(run)}${exports.join('')} ${asProgram(run.program)}`
}

const mca = (pairs: readonly (readonly [string, string])[]): string =>
  pairs.map(([name, value]) => ` --mca ${name} ${shellQuote(value)}`).join('')

function words({ gang: { bundles, spec }, network }: MpiRun): string {
  const { transport = 'tcp', bind = 'none' } = spec.options
  const ranks = bundles.reduce((sum, one) => sum + one.ranks, 0)
  const hosts = bundles.map((one) => `${one.address}:${one.ranks}`).join()
  const pairs = [
    ...(transport === 'tcp' ? [['pml', 'ob1'] as const, ['btl', '^openib'] as const] : []),
    ...(network === undefined
      ? []
      : [['btl_tcp_if_include', network] as const, ['oob_tcp_if_include', network] as const]),
  ]
  return `-np ${ranks} -H ${shellQuote(hosts)} --map-by slot --rank-by slot --bind-to ${bind}${mca(pairs)}`
}

/** Each rank takes the first port that is free in them: jobs that begin together begin their search in different places. */
function rankPorts({ id, spec: { ports } }: LaunchedGang): readonly (readonly [string, string])[] {
  const [first, last] = ports
  const least = first + ((Number(id.split('.')[0]) * 31) % Math.ceil((last - first + 1) / 2))
  return [
    ['btl_tcp_port_min_v4', String(least)],
    ['btl_tcp_port_range_v4', String(last - least + 1)],
  ]
}

/** Called as `agent HOST orted …`; it lives as long as mpirun, which waits for it. The lines differ in the number of the host alone. */
const agent = (own: string): string => `cd "$MUSTER_DIRECTORY" || exit
cat >agent <<'AGENT'
#!/bin/sh
h=$1; shift
[ "$h" != ${shellQuote(own)} ] || echo "refuse mpirun does not know that $h is an address of its own host" >"$MUSTER_SAY"
(set -C; : >"$MUSTER_DIRECTORY/agent.told") 2>/dev/null && echo "agent $*" >"$MUSTER_SAY"
while kill -0 $PPID 2>/dev/null; do sleep 1; done
AGENT
chmod 700 agent; cd "$OLDPWD" || exit
`

/** What orted is given, and the form that each value must have. */
const SETTINGS: Readonly<Record<string, RegExp>> = {
  ess_base_jobid: /^\d{1,12}$/,
  ess_base_num_procs: /^\d{1,6}$/,
  orte_node_regex: /^[\w.,:[\]()@*-]{1,4000}$/,
  orte_hnp_uri: /^\d{1,12}\.0(;tcp6?:\/\/[\d.,:[\]a-f]{1,500}:\d{1,5}(,\d{1,5}){0,99}){1,2}$/,
}

function daemon({ bundles }: LaunchedGang, bundle: number, network: string | undefined): LaunchStep {
  const [first] = bundles
  const line = first?.said.agent
  if (first?.said.refuse !== undefined) return { kind: 'refuse', reason: `${first.host}: ${first.said.refuse}` }
  if (first === undefined || line === undefined) return { kind: 'wait' }
  const told = new Map([...line.matchAll(/-mca (\w+) "?([^" ]*)"?/g)].map(([, name = '', value = '']) => [name, value]))
  const wrong = Object.entries(SETTINGS).find(([name, form]) => !form.test(told.get(name) ?? ''))?.[0]
  // Hosts have numbers in the order of -H only if mpirun counts as many.
  const why = told.get('ess_base_num_procs') === String(bundles.length) ? wrong : 'ess_base_num_procs'
  if (why !== undefined) return { kind: 'refuse', reason: `${first.host}: mpirun gave orted no valid ${why}` }
  const [port] = portsOf(bundles[bundle]?.said)
  const settings: readonly (readonly [string, string])[] = [
    ['orte_leave_session_attached', '1'],
    ['ess', 'env'],
    ['plm', 'rsh'],
    ['pmix', '^s1,s2,cray,isolated'],
    ...(network === undefined ? [] : [['oob_tcp_if_include', network] as const]),
    ...(port === undefined ? [] : [['oob_tcp_dynamic_ipv4_ports', `${port}`] as const]),
    ['ess_base_vpid', String(bundle)],
    ...Object.keys(SETTINGS).map((name) => [name, told.get(name) ?? ''] as const),
  ]
  return {
    kind: 'start',
    command: `exec orted${mca(settings).replaceAll(' --mca ', ' -mca ')}`,
    environment: ENVIRONMENT,
  }
}
