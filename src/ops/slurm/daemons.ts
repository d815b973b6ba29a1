/**
 * munged, slurmctld and slurmd on a host: services of systemd where it is process 1, otherwise processes found by name and stopped
 * by pid. And the munge key, which travels from the controller through this program's memory: it is in no argument and no output
 * that is shown. What Muster made or enabled is in a record on the host.
 */
import { EACH_STAT, READ_STAT } from '../../base/proc-stat.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { MADE_BY_MUSTER } from '../kernel/files.ts'
import type { Action } from '../kernel/operation.ts'
import { FILES, LOGS, PLACE, STARTED, UNSET_VARIABLES } from './wanted.ts'

export type Daemon = 'munged' | 'slurmctld' | 'slurmd'

export const DAEMONS: Readonly<Record<Daemon, { readonly unit: string; readonly log: string }>> = {
  munged: { unit: 'munge.service', log: '/var/log/munge/munged.log' },
  slurmctld: { unit: 'slurmctld.service', log: `${LOGS}/slurmctld.log` },
  slurmd: { unit: 'slurmd.service', log: `${LOGS}/slurmd.log` },
}

export const KEY_FILE = '/etc/munge/munge.key'
/** `key SUM` (SHA-256 of the key that Muster put there) and `enabled UNIT`; anyone may read it. */
const RECORD_PLACE = '/var/lib/muster'
export const RECORD = `${RECORD_PLACE}/slurm`

export const HAS_SYSTEMD = `has_systemd() { [ -d /run/systemd/system ] && command -v systemctl > /dev/null; }
`

/** `daemon_list` prints `NAME PID TICKS` for each daemon and each slurmstepd of this host, not those of its containers. */
export const DAEMON_LIST = `${READ_STAT}daemon_list() {
  space=$(readlink /proc/$$/ns/pid)
  for each in /proc/[0-9]*/stat; do
    read_stat "$each" || continue
    name=\${s#*(}; name=\${name%%)*}
    case $name in munged | slurmctld | slurmd | slurmstepd) ;; *) continue;; esac
    pid=\${s%% *}; set -- \${s##*) }
    [ "$1" != Z ] || continue
    there=$(readlink "/proc/$pid/ns/pid" 2> /dev/null) && [ "$there" != "$space" ] && continue
    echo "$name $pid \${20}"
  done
}
`

const TOOLS = `${HAS_SYSTEMD}${DAEMON_LIST}
cd /
PATH=$PATH:/usr/sbin:/sbin
${UNSET_VARIABLES}
fail() { printf '%s\\n' "$*" >&2; exit 1; }
pids() { daemon_list | sed -n "s/^$1 \\([0-9]*\\) .*/\\1/p"; }
# Waits for so many fifths of a second until the rest is true.
await() {
  tries=$1; shift
  until "$@"; do tries=$((tries - 1)); [ $tries -gt 0 ] || return 1; sleep 0.2; done
}
is_over() { [ -z "$(pids $1)" ]; }
# Waits until the second is true, as long as the first runs.
await_daemon() {
  is_settled() { $settled || is_over $running; }
  running=$1 settled=$2
  await 150 is_settled && $settled
}
stop_daemon() {
  ! has_systemd || systemctl stop "$2" || :
  for pid in $(pids $1); do kill "$pid"; done
  await 50 is_over $1 || { for pid in $(pids $1); do kill -9 "$pid"; done; await 50 is_over $1; } || fail "$1 does not end"
}
note() {
  case $1 in key*) old='^key ';; *) old="^$1$";; esac
  mkdir -p ${RECORD_PLACE} && { echo ${shellQuote(MADE_BY_MUSTER)}; grep -s -v -e '^#' -e "$old" ${RECORD}; echo "$1"; } > ${RECORD}.new &&
    chmod 644 ${RECORD}.new && mv -f ${RECORD}.new ${RECORD}
}
explain() { grep -E '(fatal|error|Error|Emergency)' "$1" 2> /dev/null | tail -n 3 | cut -c 1-300 >&2; }
start_daemon() {
  command -v $1 > /dev/null || fail "there is no $1"
  if has_systemd; then
    systemctl is-enabled --quiet "$2" || { systemctl enable --quiet "$2" && note "enabled $2"; }
    systemctl reset-failed "$2" 2> /dev/null
    systemctl start "$2"
  else by_hand_$1 < /dev/null
  fi
}
by_hand_munged() {
  install -d -o munge -g munge -m 755 /run/munge && install -d -o munge -g munge -m 700 /var/log/munge &&
    install -d -o munge -g munge -m 711 /var/lib/munge && setpriv --reuid=munge --regid=munge --clear-groups munged
}
by_hand_slurmctld() { slurmctld; }
by_hand_slurmd() { slurmd; }
`

