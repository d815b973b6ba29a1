/**
 * MPICH (4.0) with Muster in place of ssh: `mpiexec.hydra -launcher manual` prints the line of the proxy of each host and waits.
 * Each bundle starts its own proxy, from settings that have the form of MPICH's, and with its own variables: none are forwarded
 * unless they are asked for.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { portsOf } from './asking.ts'
import type { LaunchedGang, LaunchStep } from './launcher.ts'
import type { MpiRun } from './open-mpi.ts'
import { AS_RANK, asProgram, asRank } from './rank.ts'

export function mpichStep(run: MpiRun, bundle: number): LaunchStep {
  const { gang } = run
  const [first] = gang.bundles
  const environment = variablesOf(gang, bundle)
  if (bundle > 0) return proxy(gang, bundle, environment)
  const [port] = portsOf(first?.said)
  const forwarded = run.names.length === 0 ? '-genvnone' : `-genvlist ${shellQuote(run.names.join())}`
  const line = `mpiexec.hydra -launcher manual -localhost ${shellQuote(first?.address ?? '')} ${forwarded} ${words(gang)}`
  return {
    kind: 'start',
    command: `d=$MUSTER_DIRECTORY; : >"$d/hydra"
${port === undefined ? '' : `MPIEXEC_PORT_RANGE=${port}:${port} `}${line} ${asRank(run.program).replace(AS_RANK, AS_RANK_OF_PROXY)} >"$d/hydra" &
m=$! x=
until grep -q '^HYDRA_LAUNCH_END' "$d/hydra" || ! kill -0 $m 2>/dev/null; do sleep 0.1; done
l=$(sed -n 's/^HYDRA_LAUNCH: //p' "$d/hydra" | head -n 1)
[ -z "$l" ] || { echo "hydra $l" >"$MUSTER_SAY"; $l & x=$!; }
wait $m; c=$?
[ -z "$x" ] || { [ $c = 0 ] || kill $x; wait $x; } 2>/dev/null
grep -v '^HYDRA_LAUNCH' "$d/hydra"
exit $c`,
    environment,
  }
}

/**
 * A proxy does not notice the end of a rank whose own children still have its PMI socket, nor a failure after MPI_Finalize: it ends
 * with the first rank that fails, and all others with it.
 */
const AS_RANK_OF_PROXY = `sh -c 'sh "$MUSTER_DIRECTORY/rank" "$@"; c=$?; [ $c = 0 ] || kill -KILL $PPID; exit $c' rank `

export const mpichByHand = ({ gang, names, program }: MpiRun): string => {
  const variables = Object.entries({ ...gang.spec.environment, ...gang.environment })
  const exports = variables.map(([name, value]) => ` -genv ${name} ${shellQuote(value)}`)
  return `mpiexec.hydra ${words(gang)}${names.length === 0 ? '' : ` -genvlist ${names.join()}`}${exports.join('')} ${asProgram(program)}`
}

function words({ bundles, spec: { options } }: LaunchedGang): string {
  const hosts = bundles.map((one) => `${one.address}:${one.ranks}`).join()
  const ranks = bundles.reduce((sum, one) => sum + one.ranks, 0)
  return `-np ${ranks} -hosts ${shellQuote(hosts)} -bind-to ${options.bind ?? 'none'}`
}

/** UCX, libfabric and the older channel each read names of their own. */
function variablesOf(
  { bundles, spec: { options, ports } }: LaunchedGang,
  bundle: number,
): Readonly<Record<string, string>> {
  const card = /^[\w.:-]{1,15}$/.exec(bundles[bundle]?.said.card ?? '')?.[0]
  const [first, last] = ports
  return {
    ...(card === undefined || options.transport === 'rdma' ? {} : { UCX_NET_DEVICES: card, FI_TCP_IFACE: card }),
    UCX_TCP_PORT_RANGE: `${first}-${last}`,
    FI_TCP_PORT_LOW_RANGE: String(first),
    FI_TCP_PORT_HIGH_RANGE: String(last),
    MPIR_CVAR_CH3_PORT_RANGE: `${first}:${last}`,
  }
}

/** Settings of a proxy that may go to another host, and the form of each value. */
const SETTINGS: Readonly<Record<string, RegExp>> = {
  rmk: /^[a-z]{1,20}$/,
  launcher: /^manual$/,
  demux: /^[a-z]{1,20}$/,
  pgid: /^\d{1,6}$/,
  retries: /^\d{1,6}$/,
  usize: /^-?\d{1,6}$/,
  'pmi-port': /^[01]$/,
  'gpus-per-proc': /^-?\d{1,4}$/,
  'gpu-subdevs-per-proc': /^-?\d{1,4}$/,
}

function proxy({ bundles }: LaunchedGang, bundle: number, environment: Readonly<Record<string, string>>): LaunchStep {
  const [first] = bundles
  const line = first?.said.hydra
  if (first === undefined || line === undefined) return { kind: 'wait' }
  const told = [...line.matchAll(/--([a-z-]{1,40}) (\S{1,300})/g)].map(
    ([, name = '', value = '']) => [name, value] as const,
  )
  // Its host is the one that Muster knows.
  const port = /:(\d{1,5})$/.exec(told.find(([name]) => name === 'control-port')?.[1] ?? '')?.[1]
  if (port === undefined) return { kind: 'refuse', reason: `${first.host}: mpiexec told no control port` }
  const settings = told.filter(([name, value]) => SETTINGS[name]?.test(value))
  const words = [['control-port', `${first.address}:${port}`], ...settings, ['proxy-id', String(bundle)]]
  return {
    kind: 'start',
    command: `exec hydra_pmi_proxy ${words.map(([name, value = '']) => `--${name} ${shellQuote(value)}`).join(' ')}`,
    environment,
  }
}
