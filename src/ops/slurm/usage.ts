/** What a Slurm cluster has and who holds it: jobs as squeue has them, with the devices of `scontrol -d`. */
import { getOrMake } from '../../base/collections.ts'
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { drawnNodes } from '../drawn-nodes.ts'
import { NodeNames } from './node-names.ts'
import { countOfGres, decoded, nowOf, reasonWords, SUSPENDED, squeueRows, startOf } from './queue.ts'

export type SlurmNode = {
  readonly name: string
  readonly cpuMilli: number
  readonly cpuUsedMilli: number
  readonly memoryBytes: number
  readonly memoryUsedBytes: number
  readonly gpus: number
  /** Those that the node itself says are held. */
  readonly heldDevices: readonly number[]
  /** Why it takes no jobs, or not all that would fit; empty: it does. */
  readonly trouble: string
}

export type SlurmPlacement = {
  /** Its number in Slurm. */
  readonly id: string
  /** Of an array: `8_3`, or `8_[4-9]` for those that wait together. */
  readonly label?: string
  readonly name: string
  readonly user: string
  /** Of the login of Muster, so its name may be a key of the queue. */
  readonly isOwn: boolean
  /** Undefined: it runs. */
  readonly waits?: string
  /** When it is expected to start, in seconds since the epoch. */
  readonly startS?: number
  readonly shares: readonly {
    readonly node: string
    readonly cpuMilli: number
    readonly memoryBytes: number
    readonly devices: readonly number[]
  }[]
}

export type SlurmUsage = {
  /** What is not in it, in a sentence. */
  readonly note?: string
  readonly nodes: readonly SlurmNode[]
  readonly jobs: readonly SlurmPlacement[]
}

const NODE_KEYS = 'NodeName|CPUAlloc|CPUTot|RealMemory|AllocMem|Gres|GresUsed|State'
/** The width of each column of squeue. */
const COLUMNS = {
  ...{ JobID: 20, State: 24, UserID: 12, UserName: 32, StartTime: 24, Reason: 120, NodeList: 1024, JobArrayID: 80 },
  Name: 80,
}
/** Below what is read of an answer; of a large queue the jobs at its end are left out. */
const MOST_JOB_BYTES = 400_000
const MOST_SHARE_BYTES = 300_000
/** Of one job. */
const MOST_LINE = 8_000

/**
 * Prints the user's number, for each node a line of `KEY=VALUE`, for each job the columns with tabs between them, for what jobs hold
 * `JobId=… Nodes=… CPU_IDs=…`, how many jobs were left out, and `end` when that is all. In lines of scontrol the text of other users
 * is between the fields, so that only squeue says whose a job is and where.
 */
export const USAGE_PROGRAM = `nodes=$(scontrol -d -o show node 2>&1) || trouble "$nodes"
queue=$( ${squeueRows(COLUMNS)})
[ "\${queue##*
}" = '? whole' ] || trouble "$(printf '%s\\n' "$queue" | sed -n 's/^? //p' | tail -n 3)"
queue=$(printf '%s\\n' "$queue" | LC_ALL=C awk -F '\\t' -v me="$(id -u)" '
  $1 != "job" { next }
  { rank = $4 == me ? 1 : $3 != "PENDING" ? 2 : 3; lines[rank, ++count[rank]] = $0 }
  END {
    for (rank = 1; rank <= 3; rank++)
      for (i = 1; i <= count[rank]; i++)
        if ((sum += length(lines[rank, i])) < ${MOST_JOB_BYTES}) print lines[rank, i]
        else more++
    print "more " more + 0
  }')
held=$( { printf '%s\\n' "$queue"; echo whole; scontrol -d -o show job 2>&1 && echo whole; } | LC_ALL=C awk '
  !begun { if ($0 == "whole") begun = 1; else if (split($0, cells, "\\t") > 2 && cells[3] != "PENDING") holds["JobId=" cells[2]]; next }
  { last = $0 }
  $1 in holds {
    line = $1; found = 0
    for (i = 2; i <= NF && length(line) < ${MOST_LINE}; i++) {
      if ($i ~ /^Nodes=/) found = 1
      if (found && $i ~ /^(Nodes|CPU_IDs|Mem|GRES)=/) line = line " " substr($i, 1, 1100)
    }
    if (found && (sum += length(line)) < ${MOST_SHARE_BYTES}) print line
  }
  END { print last }')
[ "\${held##*
}" = whole ] || trouble "\${held##*
}"
echo "me $(id -u)"
echo "now $(date +%s)"
printf '%s\\n' "$nodes" | awk -v keys='^(${NODE_KEYS})=' '{ line = ""; for (i = 1; i <= NF; i++) if ($i ~ keys) line = line " " substr($i, 1, 400); print substr(line, 2) }'
printf '%s\\n' "$queue" "$held"
echo end
`

const MIB = 2 ** 20
/** Of one node; no more are drawn. */
const MOST_GPUS = 128

