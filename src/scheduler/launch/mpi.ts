/**
 * Open MPI (4.1) with Muster as its launch agent: mpirun runs in the first bundle and asks an agent to start `orted` on each other
 * host; the agent tells the line, and the bundle on that host starts it. So no host needs a key for another one, and all ranks are in
 * the bundles' cgroups. What the first host tells is not a line to run: only the settings that orted needs are taken from it, each
 * in the form that it has, and Muster writes the line.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { askPorts, askProgram, askVersion, differsIn, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { HOST_ROLE, type LaunchedGang, type Launcher, type LaunchSpec, type LaunchStep, ORDER } from './launcher.ts'
import { asRank } from './rank.ts'
import { beginOf } from './torchrun.ts'

/** mpirun listens on all ports of its first range, ranks on one each of the second. */
const CONTROL_PORTS = 1

export const mpi: Launcher = {
  name: 'mpi',
  summary: 'start MPI ranks with mpirun, without keys between the hosts',
  options: [
    {
      flags: 'slots <n>',
      summary: 'start N ranks in each bundle (default: its GPUs, else its cores)',
      values: /^[1-9]\d{0,3}$/,
    },
    { flags: 'transport <name>', summary: 'tcp (default) or rdma', values: /^(tcp|rdma)$/ },
    {
      flags: 'network <cidr>',
      summary: 'let MPI use this network: 10.0.0.0/24 (default: as it chooses)',
      values: /^[\d.]{7,15}\/\d{1,2}$/,
    },
    {
      flags: 'bind <name>',
      summary: 'bind each rank to a core or numa node (default: none)',
      values: /^(none|core|numa)$/,
    },
    { flags: 'as-is', summary: 'do not add -m mpi4py, which ends all ranks when one raises' },
    ORDER,
  ],
  shape: (options, bundles, request) => ({
    roles: [{ name: HOST_ROLE, count: bundles, request }],
    leaders: [0],
    isOnePerHost: true,
    ranks: slotsOf(options, request.gpuCount, request.cpuMilli),
  }),
  // Of coll_base_allreduce.c.
  ringDirection: () => 'next',
  next(gang, bundle) {
    const question = (index: number) =>
      formatQuestion(
        askProgram(index === 0 ? 'mpirun' : 'orted'),
        askVersion('version', 'ompi_info --version'),
        "if python3 -c 'import mpi4py' 2>/dev/null; then tell mpi4py yes; else tell mpi4py no; fi",
        ...(index === 0 ? [askPorts(CONTROL_PORTS, gang.spec.ports, beginOf(gang))] : []),
      )
    const step = nextQuestion(gang, bundle, question)
    if (step !== undefined) return step
    const difference = differsIn(gang, 'version', 'the version of Open MPI')
    if (difference !== undefined) return { kind: 'refuse', reason: difference }
    return bundle === 0
      ? {
          kind: 'start',
          command: `${AGENT}exec ${mpirunLine(gang, '"$MUSTER_DIRECTORY/agent"')}`,
          environment: ENVIRONMENT,
        }
      : daemon(gang, bundle)
  },
  byHand: (gang) => [{ host: gang.bundles[0]?.host ?? '', command: mpirunLine(gang) }],
}

/** Ranks of a bundle: its GPUs, else its whole cores. */
const slotsOf = ({ slots }: LaunchSpec['options'], gpus: number, cpuMilli: number): number =>
  slots === undefined ? gpus || Math.max(1, Math.floor(cpuMilli / 1000)) : Number(slots)

/** Root may run it: a job runs as whoever submitted it. */
const ENVIRONMENT = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' }

/** Called as `agent HOST orted …`; it lives as long as mpirun, which waits for it. */
const AGENT = `cd "$MUSTER_DIRECTORY" || exit
cat >agent <<'AGENT'
#!/bin/sh
h=$1; shift
echo "agent.$h $*" >"$MUSTER_SAY"
while kill -0 $PPID 2>/dev/null; do sleep 1; done
AGENT
chmod 700 agent; cd "$OLDPWD" || exit
`

