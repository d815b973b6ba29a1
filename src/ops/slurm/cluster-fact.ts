/** What Slurm says about its nodes, partitions and jobs. */
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from '../kernel/fact.ts'
import { NodeNames } from './node-names.ts'
import { columnFormat, countOfGres, decoded, type Gres, squeueRows, troubleWords } from './queue.ts'
import { CONTROLLER_OF, FILES, UNSET_VARIABLES } from './wanted.ts'

export type NodeState = {
  readonly name: string
  /** `idle`, `drained`, `down` … */
  readonly state: string
  /** The controller gets no answer from it. */
  readonly isSilent: boolean
  readonly reason: string
  readonly cpus: number
  readonly gpus: number
  readonly shards: number
}

/** A job that has not ended. */
export type LiveJob = {
  readonly id: string
  readonly isWaiting: boolean
  readonly user: string
  /** One of them, as long as it waits. */
  readonly partitions: readonly string[]
  /** Where it runs; as long as it waits, the nodes that it asks for or excludes. */
  readonly nodes: readonly string[]
  /** What it asks for. */
  readonly gres: readonly Gres[]
  readonly name: string
}

export type SlurmView =
  | {
      readonly kind: 'answers'
      readonly nodes: readonly NodeState[]
      readonly hasDefaultMemory: boolean
      /** By name: `up`, `down`, `drain` or `inact`. */
      readonly partitions: ReadonlyMap<string, string>
      /** Undefined: squeue does not say. */
      readonly jobs?: readonly LiveJob[]
      /** Programs that Muster's jobs need. */
      readonly missing: readonly string[]
    }
  | { readonly kind: 'silent'; readonly because: string }
  | { readonly kind: 'unasked' }

/** Widths of columns; what is longer is cut. */
const WIDTHS = { NodeHost: 64, StateLong: 24, CPUs: 10, Gres: 100, Reason: 200 } as const
const MOST_NODES = 5000
const MOST_PARTITIONS = 500
const NEEDED_PROGRAMS = ['sbatch', 'squeue', 'scancel', 'flock']
const GRES = ['gpu', 'shard'] as const
const GRES_COLUMNS = ['tres-per-node', 'tres-per-job', 'tres-per-socket', 'tres-per-task']
const JOB_COLUMNS = {
  ...{ JobID: 20, State: 24, UserName: 32, Partition: 200, NodeList: 1024, reqnodes: 1024 },
  ...{ ...Object.fromEntries(GRES_COLUMNS.map((name) => [name, 100])), Name: 80 },
}
const MOST_JOB_BYTES = 200_000
const MOST_EXCLUDING = 200
const LIVE = ['PENDING', 'RUNNING', 'SUSPENDED', 'CONFIGURING', 'RESIZING', 'STOPPED', 'SIGNALING', 'STAGE_OUT']