/** Of text whose characters are bytes. Undefined: the answer is not whole. */
export function parseUsage(text: string): SlurmUsage | undefined {
  const lines = text.trimEnd().split('\n')
  if (lines.at(-1) !== 'end') return undefined
  const me = /^me (\d{1,10})$/m.exec(text)?.[1]
  const more = Number(/^more (\d{1,9})$/m.exec(text)?.[1] ?? 0)
  const all = lines.flatMap((line) => (line.startsWith('NodeName=') ? nodeOf(line) : []))
  const nodes = drawnNodes(all, ({ gpus }) => gpus)
  const names = new NodeNames(new Set(nodes.map(({ name }) => name)))
  const held = heldOf(lines, names)
  const nowS = nowOf(text)
  const jobs = lines.flatMap((line) => (line.startsWith('job\t') ? jobOf(line, me, names, held, nowS) : []))
  const notes = [
    ...(all.length > nodes.length
      ? [`${counted(all.length - nodes.length, 'more node is', 'more nodes are')} not shown`]
      : []),
    ...(more > 0 ? [`${counted(more, 'more job is', 'more jobs are')} not shown`] : []),
  ]
  return { nodes, jobs, ...(notes.length > 0 ? { note: notes.join('; ') } : {}) }
}

const wordsOf = (line: string): readonly (readonly [key: string, value: string])[] =>
  line.split(' ').map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)] as const)

/** Of several words with the same key the first one counts. */
const fieldsOf = (line: string) => new Map(wordsOf(line).toReversed())

const countOf = (text = ''): number => (/^\d{1,9}$/.test(text) ? Number(text) : 0)

function nodeOf(line: string): readonly SlurmNode[] {
  const fields = fieldsOf(line)
  const name = fields.get('NodeName') ?? ''
  if (!/^[\w.-]{1,64}$/.test(name)) return []
  const state = fields.get('State') ?? ''
  return [
    {
      name,
      cpuMilli: countOf(fields.get('CPUTot')) * 1000,
      cpuUsedMilli: countOf(fields.get('CPUAlloc')) * 1000,
      memoryBytes: countOf(fields.get('RealMemory')) * MIB,
      memoryUsedBytes: countOf(fields.get('AllocMem')) * MIB,
      gpus: Math.min(MOST_GPUS, countOfGres(fields.get('Gres') ?? '', 'gpu')),
      heldDevices: devicesOf(fields.get('GresUsed')),
      trouble: /^(IDLE|MIXED|ALLOCATED)(\+(PLANNED|CLOUD|COMPLETING))*$/.test(state)
        ? ''
        : printable(state.toLowerCase()),
    },
  ]
}

type Amounts = Omit<SlurmPlacement['shares'][number], 'node'>

const UNKNOWN: Amounts = { cpuMilli: 0, memoryBytes: 0, devices: [] }

/** By job and node. A name or a comment may look like fields of scontrol, so a node that is listed twice has unknown amounts. */
function heldOf(lines: readonly string[], names: NodeNames): ReadonlyMap<string, ReadonlyMap<string, Amounts>> {
  const held = new Map<string, Map<string, Amounts>>()
  for (const line of lines) {
    const id = /^JobId=(\d{1,12}) /.exec(line)?.[1]
    if (id === undefined) continue
    const groups: Map<string, string>[] = []
    for (const [key, value] of wordsOf(line))
      if (key === 'Nodes') groups.push(new Map([[key, value]]))
      // The first one: a comment comes after them.
      else if (!groups.at(-1)?.has(key)) groups.at(-1)?.set(key, value)
    const own = getOrMake(held, id, () => new Map())
    for (const group of groups) {
      const amounts = {
        cpuMilli: rangesOf(group.get('CPU_IDs')).reduce((sum, [from, to]) => sum + to - from + 1, 0) * 1000,
        memoryBytes: countOf(group.get('Mem')) * MIB,
        devices: devicesOf(group.get('GRES')),
      }
      for (const node of names.of(group.get('Nodes') ?? '')) own.set(node, own.has(node) ? UNKNOWN : amounts)
    }
  }
  return held
}

const OF_ARRAY = /^\d{1,12}_(?:\d{1,9}|\[[\d,:%.-]{1,70}\])$/

function jobOf(
  line: string,
  me: string | undefined,
  names: NodeNames,
  held: ReturnType<typeof heldOf>,
  nowS: number | undefined,
): readonly SlurmPlacement[] {
  const [, id = '', state, uid, user = '', start = '', reason = '', nodes = '', label = '', name = ''] =
    line.split('\t')
  if (!/^\d{1,12}$/.test(id)) return []
  const own = {
    ...{ id, name: decoded(name), user: decoded(user), isOwn: uid === me },
    ...(OF_ARRAY.test(label) ? { label } : {}),
  }
  if (state === 'PENDING') {
    const startS = startOf(start, nowS)
    return [{ ...own, waits: reasonWords(decoded(reason)), ...(startS === undefined ? {} : { startS }), shares: [] }]
  }
  const paused = state === 'SUSPENDED' ? { waits: SUSPENDED } : {}
  return [
    { ...own, ...paused, shares: names.of(nodes).map((node) => ({ node, ...(held.get(id)?.get(node) ?? UNKNOWN) })) },
  ]
}

/** `0-3,6` */
function rangesOf(text = ''): readonly (readonly [from: number, to: number])[] {
  return text.split(',').flatMap((part) => {
    const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part) ?? []
    return first === '' || Number(last) < Number(first) ? [] : [[Number(first), Number(last)] as const]
  })
}

/** `gpu:a100:2(IDX:0-1),gpu:h100:1(IDX:2)` */
const devicesOf = (text = ''): readonly number[] => [
  ...new Set(
    [...text.matchAll(/(?:^|,)gpu[^(),]*\(IDX:([\d,-]+)\)/g)]
      .flatMap(([, ranges]) => rangesOf(ranges))
      .flatMap(([from, to]) =>
        Array.from({ length: Math.max(0, Math.min(to + 1, MOST_GPUS) - from) }, (_, index) => from + index),
      ),
  ),
]
