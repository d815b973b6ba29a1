/**
 * All facts of a host in one command: a POSIX script for `sh -s`, and the parser of its answer. Each fact is read by its own
 * background process, so that one that hangs does not delay the others; without an answer it is unknown, never zero. The script
 * writes no file, and when its stdin is closed it stops whatever hangs.
 */

import { endMark, type Fact, FLATTEN, limitedFunctions, STATUSES_OF_LIMIT, sectionsOf } from '../kernel/fact.ts'
import { type Disk, diskFacts, mountsFact, partialsFact } from './facts/disk.ts'
import { gpusFact } from './facts/gpus.ts'
import {
  distributionFact,
  loadFact,
  memoryFact,
  openFilesFact,
  pythonFact,
  routeFact,
  sshdFact,
  sudoFact,
  systemFact,
  timeServiceFact,
} from './facts/machine.ts'

const FACTS = {
  system: systemFact,
  distribution: distributionFact,
  python: pythonFact,
  load: loadFact,
  memory: memoryFact,
  gpus: gpusFact,
  openFiles: openFilesFact,
  mounts: mountsFact,
  sudo: sudoFact,
  sshd: sshdFact,
  route: routeFact,
  timeService: timeServiceFact,
  partials: partialsFact,
}

/** By the names that the script and findings use: `openFiles` is `open-files` there. */
const FACTS_BY_NAME: ReadonlyMap<string, Fact<unknown>> = new Map([
  ...Object.entries<Fact<unknown>>(FACTS).map(([key, fact]) => [nameOf(key), fact] as const),
  ...diskFacts,
])

function nameOf(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** Undefined: the host did not answer, or not in a form that can be parsed. */
export type MachineFacts = {
  readonly [K in keyof typeof FACTS]: ReturnType<(typeof FACTS)[K]['parse']>
} & {
  /** Those that answered. */
  readonly disks: readonly Disk[]
  /** Names of the facts that were not read within their time limit. */
  readonly hanging: readonly string[]
}

/**
 * The script. `mark` (letters and digits) distinguishes its lines from any other output. It is one compound command, so that the
 * shell has read all of it before the end of stdin stops it.
 */
export function factScript(mark: string, limitFactor = 1): string {
  const functionOf = (name: string) => `read_${name.replaceAll('-', '_')}`
  const functions = [...FACTS_BY_NAME].map(([name, { script }]) => `${functionOf(name)}() {${script}}`)
  const starts = [...FACTS_BY_NAME.keys()].map((name) => `probe ${name} ${functionOf(name)}`)
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

/** Reads the answer, whole or cut off: a fact that is missing in it hangs. */
export function parseFacts(answer: string, mark: string): MachineFacts {
  const sections = sectionsOf(answer, mark)
  const read = <T>(name: string, { parse }: Fact<T>): T | undefined => {
    const text = sections.get(name)?.text.trimEnd()
    return text === undefined ? undefined : parse(text, Buffer.from(text))
  }
  const facts = Object.fromEntries(
    Object.entries<Fact<unknown>>(FACTS).map(([key, fact]) => [key, read(nameOf(key), fact)]),
  ) as Omit<MachineFacts, 'disks' | 'hanging'>
  return {
    ...facts,
    disks: diskFacts.flatMap(([name, fact]) => read(name, fact) ?? []),
    hanging: [...FACTS_BY_NAME.keys()].filter((name) => {
      const section = sections.get(name)
      // A long search for partial files only means a large home directory.
      return name !== 'partials' && (section === undefined || STATUSES_OF_LIMIT.includes(section.status))
    }),
  }
}
