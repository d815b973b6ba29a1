/** What this login may do, and what sshd and the network allow it. */
import type { Fact } from '../../kernel/fact.ts'
import { parseCount, parsePairs } from './machine.ts'

export type Sudo = 'root' | 'passwordless' | 'password' | 'missing'

export const sudoFact: Fact<Sudo> = {
  script: `
if [ "$(id -u)" = 0 ]; then echo root
elif ! command -v sudo > /dev/null; then echo missing
elif limited sudo -n true; then echo passwordless
else
  status=$?
  overdue $status && return $status
  echo password
fi
`,
  parse(text) {
    const word = text.trim()
    return word === 'root' || word === 'passwordless' || word === 'password' || word === 'missing' ? word : undefined
  },
}

/** sshd_config(5): sessions on one connection, and connections that have not logged in yet (start dropping at, all of them at). */
export type SshdLimits = {
  readonly maxSessions?: number
  readonly maxStartups?: { readonly start: number; readonly full: number }
}

/**
 * Any user can read the configuration file and MaxStartups from the listener's process title; `sshd -T` prints the whole
 * configuration, but only for root. The bracket in the pattern keeps this script from finding itself.
 */
export const sshdFact: Fact<SshdLimits> = {
  script: `
title=$(grep -ahs '[[]listener] [0-9]' /proc/[0-9]*/cmdline | tr '\\000' ' ')
case $title in
  *'[listener]'*'[listener]'*) echo several; return 0;;
  *'[listener]'*) printf '%.300s\\n' "$title";;
esac
[ "$(id -u)" = 0 ] || return 0
file=
case $title in *' -f '*) file=\${title#* -f }; file=\${file%% *};; esac
program=$(command -v sshd) || return 0
from=\${SSH_CONNECTION%% *}
limited "$program" -T \${file:+-f "$file"} -C "user=$(id -un),host=\${from:-localhost},addr=\${from:-127.0.0.1}" |
  grep -E '^(maxsessions|maxstartups) '
`,
  parse(text) {
    const sessions = parseCount(/^maxsessions (\d+)$/m.exec(text)?.[1])
    const full = /^maxstartups (\d+)(?::\d+:(\d+))?$/m.exec(text) ?? /of (\d+)-(\d+) startups/.exec(text)
    const start = parseCount(full?.[1])
    if (sessions === undefined && start === undefined) return undefined
    return {
      ...(sessions === undefined ? {} : { maxSessions: sessions }),
      ...(start === undefined ? {} : { maxStartups: { start, full: parseCount(full?.[2]) ?? start } }),
    }
  },
}

/** The network device on the route back to this console, and its MTU. */
export type Route = { readonly device: string; readonly mtuBytes?: number }

export const routeFact: Fact<Route> = {
  script: `
from=\${SSH_CONNECTION%% *}
[ -n "$from" ] || return 1
found=$(limited ip -o route get "$from")
device=\${found#* dev }
[ "$device" != "$found" ] || return 1
device=\${device%% *}
echo "device=$device"
echo "mtu=$(cat "/sys/class/net/$device/mtu")"
`,
  parse(text) {
    const pairs = parsePairs(text)
    const device = pairs.get('device')
    const mtu = parseCount(pairs.get('mtu'))
    if (device === undefined) return undefined
    return { device, ...(mtu === undefined ? {} : { mtuBytes: mtu }) }
  },
}

/** The program that keeps the host's clock right, as far as one is installed. */
export type TimeService = 'chrony' | 'timedatectl' | 'ntpd'

export const timeServiceFact: Fact<TimeService> = {
  script: `
for name in chronyc timedatectl ntpd; do
  command -v $name > /dev/null && { echo $name; break; }
done
`,
  parse(text) {
    const word = text.trim()
    if (word === 'chronyc') return 'chrony'
    return word === 'timedatectl' || word === 'ntpd' ? word : undefined
  },
}
