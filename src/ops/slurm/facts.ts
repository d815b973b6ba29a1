/** What the area asks its hosts. Everything is read as the login; what only root sees is in the record that Muster keeps. */
import { clockFact } from '../kernel/clock.ts'
import type { Fact, FactSet, HostFacts, KnownFacts } from '../kernel/fact.ts'
import { type FileState, fileFact } from '../kernel/files.ts'
import { type PackageNames, type Packages, packagesFact } from '../kernel/packages.ts'
import { clusterFact, type SlurmView } from './cluster-fact.ts'
import { DAEMON_LIST, DAEMONS, type Daemon, HAS_SYSTEMD, KEY_FILE, RECORD } from './daemons.ts'
import { FILES, hostOf, PLACE, type SlurmHost, type SlurmWanted, STARTED } from './wanted.ts'

export const AREA = 'slurm'

export type Programs = {
  /** Of those that are needed. */
  readonly missing: readonly string[]
  /** `22.05.8` */
  readonly version?: string
}

export type MungeKey =
  /** The login may not see it. */
  | { readonly kind: 'hidden' | 'absent' }
  /** `isText`: in the form in which Muster makes keys. */
  | { readonly kind: 'file'; readonly sum: string; readonly isText: boolean }

/** A process, and when it started: seconds since the epoch. */
export type Process = { readonly daemon: Daemon | 'slurmstepd'; readonly pid: number; readonly startS: number }

export type Daemons = {
  readonly hasSystemd: boolean
  /** Those that systemd starts with the machine. */
  readonly enabled: readonly Daemon[]
  readonly processes: readonly Process[]
  /** When files last changed, by path: seconds since the epoch. */
  readonly changedS: ReadonlyMap<string, number>
}

export type Machine = {
  /** Up to the first dot. */
  readonly hostName: string
  readonly cores: number
  readonly memoryMib: number
  /** Of the device files /dev/nvidiaN: N. */
  readonly gpus: readonly number[]
  /** Of /sys/fs/cgroup, as stat(1) names it. */
  readonly cgroup: string
  /** The directory of the cluster is there. */
  readonly hasPlace: boolean
}

export type SlurmFacts = {
  readonly packages: Packages
  readonly programs: Programs
  readonly slurm: FileState
  readonly gres: FileState
  readonly cgroup: FileState
  readonly record: FileState
  readonly key: MungeKey
  readonly daemons: Daemons
  readonly machine: Machine
  readonly clock: number
  readonly started: FileState
  /**
   * Of the controller, or of the login host of a cluster that is somebody else's; of another host only if its slurm.conf names
   * another controller.
   */
  readonly cluster: SlurmView
}

/** What `down` needs. */
export type RemovalFacts = Pick<SlurmFacts, 'packages' | 'slurm' | 'gres' | 'cgroup' | 'record' | 'daemons' | 'machine'>

export type FactsOfSlurmHost = KnownFacts<SlurmFacts>
export type FactsOfSlurmHosts = ReadonlyMap<string, HostFacts<SlurmFacts>>

const PROGRAMS = { slurmctld: 'slurmctld', slurmd: 'slurmd' } as const

export function packageNames({ isController, isNode }: Pick<SlurmHost, 'isController' | 'isNode'>): PackageNames {
  const apt = ['munge', 'slurm-client', ...(isController ? ['slurmctld'] : []), ...(isNode ? ['slurmd'] : [])]
  return { apt, dnf: [], zypper: [], pacman: [], apk: [] }
}

function programsFact({ isController, isNode }: SlurmHost, path: string): Fact<Programs> {
  const needed = ['munged', 'srun', ...(isController ? [PROGRAMS.slurmctld] : []), ...(isNode ? [PROGRAMS.slurmd] : [])]
  return {
    script: `${path}for program in ${needed.join(' ')}; do command -v $program > /dev/null || echo "missing $program"; done
# Clients know it only where there is a slurm.conf.
for program in slurmd slurmctld sinfo; do said=$(limited $program -V) && break; done
echo "version $said"`,
    parse(text) {
      const lines = text.split('\n')
      const version = /^version \S+ (\d{2}\.\d{2}(?:\.\w{1,20})?)/.exec(lines.at(-1) ?? '')?.[1]
      if (!lines.at(-1)?.startsWith('version')) return undefined
      const missing = needed.filter((program) => lines.includes(`missing ${program}`))
      return version === undefined ? { missing } : { missing, version }
    },
  }
}

const keyFact: Fact<MungeKey> = {
  script: `k=${KEY_FILE}
if [ ! -e "$k" ]; then if [ -e "\${k%/*}" ] && [ ! -x "\${k%/*}" ]; then echo hidden; else echo absent; fi; return; fi
if [ ! -r "$k" ]; then echo hidden; return; fi
sum=$(sha256sum < "$k")
if [ "$(wc -c < "$k")" = 128 ] && ! LC_ALL=C grep -q '[^0-9a-f]' "$k"; then echo "file \${sum%% *} text"; else echo "file \${sum%% *} other"; fi`,
  parse(text) {
    if (text === 'hidden' || text === 'absent') return { kind: text }
    const [, sum, form] = /^file ([0-9a-f]{64}) (text|other)$/.exec(text) ?? []
    return sum === undefined ? undefined : { kind: 'file', sum, isText: form === 'text' }
  },
}

