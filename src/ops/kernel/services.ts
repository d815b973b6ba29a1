/** Services with systemd, OpenRC or the scripts of /etc/init.d, and without a service manager (in a container). */
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from './fact.ts'

export type ServiceManager = 'systemd' | 'openrc' | 'sysv' | 'by-hand'

/**
 * A service's name with each manager, and the scripts that replace a missing one (exit code 0: true, or done).
 * Their check also counts beside a manager, which does not know what was started without it, and replaces that of a script of
 * init.d, which starts a dozen programs.
 */
export type SystemService = {
  readonly systemd: string
  readonly openrc: string
  readonly sysv: string
  readonly byHand?: { readonly isRunning: string; readonly start: string; readonly stop: string }
}

export type SystemServiceState = {
  readonly manager: ServiceManager
  readonly isRunning: boolean
  /** Whether it starts with the machine; undefined: unknown. */
  readonly isEnabled: boolean | undefined
}

/** Sets $manager for a service. */
function detect({ sysv }: SystemService): string {
  return `if [ -d /run/systemd/system ] && command -v systemctl > /dev/null; then manager=systemd
elif command -v rc-service > /dev/null && [ -d /run/openrc ]; then manager=openrc
elif [ -x /etc/init.d/${shellQuote(sysv)} ]; then manager=sysv
else manager=by-hand
fi
`
}

export function serviceFact(service: SystemService): Fact<SystemServiceState> {
  const { systemd, openrc, sysv, byHand } = service
  return {
    script: `${detect(service)}
state() {
  { ${byHand?.isRunning ?? 'false'}; } > /dev/null 2>&1 || case $manager in
    systemd) limited systemctl is-active --quiet ${shellQuote(systemd)};;
    openrc) limited rc-service ${shellQuote(openrc)} status;;
    sysv) ${byHand === undefined ? `limited /etc/init.d/${shellQuote(sysv)} status` : 'false'};;
    *) false;;
  esac > /dev/null 2>&1
}
enabled() {
  case $manager in
    systemd) limited systemctl is-enabled --quiet ${shellQuote(systemd)};;
    openrc) rc-update show default | grep -q -w ${shellQuote(openrc)};;
    sysv) set -- /etc/rc[2-5].d/S[0-9][0-9]${shellQuote(sysv)}; [ -L "$1" ] || [ -e "$1" ];;
    *) return 2;;
  esac > /dev/null 2>&1
}
state; running=$?
enabled; echo "$manager $running $?"`,
    parse(text) {
      const match = /^(systemd|openrc|sysv|by-hand) (\d+) (\d+)$/.exec(text)
      if (match === null) return undefined
      const manager = match[1] as ServiceManager
      return { manager, isRunning: match[2] === '0', isEnabled: manager === 'by-hand' ? undefined : match[3] === '0' }
    },
  }
}

/** The script for an action, as root; undefined: this manager has no such action. */
export function serviceScript(
  service: SystemService,
  manager: ServiceManager,
  action: 'start' | 'stop' | 'enable' | 'disable',
): string | undefined {
  const { systemd, openrc, sysv, byHand } = service
  switch (manager) {
    case 'systemd':
      return `systemctl ${action} ${shellQuote(systemd)}`
    case 'openrc':
      if (action === 'enable') return `rc-update add ${shellQuote(openrc)} default`
      // It fails if there is nothing to remove.
      if (action === 'disable') {
        return `rc-update del ${shellQuote(openrc)} default || ! rc-update show default | grep -q -w ${shellQuote(openrc)}`
      }
      return `rc-service ${shellQuote(openrc)} ${action}`
    case 'sysv':
      if (action === 'disable') return `update-rc.d ${shellQuote(sysv)} disable`
      // `defaults` keeps links that exist and are disabled.
      if (action === 'enable')
        return `update-rc.d ${shellQuote(sysv)} defaults && update-rc.d ${shellQuote(sysv)} enable`
      // The started service must neither hold the connection's streams nor end with it.
      return `service ${shellQuote(sysv)} ${action} < /dev/null`
    case 'by-hand':
      return action === 'start' || action === 'stop' ? byHand?.[action] : undefined
  }
}

/** Units of systemd: where those of a login are, how they are managed, and quoting. systemd.unit(5), systemd.syntax(7) */

/** Sets $units, where the login's units are, and $manager, options of systemctl; `ctl` is systemctl with these. */
export const CTL = `if [ "$(id -u)" = 0 ]; then units=/etc/systemd/system manager=--system
else
  units=$HOME/.config/systemd/user manager=--user
  XDG_RUNTIME_DIR=\${XDG_RUNTIME_DIR:-/run/user/$(id -u)}; export XDG_RUNTIME_DIR
fi
ctl() { systemctl $manager "$@"; }
can_supervise() {
  [ -d /run/systemd/system ] && command -v systemctl > /dev/null || return 1
  [ "$(id -u)" = 0 ] || [ -S "$XDG_RUNTIME_DIR/systemd/private" ]
}
`

/** systemd.syntax(7): in quotes, with %% for a percent sign. */
export function unitWord(text: string): string {
  const plain = text.replaceAll(/[\\"]/g, '\\$&').replaceAll('%', '%%')
  return `"${plain.replaceAll('\n', '\\n')}"`
}

/** In a command line, variables must be escaped, too. */
export function execWord(text: string): string {
  return unitWord(text).replaceAll('$', '$$$$')
}
