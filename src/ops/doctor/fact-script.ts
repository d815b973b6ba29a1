/**
 * All facts of a host in one command: a POSIX script for `sh -s`, and the parser of its answer. Every probe runs by itself
 * in the background, so one that hangs costs the others nothing; what has not answered is unknown, never zero. It writes
 * no file, and ends what hangs when its stdin is closed.
 */

import { endMark, FLATTEN, limitedFunctions, STATUSES_OF_LIMIT, sectionsOf } from '../kernel/probe-script.ts'
import {
  type Route,
  routeProbe,
  type SshdLimits,
  type Sudo,
  sshdProbe,
  sudoProbe,
  type TimeService,
  timeServiceProbe,
} from './facts/access.ts'
import { type Disk, diskProbes, type MountedDisk, mountsProbe, type Partials, partialsProbe } from './facts/disk.ts'
import type { Probe } from './facts/probe.ts'
import {
  type Load,
  loadProbe,
  type Memory,
  memoryProbe,
  type OpenFilesLimit,
  openFilesProbe,
} from './facts/resources.ts'
import {
  type Distribution,
  distributionProbe,
  type Python,
  pythonProbe,
  type SystemInfo,
  systemProbe,
} from './facts/system.ts'

export type MachineFacts = {
  readonly system: SystemInfo | undefined
  readonly distribution: Distribution | undefined
  readonly python: Python | undefined
  readonly load: Load | undefined
  readonly memory: Memory | undefined
  readonly openFiles: OpenFilesLimit | undefined
  /** Those that answered. */
  readonly disks: readonly Disk[]
  readonly mounts: readonly MountedDisk[] | undefined
  readonly partials: Partials | undefined
  readonly sudo: Sudo | undefined
  readonly sshd: SshdLimits | undefined
  readonly route: Route | undefined
  readonly timeService: TimeService | undefined
  /** Names of the probes that hang: they gave no answer within their limit. */
  readonly hanging: readonly string[]
}

const PROBES: readonly Probe<unknown>[] = [
  systemProbe,
  distributionProbe,
  pythonProbe,
  loadProbe,
  memoryProbe,
  openFilesProbe,
  ...diskProbes,
  mountsProbe,
  sudoProbe,
  sshdProbe,
  routeProbe,
  timeServiceProbe,
  partialsProbe,
]

/**
 * The script. `mark`, letters and digits, sets its lines apart from whatever else is printed.
 * The whole is one compound command, so the shell has read all of it before stdin serves as the signal to leave.
 */
export function factScript(mark: string, limitFactor = 1): string {
  const functions = PROBES.map(({ name, shell }) => `${functionOf(name)}() {${shell}}`)
  const starts = PROBES.map(({ name }) => `probe ${name} ${functionOf(name)}`)
  return `{
exec 3<&0 < /dev/null 2> /dev/null
said_locale=\${LC_ALL:-\${LC_CTYPE:-$LANG}}
said_charmap=$(locale charmap)
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
${limitedFunctions(limitFactor)}
${FLATTEN}
probe() {
  ( said=$("$2"); status=$?; name=$1; flatten; printf '\\n%s\\n' "${mark} $name $status$us$said" ) 3<&- &
  probes="$probes $!"
}
${functions.join('\n')}
probes=
${starts.join('\n')}
( read -r nothing <&3; kill -9 $probes $$ ) &
watcher=$!
wait $probes
kill $watcher
printf '${endMark(mark).replaceAll('\n', '\\n')}'
exit 0
}
`
}

function functionOf(name: string): string {
  return `read_${name.replaceAll('-', '_')}`
}

/** Reads the answer, whole or cut off: a probe that is missing in it hangs. */
export function parseFacts(answer: string, mark: string): MachineFacts {
  const sections = sectionsOf(answer, mark)
  const read = <T>({ name, parse }: Probe<T>): T | undefined => {
    const section = sections.get(name)
    return section === undefined ? undefined : parse(section.text.trimEnd())
  }
  const isHanging = ({ name }: Probe<unknown>): boolean => {
    const section = sections.get(name)
    return section === undefined || STATUSES_OF_LIMIT.includes(section.status)
  }
  return {
    system: read(systemProbe),
    distribution: read(distributionProbe),
    python: read(pythonProbe),
    load: read(loadProbe),
    memory: read(memoryProbe),
    openFiles: read(openFilesProbe),
    disks: diskProbes.flatMap((probe) => read(probe) ?? []),
    mounts: read(mountsProbe),
    partials: read(partialsProbe),
    sudo: read(sudoProbe),
    sshd: read(sshdProbe),
    route: read(routeProbe),
    timeService: read(timeServiceProbe),
    // A search that takes long shows nothing but a large home directory.
    hanging: PROBES.filter((probe) => probe !== partialsProbe && isHanging(probe)).map(({ name }) => name),
  }
}