const MOST_PROCESSES = 4000
const isDaemon = (word: string): word is Daemon => Object.hasOwn(DAEMONS, word)

const daemonsFact: Fact<Daemons> = {
  script: `${HAS_SYSTEMD}${DAEMON_LIST}
if has_systemd; then
  echo systemd
  for each in ${Object.entries(DAEMONS)
    .map(([name, { unit }]) => `${name}:${unit}`)
    .join(' ')}; do
    if [ -L "/etc/systemd/system/multi-user.target.wants/\${each#*:}" ] || limited systemctl is-enabled --quiet "\${each#*:}"; then
      echo "enabled \${each%:*}"
    fi
  done
fi
boot=$(sed -n 's/^btime //p' /proc/stat)
echo "boot $boot $(getconf CLK_TCK || echo 100)"
daemon_list | sed 's/^/process /' | head -n ${MOST_PROCESSES}
stat -L -c 'changed %Y %n' ${Object.values(FILES).join(' ')} ${KEY_FILE}
echo end`,
  parse(text) {
    const lines = text.split('\n')
    if (lines.at(-1) !== 'end') return undefined
    const [, boot, ticks = ''] = /^boot (\d{1,12}) (\d{1,6})$/m.exec(text) ?? []
    if (boot === undefined) return undefined
    const words = lines.map((line) => line.split(' '))
    return {
      hasSystemd: lines.includes('systemd'),
      enabled: words.flatMap(([key, name = '']) => (key === 'enabled' && isDaemon(name) ? [name] : [])),
      processes: lines.flatMap((line) => {
        const [, daemon = '', pid, start] = /^process (\w{1,20}) (\d{1,10}) (\d{1,18})$/.exec(line) ?? []
        if (!isDaemon(daemon) && daemon !== 'slurmstepd') return []
        return [{ daemon, pid: Number(pid), startS: Number(boot) + Number(start) / Number(ticks) }]
      }),
      changedS: new Map(
        words.flatMap(([key, at = '', path = '']) =>
          key === 'changed' && /^\d{1,12}$/.test(at) ? [[path, Number(at)] as const] : [],
        ),
      ),
    }
  },
}

const machineFact: Fact<Machine> = {
  script: `n=$(hostname)
echo "machine \${n%%.*} $(getconf _NPROCESSORS_ONLN || echo 0) $(awk '/^MemTotal:/ { print $2 }' /proc/meminfo) $(stat -f -c %T /sys/fs/cgroup)"
for each in /dev/nvidia[0-9]*; do [ ! -c "$each" ] || echo "gpu \${each#/dev/nvidia}"; done
[ ! -d ${PLACE} ] || echo place
echo end`,
  parse(text) {
    const [, hostName, cores, memory, cgroup = ''] =
      /^machine (\S{1,255}) (\d{1,6}) (\d{1,15}) (\S{0,40})$/m.exec(text) ?? []
    if (hostName === undefined || !text.endsWith('end')) return undefined
    return {
      hostName,
      cores: Number(cores),
      memoryMib: Math.floor(Number(memory) / 1024),
      gpus: [...text.matchAll(/^gpu (\d{1,4})$/gm)].map(([, index]) => Number(index)),
      cgroup,
      hasPlace: /^place$/m.test(text),
    }
  },
}

/** Puts the directory of Slurm's programs into the PATH. */
export const pathOf = ({ spec: { bin } }: SlurmWanted): string =>
  bin === undefined ? '' : `PATH=${bin}:${bin.replace(/\/bin$/, '/sbin')}:$PATH; export PATH\n`

export function slurmFacts(wanted: SlurmWanted, host: string): FactSet<SlurmFacts> {
  const own = hostOf(wanted, host) ?? { host, isController: false, isNode: false, gpus: 0 }
  const path = pathOf(wanted)
  const isForeign = wanted.spec.cluster === undefined
  const cluster = clusterFact(path, wanted.spec.cluster?.controller, own.isController)
  // Of a cluster of somebody else nothing else is asked.
  if (isForeign) return { cluster } as FactSet<SlurmFacts>
  return {
    ...removalFacts(own),
    programs: programsFact(own, path),
    key: keyFact,
    clock: clockFact,
    started: fileFact(STARTED),
    cluster,
  }
}

export function removalFacts(own: Pick<SlurmHost, 'isController' | 'isNode'>): FactSet<RemovalFacts> {
  return {
    packages: packagesFact(packageNames(own), AREA),
    slurm: fileFact(FILES.slurm),
    gres: fileFact(FILES.gres),
    cgroup: fileFact(FILES.cgroup),
    record: fileFact(RECORD),
    daemons: daemonsFact,
    machine: machineFact,
  }
}
