/**
 * Starts a node without trusting Ray's exit code: a head is up when its dashboard lists it as alive. The step's undo stops what a
 * failed start leaves behind (a GCS, monitors), which would break the next start.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { clusterProgram } from './facts.ts'
import { inside, placeName, placeScript, tokenScript } from './place.ts'
import { LIST_RAY } from './processes.ts'
import { OPEN_FILES, startUnit } from './unit.ts'
import { DEFAULT_TEMP_DIRECTORY, dashboardAddress, type RayNode, type RayWanted } from './wanted.ts'

/** Ray itself gives up after 41 s where a port is taken, 30 s where a raylet does not come. */
export const START_TIMEOUT_MS = 180_000
/** Fifths of a second for a dashboard to answer, once its head is up. */
const DASHBOARD_TRIES = 300

/**
 * Runs a Python program as its own first line says, and ends when that has done its work: the interpreter would tidy up for
 * another half to whole second, with the node up already. What fails ends as ever.
 */
const withoutTidying = (begin: Begin): string => `import sys
program = sys.argv[1]
sys.path[:1] = [program.rpartition("/")[0]]
import os, runpy
sys.argv[:2] = [program]
${begin === 'early' ? LOAD_AND_WAIT : ''}try: runpy.run_path(program, run_name="__main__")
except SystemExit as end:
    if end.code: raise
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)`

/** `early`: it loads Ray, and starts nothing until it has read a line; without one it ends. */
type Begin = 'at once' | 'early'

/** What fails to load here fails again when it is needed, with a message. */
const LOAD_AND_WAIT = `try: import ray.scripts.scripts
except Exception: pass
if not os.read(0, 1): os._exit(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
`

/** The command line of `ray start`, as it is shown and run. */
export function startArguments(wanted: RayWanted, node: RayNode, ip: string, headIp: string): readonly string[] {
  const { port, ports, dashboardHost, dashboardPort, objectStoreBytes, tempDirectory } = wanted
  const { cpu, gpu, memoryBytes, custom, isHead } = node
  const labels = Object.entries(node.labels).map(([name, label]) => `${name}=${label}`)
  const given = {
    'node-manager-port': ports.nodeManager,
    'object-manager-port': ports.objectManager,
    'min-worker-port': ports.workers?.[0],
    'max-worker-port': ports.workers?.[1],
    'num-cpus': cpu,
    'num-gpus': gpu,
    memory: memoryBytes,
    resources: Object.keys(custom).length === 0 ? undefined : JSON.stringify(custom),
    labels: labels.join(',') || undefined,
    'object-store-memory': objectStoreBytes,
    // A worker gets it from the head.
    'temp-dir': isHead && tempDirectory !== DEFAULT_TEMP_DIRECTORY ? tempDirectory : undefined,
  }
  return [
    'start',
    ...(isHead ? ['--head', `--port=${port}`] : [`--address=${headIp}:${port}`]),
    `--node-ip-address=${ip}`,
    ...(isHead ? [`--dashboard-host=${dashboardHost}`, `--dashboard-port=${dashboardPort}`] : []),
    ...Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(isHead ? ['--disable-usage-stats'] : []),
  ]
}

/** For a node that waits for another: undefined where nothing can be loaded before. */
export function earlyStartScript(wanted: RayWanted, node: RayNode, ip: string, headIp: string): string | undefined {
  if (wanted.isSupervised || node.isHead || node.environment?.kind === 'docker') return undefined
  return startScript(wanted, node, ip, headIp, 'early')
}

