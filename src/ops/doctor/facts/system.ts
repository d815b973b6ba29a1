/** What the machine is: kernel, distribution, its own name, locale, time zone. */
import { type Probe, parsePairs } from './probe.ts'

export type SystemInfo = {
  readonly kernelName?: string
  readonly kernelRelease?: string
  readonly architecture?: string
  /** What the machine calls itself, as uname -n tells it. */
  readonly hostName?: string
  readonly user?: string
  readonly isRoot?: boolean
  readonly home?: string
  readonly loginShell?: string
  /** The character map of the user's locale, as `locale charmap` tells it: `UTF-8`, `ANSI_X3.4-1968`. */
  readonly charmap?: string
  /** LC_ALL, else LC_CTYPE, else LANG. */
  readonly locale?: string
  /** `Europe/Berlin` where /etc/localtime tells it, else what date calls it. */
  readonly timeZone?: string
  /** Offset to UTC as date prints it: `+0100`. */
  readonly utcOffset?: string
}

export const systemProbe: Probe<SystemInfo> = {
  name: 'system',
  shell: `
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
    const facts = {
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
    }
    return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as SystemInfo
  },
}

/** os-release(5). */
export type Distribution = { readonly id: string; readonly version?: string; readonly name: string }

export const distributionProbe: Probe<Distribution> = {
  name: 'distribution',
  shell: `
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
    return { id, name, ...(version === undefined ? {} : { version }) }
  },
}

export type Python = { readonly path: string; readonly version: string } | 'missing'

export const pythonProbe: Probe<Python> = {
  name: 'python',
  shell: `
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
