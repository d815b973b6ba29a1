/** File systems under the directories that everything needs: space, inodes (df -P), and how they are mounted. */
import { STALE_PARTIALS } from '../../../base/stale-partials.ts'
import type { Fact } from '../../kernel/fact.ts'
import { parseCount } from './machine.ts'

export type Disk = {
  /** The directory that was asked about. */
  readonly path: string
  readonly isThere: boolean
  readonly device?: string
  readonly mountPoint?: string
  readonly totalBytes?: number
  /** For users who are not root. */
  readonly availableBytes?: number
  /** 0 in all: the file system does not count them. */
  readonly inodes?: number
  readonly freeInodes?: number
}

/** The name that a finding uses, and the shell word for the directory. */
const DIRECTORIES = { root: '/', tmp: '/tmp', home: '"$HOME"', var: '/var', shm: '/dev/shm' } as const

/** One fact for each directory, by name: a file server that is gone then hides only what lies on it. */
export const diskFacts: readonly (readonly [string, Fact<Disk>])[] = Object.entries(DIRECTORIES).map(
  ([name, directory]) => [
    `disk-${name}`,
    {
      script: `
echo ${directory}
limited df -Pk ${directory} && limited df -Pi ${directory} && return 0
status=$?
overdue $status && return $status
[ -d ${directory} ] && return 1
echo absent
`,
      parse: parseDisk,
    },
  ],
)

/** The output of df is two tables of one row each. */
const MAX_CHARACTERS = 4_096

/** Columns are found by name, because macOS and busybox print different ones. */
export function parseDisk(text: string): Disk | undefined {
  const [path = '', ...lines] = text.slice(0, MAX_CHARACTERS).split('\n')
  if (!path.startsWith('/')) return undefined
  if (lines[0] === 'absent') return { path, isThere: false }
  const headers = lines.flatMap((line, index) => (line.startsWith('Filesystem') ? [index] : []))
  const [space, inodes] = headers.map((index) => readRow(lines[index] ?? '', lines.slice(index + 1)))
  if (space === undefined) return undefined
  const { device, mountPoint } = space
  const totalKiB = space.numbers.get('1024-blocks') ?? space.numbers.get('1K-blocks')
  const availableKiB = space.numbers.get('Available')
  const hasSpace = totalKiB !== undefined && availableKiB !== undefined
  const [used, unused] = [inodes?.numbers.get('iused'), inodes?.numbers.get('ifree')]
  const both = used === undefined || unused === undefined ? undefined : used + unused
  const counted = inodes?.numbers.get('Inodes') ?? both
  // busybox uses the same headings for both tables, except for the first number.
  const busyboxFree = inodes?.numbers.has('Inodes') ? inodes.numbers.get('Available') : undefined
  const free = inodes?.numbers.get('IFree') ?? unused ?? busyboxFree
  return {
    path,
    isThere: true,
    device,
    mountPoint,
    ...(hasSpace ? { totalBytes: totalKiB * 1024, availableBytes: availableKiB * 1024 } : {}),
    ...(counted === undefined || free === undefined ? {} : { inodes: counted, freeInodes: free }),
  }
}

/** Numbers are found from the right, because a device name may contain spaces; a mount point begins with a slash. */
function readRow(header: string, lines: readonly string[]) {
  const columns = header.replace('Mounted on', 'Mounted').trim().split(/\s+/)
  const numeric = columns.slice(1, -1)
  // Some versions of df print a long device name on a line of its own.
  const text = lines.join(' ').split(' Filesystem ')[0] ?? ''
  const pattern = new RegExp(`^(.*?)\\s+((?:(?:-?\\d+%?|-)\\s+){${numeric.length}})(/.*?)\\s*$`)
  const match = pattern.exec(text)
  if (match === null) return undefined
  const values = (match[2] ?? '').trim().split(/\s+/)
  const numbers = new Map(
    numeric.flatMap((name, index): [string, number][] => {
      const word = values[index] ?? ''
      // A dash means that there is none; a negative number, that more is used than exists.
      const value = /^-\d*$/.test(word) ? 0 : parseCount(word)
      return value === undefined ? [] : [[name, value]]
    }),
  )
  return { device: (match[1] ?? '').trim(), mountPoint: match[3] ?? '', numbers }
}

/** The file systems that hold these directories, and their mount options (proc_pid_mounts(5)). */
export type MountedDisk = { readonly mountPoint: string; readonly type: string; readonly options: readonly string[] }

export const mountsFact: Fact<readonly MountedDisk[]> = {
  script: `
[ -r /proc/mounts ] || return 1
while read -r device point type options rest; do
  for directory in ${Object.values(DIRECTORIES).join(' ')}; do
    case \${directory%/}/ in "\${point%/}/"*) echo "$type $options $point"; break;; esac
  done
done < /proc/mounts
`,
  parse(text) {
    const mounts = new Map<string, MountedDisk>()
    for (const line of text.split('\n')) {
      const match = /^(\S+) (\S+) (\/.*)$/.exec(line)
      if (match === null) continue
      // The kernel writes spaces and backslashes as octal; a later mount covers an earlier one.
      const mountPoint = (match[3] ?? '').replace(/\\([0-7]{3})/g, (_, digits: string) =>
        String.fromCharCode(Number.parseInt(digits, 8)),
      )
      mounts.set(mountPoint, { mountPoint, type: match[1] ?? '', options: (match[2] ?? '').split(',') })
    }
    return mounts.size === 0 ? undefined : [...mounts.values()]
  },
}

/** Partial files that are older than a week, in the directories that `muster left` searches; as many as were found in time. */
export type Partials = { readonly count: number; readonly bytes: number; readonly example: string }

const MAX_PARTIALS = 1000

export const partialsFact: Fact<Partials> = {
  script: `
ME=$(id -u)
limited find "$HOME" /tmp /var/tmp -xdev -maxdepth 7 ${STALE_PARTIALS} -exec du -k {} + | head -n ${MAX_PARTIALS}
`,
  parse(text) {
    const found = new Map<string, number>()
    for (const line of text.split('\n')) {
      const [, kilobytes, path] = /^(\d{1,15})\t(\/.{1,4096})$/.exec(line) ?? []
      if (path !== undefined && found.size < MAX_PARTIALS) found.set(path, Number(kilobytes) * 1024)
    }
    const [example] = found.keys()
    if (example === undefined) return undefined
    return { count: found.size, bytes: [...found.values()].reduce((sum, bytes) => sum + bytes), example }
  },
}
