/**
 * The files of the openb trace (node list, pod list, arrival sequence) as hosts and requests. As in the published experiments, a
 * pod without CPU counts as 100 milli.
 */
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { checkRequest, type HostCapacity, type ResourceRequest } from '../model/resources.ts'

const MIB = 2 ** 20
const LEAST_CPU_MILLI = 100
const MAX_CPU_MILLI = 2 ** 31 - 1
const MAX_MIB = 2 ** 32
const SHOWN_NAMES = 8
/** A larger number is a typing mistake. */
const MAX_GPUS = 1024

export type TracePod = {
  readonly name: string
  readonly request: ResourceRequest
  /** Seconds from the start of the trace; undefined: the list has no times. */
  readonly createdAtS?: number
  readonly deletedAtS?: number
}

/** @throws MusterError 'configuration' with the line of the mistake. */
export function parseNodes(text: string): readonly HostCapacity[] {
  return parseCsv(text, 'node list', ['sn', 'cpu_milli', 'memory_mib', 'gpu', 'model']).map((row) => ({
    name: row.text('sn'),
    cpuMilli: row.whole('cpu_milli', MAX_CPU_MILLI),
    memoryBytes: row.whole('memory_mib', MAX_MIB) * MIB,
    gpus: new Array<string>(row.whole('gpu', MAX_GPUS)).fill(row.text('model')),
  }))
}

/** @throws MusterError 'configuration' with the line of the mistake. */
export function parsePods(text: string): readonly TracePod[] {
  const columns = ['name', 'cpu_milli', 'memory_mib', 'num_gpu', 'gpu_milli']
  return parseCsv(text, 'pod list', columns).map((row) => {
    const gpuCount = row.whole('num_gpu', MAX_GPUS)
    const models = row.text('gpu_spec').split('|').filter(Boolean)
    const request: ResourceRequest = {
      cpuMilli: row.whole('cpu_milli', MAX_CPU_MILLI) || LEAST_CPU_MILLI,
      memoryBytes: row.whole('memory_mib', MAX_MIB) * MIB,
      gpuCount,
      gpuMilli: gpuCount === 0 ? 0 : row.whole('gpu_milli', MAX_CPU_MILLI),
      ...(models.length > 0 ? { gpuModels: models } : {}),
    }
    row.check(() => checkRequest(request))
    const hasTimes = row.text('creation_time') !== '' && row.text('deletion_time') !== ''
    return {
      name: row.text('name'),
      request,
      ...(hasTimes ? { createdAtS: row.seconds('creation_time'), deletedAtS: row.seconds('deletion_time') } : {}),
    }
  })
}

/**
 * Two lines for each variant and seed: `VARIANT SEED P row…` (of the pod list, in order of arrival) and `VARIANT SEED N rank…` (by
 * row of the node list; of equals the lowest rank wins).
 * @throws MusterError 'configuration' when it is missing or does not fit the lists.
 */
export function parseSequence(
  text: string,
  { variant, seed }: { readonly variant: string; readonly seed: number },
  { nodeCount, podCount }: { readonly nodeCount: number; readonly podCount: number },
) {
  const find = (kind: string): readonly number[] => {
    const start = `${variant} ${seed} ${kind} `
    const at = text.startsWith(start) ? 0 : text.indexOf(`\n${start}`) + 1
    if (at === 0 && !text.startsWith(start))
      throw wrong(`it has no line that begins with '${start.trim()}'`, sequencesOf(text))
    const [line = ''] = text.slice(at + start.length).split('\n', 1)
    return line.split(/\s+/).filter(Boolean).map(Number)
  }
  const pods = find('P')
  const ranks = find('N')
  if (pods.length === 0) throw wrong(`${variant} ${seed} names no pods`)
  if (!pods.every((row) => Number.isInteger(row) && row >= 0 && row < podCount))
    throw wrong(`${variant} ${seed} names pods beyond the ${podCount} of the pod list`)
  if (
    ranks.length !== nodeCount ||
    new Set(ranks).size !== nodeCount ||
    !ranks.every((rank) => Number.isInteger(rank) && rank >= 0 && rank < nodeCount)
  )
    throw wrong(`${variant} ${seed} does not rank each of the ${nodeCount} nodes once`)
  return { pods, ranks }
}

/** By rank, so that a host's number is its rank. */
export function inRankOrder(hosts: readonly HostCapacity[], ranks: readonly number[]): readonly HostCapacity[] {
  const rows = [...hosts.keys()].sort((one, other) => (ranks[one] as number) - (ranks[other] as number))
  return rows.map((row) => hosts[row] as HostCapacity)
}

function parseCsv(text: string, what: string, required: readonly string[]) {
  const [header = '', ...lines] = text.replace(/^\ufeff/, '').split(/\r?\n/)
  const columns = header.split(',').map(unquote)
  const missing = required.filter((column) => !columns.includes(column))
  if (missing.length > 0)
    throw new MusterError('configuration', `the ${what} has no column ${missing.join(', ')}`, {
      hint: `Its first line must name ${required.join(', ')}.`,
    })
  const rows = lines.flatMap((line, index) => {
    if (line.trim() === '') return []
    const cells = line.split(',')
    const cell = (column: string) => unquote(cells[columns.indexOf(column)] ?? '')
    const broken = (sentence: string) =>
      new MusterError('configuration', `the ${what}, line ${index + 2}: ${printable(sentence)}`)
    return [
      {
        text: cell,
        whole(column: string, most: number) {
          const value = Number(cell(column))
          if (!Number.isSafeInteger(value) || value < 0 || cell(column) === '')
            throw broken(`${column} is '${cell(column)}', not a whole number`)
          if (value > most) throw broken(`${column} is ${value}, more than ${most}`)
          return value
        },
        /** Fractions are cut off. */
        seconds(column: string) {
          const value = Number(cell(column))
          if (!Number.isFinite(value)) throw broken(`${column} is '${cell(column)}', not a number of seconds`)
          return Math.trunc(value)
        },
        /** Errors of `work` get the line number. */
        check(work: () => void) {
          try {
            work()
          } catch (error) {
            throw broken(messageOf(error))
          }
        },
      },
    ]
  })
  if (rows.length === 0) throw new MusterError('configuration', `the ${what} is empty`)
  return rows
}

function unquote(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1')
}

/** The first few sequences of the file. */
function sequencesOf(text: string): string | undefined {
  const names = [...text.matchAll(/^(\S+ \d+) P /gm)].map(([, name]) => name)
  if (names.length === 0) return undefined
  return `It has ${printable(names.slice(0, SHOWN_NAMES).join(', '))}${names.length > SHOWN_NAMES ? ', …' : ''}.`
}

function wrong(sentence: string, hint?: string): MusterError {
  const options = hint === undefined ? {} : { hint }
  return new MusterError('configuration', `the sequence file does not fit: ${sentence}`, options)
}