const MUNGED = `is_heard() { munge -n 2> /dev/null | unmunge > /dev/null 2>&1; }
stop_daemon munged ${DAEMONS.munged.unit}
start_daemon munged ${DAEMONS.munged.unit} && await 50 is_heard || { explain ${DAEMONS.munged.log}; fail 'munged does not work'; }
`

/** Makes a new key, and prints it. */
export function makeKey(path: string): Action {
  return keyAction(path, `od -A n -v -t x1 -N 64 /dev/urandom | tr -d ' \\n' > "$k.new"`, 'cat "$k"')
}

/** The key of the controller, on its stdin. */
export function bringKey(path: string): Action {
  return keyAction(path, 'cat > "$k.new"', ':')
}

/** Puts the key in its place, and restarts munged with it. */
function keyAction(path: string, get: string, then: string): Action {
  return {
    script: `${path}${TOOLS}umask 077
k=${KEY_FILE}; d=\${k%/*}
id munge > /dev/null 2>&1 || fail 'there is no user munge: the package munge makes it'
[ -d "$d" ] || install -d -o munge -g munge -m 700 "$d" || exit 1
${get} && [ "$(wc -c < "$k.new")" = 128 ] && chown munge:munge "$k.new" && chmod 400 "$k.new" && mv -f "$k.new" "$k" || exit 1
umask 022
sum=$(sha256sum < "$k") && note "key \${sum%% *}" || exit 1
${MUNGED}${then}`,
    asRoot: true,
    isSecret: true,
  }
}

/** Prints the key that the controller has. */
export const showKey: Action = { script: `cat ${KEY_FILE}`, asRoot: true, isSecret: true }
export const KEY_PATTERN = '[0-9a-f]{128}'

export function startMunged(path: string): Action {
  return { script: path + TOOLS + MUNGED, asRoot: true }
}

/** The directories of the cluster. */
export const makePlace: Action = {
  script: `id slurm > /dev/null 2>&1 || { echo 'there is no user slurm: the packages of Slurm make it' >&2; exit 1; }
install -d -m 755 ${PLACE} ${PLACE}/spool && install -d -o slurm -g slurm -m 755 ${PLACE}/state ${LOGS}`,
  asRoot: true,
}

const START_MS = 120_000
export const STOP_MS = 180_000

/** What a slurmctld that restarts does not lose: jobs in this partition, on these nodes or waiting for them. */
export type Kept = { readonly partition: string; readonly nodes: readonly string[] }

/** Ends the script if the running slurmctld has other jobs: they came after the plan, which would have named them. */
export const refuseLoss = ({
  partition,
  nodes,
}: Kept): string => `lost=$(timeout 10 squeue -h -a -t PD,CF,R,S -o '%A|%P|%N|%n' 2> /dev/null | while IFS='|' read -r id part on wanted; do
  [ "$part" = ${shellQuote(partition)} ] || { echo "$id"; continue; }
  for list in $on $wanted; do
    for name in $(timeout 10 scontrol show hostnames "$list" 2> /dev/null); do
      case ${shellQuote(` ${nodes.join(' ')} `)} in *" $name "*) ;; *) echo "$id"; break 2;; esac
    done
  done
done | head -n 20 | tr '\\n' ' ')
[ -z "$lost" ] || fail "jobs that came after the plan would be lost: $lost- run muster up slurm again to see why"
`

/** Then waits for the nodes that run already: slurmctld asks them every third of SlurmdTimeout. */
export function startController(path: string, nodes: readonly string[], kept?: Kept): Action {
  const wait =
    nodes.length === 0
      ? ''
      : `\nare_heard() { ! timeout 10 sinfo -h -n ${shellQuote(nodes.join())} -o %T 2> /dev/null | grep -q '^unk'; }\nawait 150 are_heard || :`
  return {
    script: `${path}${TOOLS}is_up() { timeout 5 scontrol ping 2> /dev/null | grep -q 'is UP'; }
${kept === undefined ? '' : refuseLoss(kept)}stop_daemon slurmctld ${DAEMONS.slurmctld.unit}
start_daemon slurmctld ${DAEMONS.slurmctld.unit} && await_daemon slurmctld is_up ||
  { explain ${DAEMONS.slurmctld.log}; fail 'slurmctld does not answer'; }${wait}
install -m 644 ${FILES.slurm} ${STARTED}`,
    asRoot: true,
    timeoutMs: START_MS,
  }
}

