/** The shapes that make up nearly all of a workload, as FGD counts them: by CPU, GPUs and models, without memory. */
import type { WorkloadMix } from '../model/mix.ts'

export type TypicalRequest = {
  readonly cpuMilli: number
  readonly gpuCount: number
  readonly gpuMilli: number
  readonly gpuModels: readonly string[]
  /** Its fraction of all of them; the fractions add up to 1. */
  readonly part: number
}

/** The most frequent ones, until they cover 95 % of all requests. */
const COVERED = 0.95

export function typicalRequests(mix: WorkloadMix): readonly TypicalRequest[] {
  const groups = new Map<string, Omit<TypicalRequest, 'part'> & { count: number; models: string }>()
  for (const { request, count } of mix.entries()) {
    const { cpuMilli, gpuCount, gpuModels = [] } = request
    const gpuMilli = gpuCount === 0 ? 0 : request.gpuMilli
    const models = gpuModels.join('|')
    const key = `${cpuMilli} ${gpuMilli} ${gpuCount} ${models}`
    const group = groups.get(key)
    if (group) group.count += count
    else groups.set(key, { cpuMilli, gpuCount, gpuMilli, gpuModels, models, count })
  }
  const sorted = [...groups.values()].sort(
    (left, right) =>
      right.count - left.count ||
      right.cpuMilli - left.cpuMilli ||
      right.gpuMilli - left.gpuMilli ||
      right.gpuCount - left.gpuCount ||
      (left.models < right.models ? 1 : -1),
  )
  let covered = 0
  const typical: typeof sorted = []
  for (const group of sorted) {
    if (covered >= COVERED * mix.total) break
    typical.push(group)
    covered += group.count
  }
  // Divided twice, as the published program does: the last bit decides whether a score is cut to 49 or 50.
  return typical.map(({ count, models: _, ...rest }) => ({ ...rest, part: count / mix.total / (covered / mix.total) }))
}
