/**
 * Stops the processes of one cluster on a host, and no others: those that `list_ray` finds with its address, and their children.
 * Raylets first, so that they leave the cluster cleanly; the GCS last. TERM, then KILL.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { LIST_RAY } from './processes.ts'

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

/** The shell function `stop_ray`. */
export function stopFunctions({ ip, port, tempDirectory, isOrphaned = false }: Target): string {
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
    read -r words 2> /dev/null < "$f" || continue
    pid=\${words%% *}; set -- \${words##*) }
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
    read -r words 2> /dev/null < "/proc/\${each%:*}/stat" || continue
    set -- \${words##*) }
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
}`
}

export function stopScript(target: Target): string {
  return `${stopFunctions(target)}\nstop_ray`
}