/** Jobs go on while slurmd is away. */
export function startNode(path: string, name: string): Action {
  return {
    script: `${path}${TOOLS}since=$(date +%s)
# The controller has heard this slurmd, not the one before.
is_known() {
  began=$(SLURM_TIME_FORMAT=%s timeout 10 scontrol -o show node ${shellQuote(name)} 2> /dev/null | sed -n 's/.* SlurmdStartTime=\\([0-9]*\\).*/\\1/p')
  [ "\${began:-0}" -ge "$since" ] || return 1
  case $(timeout 10 sinfo -h -n ${shellQuote(name)} -o %T 2> /dev/null | head -n 1) in '' | unk* | inval* | *'*') return 1;; esac
}
stop_daemon slurmd ${DAEMONS.slurmd.unit}
start_daemon slurmd ${DAEMONS.slurmd.unit} && await_daemon slurmd is_known ||
  { explain ${DAEMONS.slurmd.log}; fail "the controller does not take it as a node: $(timeout 10 sinfo -h -n ${shellQuote(name)} -o '%T, %E' 2>&1 | head -n 1 | cut -c 1-300)"; }`,
    asRoot: true,
    timeoutMs: START_MS,
  }
}

/** By whom a node was drained. */
export const DRAINED_BY_MUSTER = 'muster down slurm'

/**
 * Ends the jobs on this node and slurmd. New jobs are kept away first. What does not end with its job, or without a controller, is
 * killed: slurmstepd outlives slurmd on purpose.
 */
export function stopNode(path: string): Action {
  return {
    script: `${path}${TOOLS}n=$(hostname); n=\${n%%.*}
steps() { pids slurmstepd; }
if [ -n "$(pids slurmd)$(steps)" ] && command -v scancel > /dev/null; then
  timeout 10 scontrol update nodename="$n" state=drain reason=${shellQuote(DRAINED_BY_MUSTER)} > /dev/null 2>&1
  [ -z "$(steps)" ] || timeout 10 scancel --nodelist="$n" > /dev/null 2>&1 || :
  [ -z "$(steps)" ] || await 250 is_over slurmstepd || :
fi
stop_daemon slurmd ${DAEMONS.slurmd.unit}
rest=$(steps)
if [ -n "$rest" ]; then
  cat /proc/[0-9]*/stat 2> /dev/null | LC_ALL=C awk -v roots="$(echo $rest)" '
    ${EACH_STAT}
    { parent[pid] = stat[2] }
    END {
      count = split(roots, list, " "); for (i = 1; i <= count; i++) found[list[i]] = 1
      do { more = 0; for (pid in parent) if (!(pid in found) && (parent[pid] in found)) { found[pid] = 1; more = 1 } } while (more)
      for (pid in found) print pid
    }' | while read -r pid; do kill -9 "$pid" 2> /dev/null; done
  await 50 is_over slurmstepd || fail 'jobs do not end'
fi`,
    asRoot: true,
    timeoutMs: STOP_MS,
  }
}

export function stopController(): Action {
  return { script: `${TOOLS}stop_daemon slurmctld ${DAEMONS.slurmctld.unit}`, asRoot: true, timeoutMs: STOP_MS }
}

/** Of a host that is no longer the controller: it does not start again at boot either. */
export function retireController(): Action {
  const { unit } = DAEMONS.slurmctld
  const script = `${TOOLS}stop_daemon slurmctld ${unit}
if has_systemd && grep -s -q -x 'enabled ${unit}' ${RECORD}; then
  systemctl disable --quiet ${unit} && sed -i '/^enabled ${unit}$/d' ${RECORD}
fi`
  return { script, asRoot: true, timeoutMs: STOP_MS }
}

/** Also switches off what Muster switched on at boot. */
export function removeKey(): Action {
  return {
    script: `${TOOLS}stop_daemon munged ${DAEMONS.munged.unit}
! has_systemd || sed -n 's/^enabled \\([a-z]*[.]service\\)$/\\1/p' ${RECORD} | while read -r unit; do
  systemctl disable --quiet "$unit"
done
has_systemd || rm -rf /run/munge
rm -f ${KEY_FILE} ${RECORD} ${RECORD}.new
rmdir ${RECORD_PLACE} 2> /dev/null || :`,
    asRoot: true,
    timeoutMs: STOP_MS,
  }
}

export const removePlace: Action = { script: `rm -rf ${PLACE} /run/slurmctld.pid /run/slurmd.pid`, asRoot: true }

/** A node may have come back by itself; it answers again a moment later. */
export function resume(path: string, name: string): Action {
  const node = shellQuote(name)
  return {
    script: `${path}${TOOLS}state() { timeout 10 sinfo -h -n ${node} -o %T 2> /dev/null | head -n 1; }
is_back() { case $(state) in '' | drain* | *'*') return 1;; esac; }
case $(state) in drain*) scontrol update nodename=${node} state=resume || exit 1;; esac
await 150 is_back || fail "it is still $(state)"`,
    asRoot: true,
    timeoutMs: START_MS,
  }
}

/** Changes of these are read when the daemon starts. */
export const READS: Readonly<Record<Daemon, readonly string[]>> = {
  munged: [KEY_FILE],
  slurmctld: [FILES.slurm],
  slurmd: [FILES.slurm, FILES.gres, FILES.cgroup],
}