export function startScript(
  wanted: RayWanted,
  node: RayNode,
  ip: string,
  headIp: string,
  begin: Begin = 'at once',
): string {
  const words = [...startArguments(wanted, node, ip, headIp), '--log-style=pretty', '--log-color=false']
  // One check of the head instead of twenty, because it is known to be reachable. vLLM's workers never get VLLM_HOST_IP from
  // their driver, and a group with another address than the one that Ray announces waits for ever.
  const own = { RAY_NUM_REDIS_GET_RETRIES: '1', VLLM_HOST_IP: ip, ...wanted.variables }
  const variables = new Map(Object.entries(own))
  const script = `${begin === 'early' ? 'exec 7<&0 < /dev/null\n' : ''}${placeScript(node.environment)}
[ -n "$ray" ] || { echo ${shellQuote(`there is no ray in ${placeName(node.environment)}`)} >&2; exit 1; }
cd "$HOME" || cd /
# As in an environment that is activated: jobs find its programs by their names.
PATH=\${ray%/*}:$PATH; export PATH
explain() {
  why=$(printf '%s\\n' "$said" | sed -n '/^[A-Za-z_.]*\\(Error\\|Exception\\): /,$p' | tr '\\n' ' ' | cut -c 1-280)
  printf '%s\\n' "\${why:-$said}" >&2
}
${tokenScript(wanted, node)}${wanted.isSupervised ? startUnit(wanted, words, variables) : startDetached(words, variables, begin)}
${node.isHead ? waitForDashboard(wanted) : ''}`
  return inside(wanted, node, script)
}

function startDetached(words: readonly string[], variables: ReadonlyMap<string, string>, begin: Begin): string {
  const own = words.map(shellQuote).join(' ')
  const [wait, stdin] = begin === 'early' ? ['read -r turn <&7 || exit 1; ', '<&7'] : ['', '< /dev/null']
  const exports = [...variables].map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
  return `files=$(ulimit -H -n)
[ "$files" -lt ${OPEN_FILES} ] 2> /dev/null || files=${OPEN_FILES}
ulimit -S -n "$files" 2> /dev/null || :
${exports.join('')}said=$(
  read -r first 2> /dev/null < "$ray"
  case $first in '#!'/*python*) python=\${first#??};; *) python=;; esac
  if [ -x "$python" ]; then exec "$python" -c ${shellQuote(withoutTidying(begin))} "$ray" ${own} ${stdin}
  else ${wait}exec "$ray" ${own} < /dev/null; fi 2>&1
)
status=$?
printf '%s\\n' "$said"
[ $status -eq 0 ] || { explain; exit 1; }`
}

function waitForDashboard(wanted: RayWanted): string {
  return `${isAliveFunction(wanted)}
left=${DASHBOARD_TRIES}
until is_alive; do
  left=$((left - 1))
  if [ $left -le 0 ]; then
    echo "ray start succeeded, and its dashboard at ${dashboardAddress(wanted)} does not list the head: see ${wanted.tempDirectory}/session_latest/logs/dashboard.log" >&2
    exit 1
  fi
  sleep 0.2
done`
}

/** The shell function `is_alive`. Listening sockets are checked first, because that is cheap. proc_pid_net(5) */
function isAliveFunction(wanted: RayWanted): string {
  const port = wanted.dashboardPort.toString(16).toUpperCase().padStart(4, '0')
  return `is_alive() {
  grep -q -h '^ *[0-9]*: [0-9A-F]*:${port} [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6 2> /dev/null || return 1
  ${clusterProgram(dashboardAddress(wanted))} | grep -q '"state": "ALIVE"'
}`
}

/** Exit code 0: the node runs. */
export function startCheck(wanted: RayWanted, node: RayNode, headIp: string): string {
  const place = `${placeScript(node.environment)}\n${tokenScript(wanted, node)}`
  if (node.isHead) return inside(wanted, node, `${place}${isAliveFunction(wanted)}\n[ -n "$py" ] && is_alive`)
  const pattern = `^[0-9]* [0-9]* [0-9]* raylet .*--gcs-address=${headIp.replaceAll('.', '[.]')}:${wanted.port}\\( .*\\)*$`
  return inside(wanted, node, `${LIST_RAY}\nlist_ray | grep -q ${shellQuote(pattern)}`)
}