/** The line by which a person would start it, with an agent's path in place of ssh. */
function mpirunLine({ bundles, command, spec }: LaunchedGang, agent?: string): string {
  const { transport = 'tcp', network, bind = 'none', 'as-is': asIs } = spec.options
  const slots = bundles.map(({ request }) => slotsOf(spec.options, request.gpuCount, request.cpuMilli))
  const [port] = portsOf(bundles[0]?.said)
  const hosts = bundles.map(({ address }, index) => `${address}:${slots[index]}`).join()
  const pairs: readonly (readonly [string, string])[] = [
    ...(transport === 'tcp' ? [['pml', 'ob1'] as const, ['btl', '^openib'] as const] : []),
    ...(network === undefined
      ? []
      : [['btl_tcp_if_include', network] as const, ['oob_tcp_if_include', network] as const]),
    ...(port === undefined ? [] : [['oob_tcp_dynamic_ipv4_ports', `${port}`] as const]),
  ]
  const words = [
    ...['mpirun', '-np', String(slots.reduce((sum, one) => sum + one, 0)), '-H', hosts],
    ...['--map-by', 'slot', '--bind-to', bind],
    ...pairs.flatMap(([name, value]) => ['--mca', name, value]),
    ...['PATH', ...Object.keys(spec.environment ?? {})].flatMap((name) => ['-x', name]),
  ]
  const launch =
    agent === undefined ? '' : ` --leave-session-attached --mca plm_rsh_no_tree_spawn 1 --mca plm_rsh_agent ${agent}`
  const program =
    asIs === undefined && bundles.every(({ said }) => said.mpi4py === 'yes') ? withAbort(command) : command
  // Open MPI warns of variables that are not set.
  return `${words.map(shellQuote).join(' ')} \${LD_LIBRARY_PATH+-x LD_LIBRARY_PATH}${launch} ${agent === undefined ? program : asRank(program)}`
}

/** A rank that raises would leave the others waiting for ever (mpi4py.run). */
function withAbort(command: string): string {
  return command.replace(/^((?:\S*\/)?python3?(?:\.\d+)?)\s+(?!-m mpi4py\b)/, '$1 -m mpi4py ')
}

/** What orted is given, and the form that each value must have. */
const SETTINGS: Readonly<Record<string, RegExp>> = {
  ess_base_jobid: /^\d{1,12}$/,
  ess_base_vpid: /^\d{1,6}$/,
  ess_base_num_procs: /^\d{1,6}$/,
  orte_node_regex: /^[\w.,:[\]()@*-]{1,4000}$/,
  orte_hnp_uri: /^\d{1,12}\.0(;tcp6?:\/\/[\d.,:[\]a-f]{1,500}:\d{1,5}(,\d{1,5}){0,99}){1,2}$/,
}

function daemon({ bundles }: LaunchedGang, bundle: number): LaunchStep {
  const [first] = bundles
  const own = bundles[bundle]
  const line = first?.said[`agent.${own?.address}`]
  if (first === undefined || own === undefined || line === undefined) return { kind: 'wait' }
  const told = new Map([...line.matchAll(/-mca (\w+) "?([^" ]*)"?/g)].map(([, name = '', value = '']) => [name, value]))
  const wrong = Object.entries(SETTINGS).find(([name, form]) => !form.test(told.get(name) ?? ''))
  if (wrong !== undefined) return { kind: 'refuse', reason: `${first.host}: mpirun gave orted no valid ${wrong[0]}` }
  const settings = [
    'orte_leave_session_attached=1',
    'ess=env',
    'plm=rsh',
    'pmix=^s1,s2,cray,isolated',
    ...Object.keys(SETTINGS).map((name) => `${name}=${told.get(name)}`),
  ]
  const words = settings.flatMap((pair) => {
    const at = pair.indexOf('=')
    return ['-mca', pair.slice(0, at), pair.slice(at + 1)]
  })
  return { kind: 'start', command: `exec orted ${words.map(shellQuote).join(' ')}`, environment: ENVIRONMENT }
}
