/** What a machine is and has: kernel, names, processors, memory, open files; and how logins and commands are admitted. */
import { defined } from '../../../base/defined.ts'
import type { Fact } from '../../kernel/fact.ts'

/** No name or version of a machine is longer; a finding shows them. */
const MAX_CHARACTERS = 200

/** Lines `key=value`; a key without a value is left out. */
export function parsePairs(text: string): ReadonlyMap<string, string> {
  const pairs = text.split('\n').flatMap((line): [string, string][] => {
    const at = line.indexOf('=')
    const value = line
      .slice(at + 1)
      .trim()
      .slice(0, MAX_CHARACTERS)
    return at > 0 && value !== '' ? [[line.slice(0, at), value]] : []
  })
  return new Map(pairs)
}

/** A whole number, 0 or more; undefined for anything else. */
export function parseCount(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

export type SystemInfo = {
  readonly kernelName?: string
  readonly kernelRelease?: string
  readonly architecture?: string
  /** From uname -n. */
  readonly hostName?: string
  readonly user?: string
  readonly isRoot?: boolean
  readonly home?: string
  readonly loginShell?: string
  /** The character map of the user's locale, from `locale charmap`: `UTF-8`, `ANSI_X3.4-1968`. */
  readonly charmap?: string
  /** LC_ALL, else LC_CTYPE, else LANG. */
  readonly locale?: string
  /** `Europe/Berlin` if /etc/localtime has a name, else the abbreviation of date. */
  readonly timeZone?: string
  /** Offset to UTC as date prints it: `+0100`. */
  readonly utcOffset?: string
}

export const systemFact: Fact<SystemInfo> = {
  script: `
echo "kernel=$(uname -s)"
echo "release=$(uname -r)"
echo "machine=$(uname -m)"
echo "node=$(uname -n)"
echo "user=$(id -un)"
echo "uid=$(id -u)"
echo "home=$HOME"
echo "shell=$SHELL"
echo "locale=$said_locale"
echo "charmap=$said_charmap"
echo "zone=$(date +%Z)"
echo "offset=$(date +%z)"
echo "localtime=$(readlink /etc/localtime)"
echo "timezone=$(head -n 1 /etc/timezone)"
`,
  parse(text) {
    const pairs = parsePairs(text)
    if (!pairs.has('kernel') && !pairs.has('uid')) return undefined
    const uid = pairs.get('uid')
    const zone = /zoneinfo\/(?:posix\/|right\/)?(.+)$/.exec(pairs.get('localtime') ?? '')?.[1]
    return defined({
      kernelName: pairs.get('kernel'),
      kernelRelease: pairs.get('release'),
      architecture: pairs.get('machine'),
      hostName: pairs.get('node'),
      user: pairs.get('user'),
      isRoot: uid === undefined ? undefined : uid === '0',
      home: pairs.get('home'),
      loginShell: pairs.get('shell'),
      charmap: pairs.get('charmap'),
      locale: pairs.get('locale'),
      timeZone: zone ?? pairs.get('timezone') ?? pairs.get('zone'),
      utcOffset: pairs.get('offset'),
    })
  },
}

/** os-release(5). */
export type Distribution = { readonly id: string; readonly version?: string; readonly name: string }

export const distributionFact: Fact<Distribution> = {
  script: `
if [ -r /etc/os-release ]; then grep -E '^(ID|VERSION_ID|PRETTY_NAME)=' /etc/os-release
elif [ -r /usr/lib/os-release ]; then grep -E '^(ID|VERSION_ID|PRETTY_NAME)=' /usr/lib/os-release
elif command -v sw_vers > /dev/null; then echo ID=macos; echo "VERSION_ID=$(sw_vers -productVersion)"
fi
`,
  parse(text) {
    const pairs = parsePairs(text)
    const value = (key: string) => pairs.get(key)?.replace(/^(["'])(.*)\1$/, '$2')
    const id = value('ID')
    if (id === undefined) return undefined
    const version = value('VERSION_ID')
    const name = value('PRETTY_NAME') ?? [id, version].filter((word) => word !== undefined).join(' ')
    return { id, name, ...defined({ version }) }
  },
}

export type Python = { readonly path: string; readonly version: string } | 'missing'

export const pythonFact: Fact<Python> = {
  script: `
for name in python3 python; do
  path=$(command -v $name) || continue
  version=$(limited "$path" --version 2>&1)
  status=$?
  overdue $status && return $status
  case $version in Python\\ [0-9]*) echo "path=$path"; echo "version=\${version#Python }"; return 0;; esac
done
echo missing
`,
  parse(text) {
    const pairs = parsePairs(text)
    const path = pairs.get('path')
    const version = pairs.get('version')
    if (path !== undefined && version !== undefined) return { path, version }
    return text.trim() === 'missing' ? 'missing' : undefined
  },
}

export type Load = { readonly cores?: number; readonly one?: number; readonly five?: number; readonly fifteen?: number }

export const loadFact: Fact<Load> = {
  script: `
echo "cores=$(nproc || getconf _NPROCESSORS_ONLN || grep -c '^processor' /proc/cpuinfo)"
if [ -r /proc/loadavg ]; then read -r one five fifteen rest < /proc/loadavg; echo "load=$one $five $fifteen"
else echo "load=$(uptime)"
fi
`,
  parse(text) {
    const pairs = parsePairs(text)
    const cores = parseCount(pairs.get('cores'))
    // Some locales of uptime write a comma for the point; the three numbers are the last ones.
    const numbers = pairs
      .get('load')
      ?.replace(/(\d),(\d)/g, '$1.$2')
      .match(/\d+\.\d+/g)
      ?.slice(-3)
      .map(Number)
    const [one, five, fifteen] = numbers ?? []
    const hasLoad = one !== undefined && five !== undefined && fifteen !== undefined
    if (!hasLoad && !cores) return undefined
    return { ...(cores ? { cores } : {}), ...(hasLoad ? { one, five, fifteen } : {}) }
  },
}

/** Bytes. proc_meminfo(5); kernels before 3.14 give no estimate of available memory, so free + buffers + cache is used. */
export type Memory = {
  readonly totalBytes: number
  readonly availableBytes?: number
  readonly swapTotalBytes?: number
  readonly swapFreeBytes?: number
}

export const memoryFact: Fact<Memory> = {
  script: `
if [ -r /proc/meminfo ]; then grep -E '^(MemTotal|MemFree|MemAvailable|Buffers|Cached|SwapTotal|SwapFree):' /proc/meminfo
else echo "bytes=$(sysctl -n hw.memsize || sysctl -n hw.physmem)"
fi
`,
  parse(text) {
    const bytes = new Map<string, number>()
    for (const match of text.matchAll(/^(\w+): +(\d+) kB$/gm)) bytes.set(match[1] ?? '', Number(match[2]) * 1024)
    const total = bytes.get('MemTotal') ?? parseCount(/^bytes=(\d+)$/m.exec(text)?.[1])
    if (!total) return undefined
    const parts = ['MemFree', 'Buffers', 'Cached'].map((key) => bytes.get(key))
    const estimate = parts.every((part) => part !== undefined) ? parts.reduce((sum, part) => sum + part, 0) : undefined
    const available = bytes.get('MemAvailable') ?? estimate
    const swapTotal = bytes.get('SwapTotal')
    const swapFree = bytes.get('SwapFree')
    const hasSwap = swapTotal !== undefined && swapFree !== undefined
    const swap = hasSwap ? { swapTotalBytes: swapTotal, swapFreeBytes: swapFree } : {}
    return { totalBytes: total, ...defined({ availableBytes: available }), ...swap }
  },
}

export type Limit = number | 'unlimited'
/** RLIMIT_NOFILE of a command's process. */
export type OpenFilesLimit = { readonly soft: Limit; readonly hard: Limit }

export const openFilesFact: Fact<OpenFilesLimit> = {
  script: `
echo "soft=$(ulimit -S -n)"
echo "hard=$(ulimit -H -n)"
`,
  parse(text) {
    const pairs = parsePairs(text)
    const limit = (word: string | undefined): Limit | undefined => (word === 'unlimited' ? word : parseCount(word))
    const soft = limit(pairs.get('soft'))
    const hard = limit(pairs.get('hard'))
    return soft === undefined || hard === undefined ? undefined : { soft, hard }
  },
}

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
  parse: (text) => (['root', 'passwordless', 'password', 'missing'] as const).find((word) => word === text.trim()),
}

/** sshd_config(5): sessions on one connection, and connections that have not logged in yet (start dropping at, all of them at). */
export type SshdLimits = {
  readonly maxSessions?: number
  readonly maxStartups?: { readonly start: number; readonly full: number }
}

/**
 * Any user can read the configuration file and MaxStartups from the listener's process title; `sshd -T` prints the whole
 * configuration, but only for root. The titles of other users' processes say nothing. The bracket in the pattern keeps this script from finding itself.
 */
export const sshdFact: Fact<SshdLimits> = {
  script: `
title=$(for f in $(grep -als '[[]listener] [0-9]' /proc/[0-9]*/cmdline); do
  case $(stat -c %u "\${f%/*}") in 0 | "$(id -u)") cat "$f"; echo;; esac
done 2> /dev/null | tr '\\000' ' ')
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
    const maxStartups = start === undefined ? undefined : { start, full: parseCount(full?.[2]) ?? start }
    return defined({ maxSessions: sessions, maxStartups })
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
    return device === undefined ? undefined : { device, ...defined({ mtuBytes: parseCount(pairs.get('mtu')) }) }
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
  parse: (text) =>
    (['chrony', 'timedatectl', 'ntpd'] as const).find((word) => word === text.trim().replace(/^chronyc$/, 'chrony')),
}
