/**
 * A node as a unit of systemd, if hosts.yaml declares that: restarted when it dies, and started at boot. For root it is a unit of
 * the system, else of the user's manager, which then lingers (loginctl(1)). Its name contains the cluster's.
 * systemd.unit(5), systemd.service(5), systemd.syntax(7)
 */
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from '../kernel/fact.ts'
import { CTL, execWord, unitWord } from '../kernel/services.ts'
import type { RayWanted } from './wanted.ts'

export type UnitState =
  /** No systemd manages services for this login. */
  | { readonly kind: 'no-systemd' }
  | { readonly kind: 'absent' }
  /** By systemd's words: `active`, `activating`, `failed`, `inactive` …; `enabled`, `disabled` … */
  | { readonly kind: 'there'; readonly state: string; readonly enabled: string }

type Cluster = Pick<RayWanted, 'head' | 'port'>

export function unitName({ head, port }: Cluster): string {
  return `muster-ray-${head.host}-${port}.service`
}

export function unitFact(wanted: RayWanted): Fact<UnitState> {
  const unit = shellQuote(unitName(wanted))
  return {
    script: `${CTL}if ! can_supervise; then echo no-systemd
elif [ ! -e "$units/"${unit} ]; then echo absent
else echo "there $(limited systemctl $manager is-active ${unit}) $(limited systemctl $manager is-enabled ${unit})"
fi`,
    parse(text) {
      if (text === 'no-systemd' || text === 'absent') return { kind: text }
      const [, state, enabled] = /^there (\S{0,40}) ?(\S{0,40})$/.exec(text) ?? []
      return state === undefined || enabled === undefined ? undefined : { kind: 'there', state, enabled }
    },
  }
}

/** Every worker process has dozens of connections. No more: forks of Ray try to close as many, which takes long where it is without limit. */
export const OPEN_FILES = 65_536

/** For one start that fails by itself, and another one. */
const WAIT_S = 120

/** The output of `ray start`, overwritten each time. */
function logOf({ head, port }: Cluster): string {
  return `.ray/muster/${head.host}-${port}/start.log`
}

/**
 * Writes the unit, lets it start with the machine, and starts it; waits until `ray start` says that the node runs, or the unit has
 * failed. Needs $ray, whose arguments are `words`, and the function `explain`; `variables` are what the node has besides HOME,
 * PATH and the token.
 */
export function startUnit(wanted: RayWanted, words: readonly string[], variables: ReadonlyMap<string, string>): string {
  const unit = unitName(wanted)
  const own = [...variables].map(([name, value]) => `Environment=${unitWord(`${name}=${value}`)}`)
  const token = wanted.hasToken ? ' RAY_AUTH_MODE=token "RAY_AUTH_TOKEN_PATH=$(word "$RAY_AUTH_TOKEN_PATH")"' : ''
  return `${CTL}can_supervise || { echo 'systemd does not manage services for this login' >&2; exit 1; }
# As a word in a unit: what means something to systemd stands for itself.
word() { printf %s "$1" | sed 's/[\\\\"]/\\\\&/g; s/%/%%/g'; }
log=$HOME/${shellQuote(logOf(wanted))}
unit=$units/${shellQuote(unit)}
# Without polkit a login may not even ask for what root has granted already.
if [ $manager = --user ] && [ ! -e "/var/lib/systemd/linger/$(id -un)" ] && ! loginctl enable-linger; then
  echo 'the units of this login would stop with its last connection. As root, run: loginctl enable-linger USER' >&2
  exit 1
fi
mkdir -p "$units" "\${log%/*}" && rm -f "$log" && cat > "$unit.new" << UNIT || exit 1
[Unit]
Description=Ray node of the cluster of ${wanted.head.host}, port ${wanted.port} (muster)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
WorkingDirectory=~
Environment="HOME=$(word "$HOME")" "PATH=$(word "$PATH")"${token}
${own.map(heredoc).join('\n')}
ExecStartPre=-/bin/rm -f "$(word "$log")"
ExecStart="$(word "$ray" | sed 's/\\$/$$/g')" ${[...words, '--block'].map(execWord).map(heredoc).join(' ')}
StandardOutput=append:$(printf %s "$log" | sed 's/%/%%/g')
StandardError=inherit
KillMode=mixed
TimeoutStopSec=15
Restart=on-failure
RestartSec=3
LimitNOFILE=${OPEN_FILES}

[Install]
WantedBy=$([ $manager = --user ] && echo default.target || echo multi-user.target)
UNIT
mv -f "$unit.new" "$unit" && ctl daemon-reload && ctl enable --quiet ${shellQuote(unit)} && ctl start ${shellQuote(unit)} || exit 1
left=${WAIT_S} over=
until grep -q 'Ray runtime started' "$log" 2> /dev/null; do
  left=$((left - 1))
  state=$(ctl show --property SubState ${shellQuote(unit)})
  case $left,$state in
    0,*) over=1;;
    # A busy host: Ray waits for its own raylet for half a minute, and systemd tries again.
    *=auto-restart) grep -q 'timed out during startup' "$log" || over=1;;
    *=failed | *=dead) over=1;;
  esac
  if [ -n "$over" ]; then
    said=$(cat "$log" 2> /dev/null); explain
    echo "the unit ${unit} does not come up: $state" >&2
    exit 1
  fi
  sleep 1
done`
}

/** Stops the unit and removes it, if there is one. */
export function stopUnit(cluster: Cluster): string {
  const unit = shellQuote(unitName(cluster))
  return `${CTL}if [ -e "$units/"${unit} ]; then
  ! can_supervise || { ctl disable --quiet ${unit}; ctl stop ${unit}; }
  rm -f "$units/"${unit} "$units"/*.wants/${unit} "$HOME/"${shellQuote(logOf(cluster))}
  ! can_supervise || { ctl daemon-reload; ctl reset-failed ${unit} 2> /dev/null || :; }
fi
`
}

/** Removes the unit file "$p", which does not run. */
export const UNIT_REMOVE = `${CTL}name=\${p##*/}
! can_supervise || ctl disable --quiet "$name"
rm -f "$p" "$units"/*.wants/"$name"
! can_supervise || { ctl daemon-reload; ctl reset-failed "$name" 2> /dev/null; }
:`

/** In a here-document whose variables are replaced. */
function heredoc(text: string): string {
  return text.replaceAll(/[\\$`]/g, '\\$&')
}