/** Of a cluster of somebody else (`controller` undefined) jobs are not asked for. */
export function clusterFact(path: string, controller: string | undefined, isController: boolean): Fact<SlurmView> {
  const guard = `c=$(${CONTROLLER_OF} ${FILES.slurm})
case $c in '' | ${shellQuote(controller ?? '')}) echo unasked; return;; esac
`
  const jobs = `  ${squeueRows(JOB_COLUMNS, 'limited ')} | LC_ALL=C awk -F '\\t' '
    $0 == "? whole" { whole = 1 }
    $1 != "job" || (sum += length($0)) > ${MOST_JOB_BYTES} { next }
    $3 == "PENDING" { waiting[++count] = $0; next }
    { print }
    END { for (i = 1; i <= count; i++) print waiting[i]; if (whole) print "jobs" }'
  limited squeue -h -a -t PD -o 'excludes %A %x' | grep -v ' $' | head -n ${MOST_EXCLUDING} | cut -c 1-1000
`
  return {
    script: `${isController || controller === undefined ? '' : guard}${path}${UNSET_VARIABLES}
said=$(limited sinfo -h -N -a -O '${columnFormat(WIDTHS)}' 2>&1); status=$?
echo "sinfo $status"
printf '%s\\n' "$said" | head -n ${MOST_NODES} | sed 's/ *$//' | cut -c 1-400
[ $status -ne 0 ] || {
  limited scontrol show config | sed -n 's/^DefMemPer\\(CPU\\|Node\\) *= /memory /p'
  limited sinfo -h -a -o 'partition %R %a' | head -n ${MOST_PARTITIONS} | cut -c 1-400
${controller === undefined ? '' : jobs}  for program in ${NEEDED_PROGRAMS.join(' ')}; do command -v $program > /dev/null || echo "missing $program"; done
}
echo end`,
    parse(_, bytes) {
      // A character is a byte, as widths are.
      const text = bytes.toString('latin1').trimEnd()
      if (text === 'unasked') return { kind: 'unasked' }
      const [first = '', ...all] = text.split('\n')
      const status = /^sinfo (\d{1,3})$/.exec(first)?.[1]
      if (status === undefined || all.pop() !== 'end') return undefined
      if (status !== '0') {
        const said = all.join(' ')
        return { kind: 'silent', because: ['124', '137'].includes(status) ? 'no answer in time' : troubleWords(said) }
      }
      const isJob = (line: string) => line.startsWith('job\t')
      const lines = all.filter((line) => !isJob(line))
      const nodes = nodesOf(lines)
      return {
        kind: 'answers',
        nodes,
        hasDefaultMemory: lines.some((line) => /^memory [1-9]/.test(line)),
        partitions: new Map(
          lines.flatMap((line) => {
            const [, name = '', state = ''] = /^partition ([\w.,:@+-]{1,100}) ([a-z]{1,20})$/.exec(line) ?? []
            return name === '' ? [] : [[name, state] as const]
          }),
        ),
        missing: NEEDED_PROGRAMS.filter((program) => lines.includes(`missing ${program}`)),
        ...(lines.includes('jobs') ? { jobs: jobsOf(all.filter(isJob), nodes, excludedIn(lines)) } : {}),
      }
    },
  }
}

/** Of several lines of a node, one for each partition, the first counts. */
function nodesOf(lines: readonly string[]): readonly NodeState[] {
  const found = new Map<string, NodeState>()
  for (const line of lines) {
    const [name = '', words = '', cpus = '', gres = '', reason = ''] = cellsOf(line)
    const [, state, flag] = /^([a-z_]{2,20})([*~#!%$@^+-]?)$/.exec(words) ?? []
    if (state === undefined || !/^[\w.-]{1,64}$/.test(name) || found.has(name)) continue
    const why = decoded(reason)
    found.set(name, {
      ...{ name, state, isSilent: flag === '*', reason: why === 'none' ? '' : why },
      ...{
        cpus: /^\d{1,6}$/.test(cpus) ? Number(cpus) : 0,
        gpus: countOfGres(gres, 'gpu'),
        shards: countOfGres(gres, 'shard'),
      },
    })
  }
  return [...found.values()]
}

function cellsOf(line: string): readonly string[] {
  let from = 0
  return Object.values(WIDTHS).map((width) => {
    from += width
    return line.slice(from - width, from).trim()
  })
}

/** Lists of nodes, by job. */
const excludedIn = (lines: readonly string[]): ReadonlyMap<string, string> =>
  new Map(
    lines.flatMap((line) => {
      const [, id = '', list = ''] = /^excludes (\d{1,12}) (\S+)$/.exec(line) ?? []
      return id === '' ? [] : [[id, list] as const]
    }),
  )

function jobsOf(
  lines: readonly string[],
  nodes: readonly NodeState[],
  excluded: ReadonlyMap<string, string>,
): readonly LiveJob[] {
  const names = new NodeNames(new Set(nodes.map(({ name }) => name)))
  return lines.flatMap((line): LiveJob[] => {
    const [, id = '', state = '', user = '', partitions = '', held = '', required = '', ...rest] = line.split('\t')
    const name = rest.at(-1) ?? ''
    // What ends holds nothing that could be lost.
    if (!/^\d{1,12}$/.test(id) || !LIVE.includes(state)) return []
    const isWaiting = state === 'PENDING'
    const lists = isWaiting ? [required, excluded.get(id) ?? ''] : [held]
    return [
      {
        ...{ id, isWaiting, user: decoded(user), name: decoded(name), partitions: partitions.split(',') },
        nodes: lists.flatMap((list) => (list === '' ? [] : names.of(list))),
        gres: GRES.filter((kind) => rest.slice(0, -1).some((words) => words.includes(kind))),
      },
    ]
  })
}
