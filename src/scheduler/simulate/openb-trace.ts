/**
 * The files of the openb trace (node list, pod list, arrival sequence), as hosts and requests. Text in, data out.
 * A pod that asks for no CPU counts as 100 milli, as in the published experiments.
 */
import { MusterError } from '../../base/errors.ts'
import type { HostSpec, ResourceRequest } from '../model/resources.ts'

const MIB = 2 ** 20
const LEAST_CPU_MILLI = 100

export type TracePod = {
  readonly name: string
  readonly request: ResourceRequest
  /** Seconds from the start of the trace; undefined where the list has no times. */
  readonly createdAtS?: number
  readonly deletedAtS?: number
}

export type ArrivalSequence = {
  /** Rows of the pod list, in order of arrival; a row may come several times. */
  readonly pods: readonly number[]
  /** By row of the node list: its rank; of equals the lowest wins. */
  readonly ranks: readonly number[]
}

/** @throws MusterError 'configuration' with the line that is wrong. */
export function parseNodes(text: string): readonly HostSpec[] {
  return parseCsv(text, 'node list', ['sn', 'cpu_milli', 'memory_mib', 'gpu', 'model']).map((row) => ({
    name: row.text('sn'),
    cpuMilli: row.number('cpu_milli'),
    memoryBytes: row.number('memory_mib') * MIB,
    gpus: new Array<string>(row.number('gpu')).fill(row.text('model')),
  }))
}

/** @throws MusterError 'configuration' with the line that is wrong. */
export function parsePods(text: string): readonly TracePod[] {
  const columns = ['name', 'cpu_milli', 'memory_mib', 'num_gpu', 'gpu_milli']
  return parseCsv(text, 'pod list', columns).map((row) => {
    const gpuCount = row.number('num_gpu')
    const models = row.text('gpu_spec').split('|').filter(Boolean)
    const request: ResourceRequest = {
      cpuMilli: row.number('cpu_milli') || LEAST_CPU_MILLI,
      memoryBytes: row.number('memory_mib') * MIB,
      gpuCount,
      gpuMilli: gpuCount === 0 ? 0 : row.number('gpu_milli'),
      ...(models.length > 0 ? { gpuModels: models } : {}),
    }
    const hasTimes = row.text('creation_time') !== '' && row.text('deletion_time') !== ''
    return {
      name: row.text('name'),
      request,
      ...(hasTimes ? { createdAtS: row.number('creation_time'), deletedAtS: row.number('deletion_time') } : {}),
    }
  })
}

/**
 * Two lines for each variant and seed: `VARIANT SEED P row…` and `VARIANT SEED N rank…`.
 * @throws MusterError 'configuration' when there is none, or it does not go with the lists.
 */
export function parseSequence(
  text: string,
  { variant, seed }: { readonly variant: string; readonly seed: number },
  { nodeCount, podCount }: { readonly nodeCount: number; readonly podCount: number },
): ArrivalSequence {
  const find = (kind: string): readonly number[] => {
    const start = `${variant} ${seed} ${kind} `
    const at = text.startsWith(start) ? 0 : text.indexOf(`\n${start}`) + 1
    if (at === 0 && !text.startsWith(start)) throw wrong(`it has no line that begins with '${start.trim()}'`)
    const end = text.indexOf('\n', at)
    return text
      .slice(at + start.length, end < 0 ? undefined : end)
      .trim()
      .split(/\s+/)
      .map(Number)
  }
  const pods = find('P')
  const ranks = find('N')
  if (!pods.every((row) => Number.isInteger(row) && row >= 0 && row < podCount))
    throw wrong(`${variant} ${seed} names pods beyond the ${podCount} of the pod list`)
  if (
    ranks.length !== nodeCount ||
    new Set(ranks).size !== nodeCount ||
    !ranks.every((rank) => rank >= 0 && rank < nodeCount)
  )
    throw wrong(`${variant} ${seed} does not rank each of the ${nodeCount} nodes once`)
  return { pods, ranks }
}

/** The hosts in order of rank, so that a host's number is its rank. */
export function inRankOrder(hosts: readonly HostSpec[], ranks: readonly number[]): readonly HostSpec[] {
  const ordered = [...hosts]
  hosts.forEach((host, row) => {
    ordered[ranks[row] as number] = host
  })
  return ordered
}

type Row = { text(column: string): string; number(column: string): number }

function parseCsv(text: string, what: string, required: readonly string[]): readonly Row[] {
  const [header = '', ...lines] = text.split(/\r?\n/)
  const columns = header.split(',')
  const missing = required.filter((column) => !columns.includes(column))
  if (missing.length > 0)
    throw new MusterError('configuration', `the ${what} has no column ${missing.join(', ')}`, {
      hint: `Its first line has to name ${required.join(', ')}.`,
    })
  return lines.flatMap((line, index): Row[] => {
    if (line.trim() === '') return []
    const cells = line.split(',')
    const cell = (column: string) => cells[columns.indexOf(column)]?.trim() ?? ''
    const number = (column: string) => {
      const value = Number(cell(column))
      if (!Number.isSafeInteger(value) || value < 0 || cell(column) === '')
        throw new MusterError(
          'configuration',
          `the ${what}, line ${index + 2}: ${column} is '${cell(column)}', not a whole number`,
        )
      return value
    }
    return [{ text: cell, number }]
  })
}

function wrong(sentence: string): MusterError {
  return new MusterError('configuration', `the sequence file does not fit: ${sentence}`)
}
