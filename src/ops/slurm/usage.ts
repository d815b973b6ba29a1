/** What a Slurm cluster has and who holds it, with real devices: from `scontrol -d`, of which the login host keeps what counts. */
import { printable } from '../../base/printable.ts'
import { expandHostSet } from '../../inventory/host-set.ts'
import { decoded, nowOf, reasonWords, startOf } from './queue.ts'

export type SlurmNode = {
  readonly name: string
  readonly cpuMilli: number
  readonly cpuUsedMilli: number
  readonly memoryBytes: number
  readonly memoryUsedBytes: number
  readonly gpus: number
  /** Why it takes no jobs, or not all that would fit; empty: it does. */
  readonly trouble: string
}

export type SlurmPlacement = {
  /** Its number in Slurm. */
  readonly id: string
  readonly name: string
  readonly user: string
  /** Of the login of Muster, so its name may be a key of the queue. */
  readonly isOwn: boolean
  /** Undefined: it holds something. */
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

export type SlurmUsage = { readonly nodes: readonly SlurmNode[]; readonly jobs: readonly SlurmPlacement[] }

const NODE_KEYS = 'NodeName|CPUAlloc|CPUTot|RealMemory|AllocMem|Gres|State'
const JOB_KEYS = 'JobId|JobName|UserId|JobState|Reason|StartTime|Nodes|CPU_IDs|Mem|GRES'

/** Prints the user's number, and for nodes and jobs a line of `KEY=VALUE` each; `end` when that is all. */
export const USAGE_PROGRAM = `keep() { awk -v keys="^($1)=" '{ line = ""; for (i = 1; i <= NF; i++) if ($i ~ keys) line = line " " substr($i, 1, 400); print substr(line, 2) }'; }
nodes=$(scontrol -d -o show node 2>&1) || trouble "$nodes"
jobs=$(SLURM_TIME_FORMAT=%s scontrol -d -o show job 2>&1) || trouble "$jobs"
echo "me $(id -u)"
echo "now $(date +%s)"
printf '%s\\n' "$nodes" | keep '${NODE_KEYS}'
printf '%s\\n' "$jobs" | grep -E ' JobState=(PENDING|CONFIGURING|RUNNING|SUSPENDED|COMPLETING) ' | keep '${JOB_KEYS}'
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
  const nodes = lines.flatMap((line) => (line.startsWith('NodeName=') ? nodeOf(line) : []))
  const names = new NodeNames(new Set(nodes.map(({ name }) => name)))
  const nowS = nowOf(text)
  return { nodes, jobs: lines.flatMap((line) => (line.startsWith('JobId=') ? jobOf(line, me, names, nowS) : [])) }
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
  const gpus = [...(fields.get('Gres') ?? '').matchAll(/(?:^|,)gpu(?::[^:,(]+)?:(\d{1,4})/g)]
  const state = fields.get('State') ?? ''
  return [
    {
      name,
      cpuMilli: countOf(fields.get('CPUTot')) * 1000,
      cpuUsedMilli: countOf(fields.get('CPUAlloc')) * 1000,
      memoryBytes: countOf(fields.get('RealMemory')) * MIB,
      memoryUsedBytes: countOf(fields.get('AllocMem')) * MIB,
      gpus: Math.min(
        MOST_GPUS,
        gpus.reduce((sum, [, count]) => sum + Number(count), 0),
      ),
      trouble: /^(IDLE|MIXED|ALLOCATED)(\+(PLANNED|CLOUD))*$/.test(state) ? '' : printable(state.toLowerCase()),
    },
  ]
}

function jobOf(
  line: string,
  me: string | undefined,
  names: NodeNames,
  nowS: number | undefined,
): readonly SlurmPlacement[] {
  const fields = fieldsOf(line)
  const id = fields.get('JobId') ?? ''
  const [, user = '', uid] = /^([^()]{1,64})\((\d{1,10})\)$/.exec(fields.get('UserId') ?? '') ?? []
  if (!/^\d{1,12}$/.test(id)) return []
  const own = { id, name: decoded(fields.get('JobName') ?? ''), user: decoded(user), isOwn: uid === me }
  const state = fields.get('JobState')
  if (state === 'PENDING') {
    const startS = startOf(fields.get('StartTime') ?? '', nowS)
    const waits = reasonWords(decoded(fields.get('Reason') ?? ''))
    return [{ ...own, waits, ...(startS === undefined ? {} : { startS }), shares: [] }]
  }
  const groups: Map<string, string>[] = []
  for (const [key, value] of wordsOf(line))
    if (key === 'Nodes') groups.push(new Map([[key, value]]))
    else groups.at(-1)?.set(key, value)
  const shares = groups.flatMap((group) => {
    const share = {
      cpuMilli: rangesOf(group.get('CPU_IDs')).reduce((sum, [from, to]) => sum + to - from + 1, 0) * 1000,
      memoryBytes: countOf(group.get('Mem')) * MIB,
      devices: devicesOf(/(?:^|,)gpu[^(]*\(IDX:([\d,-]+)\)/.exec(group.get('GRES') ?? '')?.[1]),
    }
    return names.of(group.get('Nodes') ?? '').map((node) => ({ node, ...share }))
  })
  return [{ ...own, shares }]
}

/** Of all lists together: a short list may stand for many names. */
const MOST_NAMES = 200_000
const TOO_MANY = 20_000

class NodeNames {
  readonly #known: ReadonlySet<string>
  #left = MOST_NAMES

  constructor(known: ReadonlySet<string>) {
    this.#known = known
  }

  /** `n[1-2,5]`: the nodes that there are. */
  of(list: string): readonly string[] {
    if (this.#left <= 0) return []
    try {
      const names = expandHostSet(list)
      this.#left -= names.length
      return names.filter((name) => this.#known.has(name))
    } catch {
      this.#left -= TOO_MANY
      return []
    }
  }
}

/** `0-3,6` */
function rangesOf(text = ''): readonly (readonly [from: number, to: number])[] {
  return text.split(',').flatMap((part) => {
    const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part) ?? []
    return first === '' || Number(last) < Number(first) ? [] : [[Number(first), Number(last)] as const]
  })
}

const devicesOf = (text: string | undefined): readonly number[] =>
  rangesOf(text).flatMap(([from, to]) =>
    Array.from({ length: Math.max(0, Math.min(to + 1, MOST_GPUS) - from) }, (_, index) => from + index),
  )