/** What is the case if that check fails: `ray start` may succeed, and its node end at once. */
export function startLack(wanted: RayWanted, node: RayNode, headIp: string): string {
  const logs = `${wanted.tempDirectory}/session_latest/logs`
  return node.isHead
    ? `its dashboard at ${dashboardAddress(wanted)} does not list the head: see ${logs}/dashboard.log`
    : `no raylet of ${headIp}:${wanted.port} runs here: see raylet.out and raylet.err in ${logs}`
}

/**
 * Stops the processes of one cluster on a host, and no others: those that `list_ray` finds with its address, and their children.
 * Raylets first, so that they leave the cluster cleanly; the GCS last. TERM, then KILL.
 */

/** Fifths of a second between TERM and KILL, as long as Ray itself waits: a raylet without its GCS does not go by itself. */
const GRACE_FIFTHS = 25

export const STOP_TIMEOUT_MS = 60_000

export type Target = {
  readonly ip: string
  readonly port: number
  readonly tempDirectory: string
  /** Its GCS is gone, so no node can leave cleanly, and waiting is useless. */
  readonly isOrphaned?: boolean
}

/** The script that stops them. */
export function stopScript({ ip, port, tempDirectory, isOrphaned = false }: Target): string {
  const address = shellQuote(`${ip}:${port}`)
  return `${LIST_RAY}
# Those of PROGRAM (or all others) of this cluster, as PID:TICKS.
members() {
  list_ray | while read -r pid ticks uid program rest; do
    case " $rest " in
      *" --gcs-address="${address}" "* | *" --address="${address}" "*) ;;
      *" --gcs_server_port="${port}" "*) case " $rest " in *" --node-ip-address="${shellQuote(ip)}" "*) ;; *) continue;; esac;;
      *) continue;;
    esac
    case $1 in "$program") ;; others) case $program in gcs_server | raylet) continue;; esac;; *) continue;; esac
    echo "$pid:$ticks"
  done
}
# The same with all that they started.
family() {
  for f in /proc/[0-9]*/stat; do
    read_stat "$f" || continue
    pid=\${s%% *}; set -- \${s##*) }
    [ "$1" = Z ] || echo "$pid $2 \${20}"
  done | awk -v roots="$(echo $roots)" '
    { parent[$1] = $2; ticks[$1] = $3 }
    END {
      count = split(roots, list, " ")
      for (i = 1; i <= count; i++) { split(list[i], part, ":"); if (ticks[part[1]] == part[2]) found[part[1]] = 1 }
      do { more = 0; for (pid in parent) if (!(pid in found) && (parent[pid] in found)) { found[pid] = 1; more = 1 } } while (more)
      for (pid in found) print pid ":" ticks[pid]
    }'
}
living() {
  for each in "$@"; do
    read_stat "/proc/\${each%:*}/stat" || continue
    set -- \${s##*) }
    [ "$1" = Z ] || [ "\${20}" != "\${each#*:}" ] || echo "$each"
  done
}
signal_all() {
  how=$1; shift
  for each in $(living "$@"); do kill "-$how" "\${each%:*}"; done
}
end_all() {
  left=${isOrphaned ? 0 : GRACE_FIFTHS}
  [ $# -gt 0 ] || return 0
  signal_all TERM "$@"
  # What is killed takes its time on a busy host.
  while [ -n "$(living "$@")" ] && [ "$left" -gt -${GRACE_FIFTHS} ]; do
    [ "$left" -gt 0 ] || signal_all KILL "$@"
    left=$((left - 1)); sleep 0.2
  done
}
stop_ray() {
  roots="$(members raylet) $(members others)"
  all=$(family)
  end_all $(members raylet)
  end_all $all $(members others)
  end_all $(members gcs_server)
  rest=$(living $all; members raylet; members others; members gcs_server)
  if [ -n "$rest" ]; then echo "these do not end (process:start): $(echo $rest)" >&2; return 1; fi
  f=${shellQuote(`${tempDirectory}/ray_current_cluster`)}
  [ "$(cat "$f" 2> /dev/null)" != ${address} ] || rm -f "$f"
}
stop_ray`
}
