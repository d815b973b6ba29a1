/**
 * How much of a fleet's GPUs any policy could give away at most: hosts of one kind are taken together, GPUs are filled in
 * patterns of shares, requests without GPUs are left out. A bound for every policy, and prices of what is scarce.
 */
import type { Cluster } from '../../../src/scheduler/model/cluster.ts'
import type { MixEntry } from '../../../src/scheduler/model/mix.ts'
import { WHOLE_MILLI } from '../../../src/scheduler/model/resources.ts'
import { type Column, type FindColumn, solveForPrices } from './column-simplex.ts'

export const STEP_MILLI = 10
const STEPS = WHOLE_MILLI / STEP_MILLI
const GIB = 2 ** 30

export type ConfigurationPrices = {
  /** GPUs that are given away at most. */
  readonly bound: number
  /** By host: what so many steps left on one of its GPUs are worth, in milli. */
  readonly valuesOf: readonly Float64Array[]
}

/** Hosts that are alike: rows `row` to `row + 2` are their GPUs, cores and GiB, the next ones their places for n GPUs. */
type Kind = { readonly model: string; readonly row: number; readonly gpus: number }

type Item = {
  readonly row: number
  readonly steps: number
  readonly gpuCount: number
  readonly gpus: number
  readonly cores: number
  readonly gib: number
  readonly models: readonly string[]
}

export function solveConfigurationLp(cluster: Cluster, demand: readonly MixEntry[]): ConfigurationPrices {
  const asking = demand.filter(({ request }) => request.gpuCount > 0)
  const items = asking.map(
    ({ request }, row): Item => ({
      row,
      steps: Math.ceil(request.gpuMilli / STEP_MILLI),
      gpuCount: request.gpuCount,
      gpus: (request.gpuCount * request.gpuMilli) / WHOLE_MILLI,
      cores: request.cpuMilli / 1000,
      gib: request.memoryBytes / GIB,
      models: request.gpuModels ?? [],
    }),
  )
  const sizes = [...new Set(items.map(({ gpuCount }) => gpuCount))].filter((count) => count > 1)
  const limits = asking.map(({ count }) => count)
  const kinds = new Map<string, Kind>()
  const kindOf = cluster.hosts.map(({ cpuMilli, memoryBytes, gpus = [] }) => {
    const key = JSON.stringify([cpuMilli, memoryBytes, gpus])
    const kind = kinds.get(key) ?? { model: gpus[0] ?? '', row: limits.length, gpus: gpus.length }
    if (!kinds.has(key)) limits.push(0, 0, 0, ...sizes.map(() => 0))
    kinds.set(key, kind)
    const places = sizes.map((size) => Math.floor(gpus.length / size))
    for (const [index, amount] of [gpus.length, cpuMilli / 1000, memoryBytes / GIB, ...places].entries())
      limits[kind.row + index]! += amount
    return kind
  })
  const takes = ({ models, gpuCount }: Item, kind: Kind) =>
    gpuCount <= kind.gpus && (models.length === 0 || models.includes(kind.model))
  const choices = [...kinds.values()].map((kind) => ({ kind, own: items.filter((item) => takes(item, kind)) }))
  const find: FindColumn = (prices) => {
    let best: ReturnType<FindColumn>
    for (const { kind, own } of choices) {
      for (const item of own) {
        if (item.steps < STEPS) continue
        const place = item.gpuCount > 1 ? prices[kind.row + 3 + sizes.indexOf(item.gpuCount)]! : 0
        const gain = worth(item, kind, prices) - item.gpus * prices[kind.row]! - place
        if (gain > (best?.gain ?? 0)) best = { column: columnOf([item], kind, sizes), gain }
      }
      const { values, chosen } = fillGpu(own, kind, prices)
      const gain = values[STEPS]! - prices[kind.row]!
      if (gain > (best?.gain ?? 0)) best = { column: columnOf(patternOf(chosen), kind, sizes), gain }
    }
    return best
  }
  const prices = solveForPrices(Float64Array.from(limits), find)
  const valuesOf = new Map(
    choices.map(({ kind, own }) => {
      const values = fillGpu(own, kind, prices).values.map((value) => value * WHOLE_MILLI)
      values[STEPS] = prices[kind.row]! * WHOLE_MILLI
      return [kind, values]
    }),
  )
  return {
    bound: limits.reduce((sum, limit, row) => sum + limit * prices[row]!, 0),
    valuesOf: kindOf.map((kind) => valuesOf.get(kind)!),
  }
}

/** Beyond what it costs besides GPUs. */
function worth(item: Item, { row }: Kind, prices: Float64Array): number {
  return item.gpus - prices[item.row]! - item.cores * prices[row + 1]! - item.gib * prices[row + 2]!
}

/** The shares that are worth most together, by how much is left of a GPU. */
function fillGpu(items: readonly Item[], kind: Kind, prices: Float64Array) {
  // Of shares of one size only the one that is worth most.
  const bestOfSize: (Item | undefined)[] = []
  const worthOfSize = new Float64Array(STEPS)
  for (const item of items) {
    const own = item.steps < STEPS ? worth(item, kind, prices) : 0
    if (own <= worthOfSize[item.steps]! || item.steps === STEPS) continue
    worthOfSize[item.steps] = own
    bestOfSize[item.steps] = item
  }
  const sizes = bestOfSize.flatMap((item) => item ?? []).sort((one, other) => one.steps - other.steps)
  const values = new Float64Array(STEPS + 1)
  const chosen: (Item | undefined)[] = new Array(STEPS + 1)
  for (let left = 1; left <= STEPS; left++) {
    values[left] = values[left - 1]!
    for (const item of sizes) {
      if (item.steps > left) break
      const value = worthOfSize[item.steps]! + values[left - item.steps]!
      if (value <= values[left]!) continue
      values[left] = value
      chosen[left] = item
    }
  }
  return { values, chosen }
}

function patternOf(chosen: readonly (Item | undefined)[]): readonly Item[] {
  const pattern: Item[] = []
  for (let left = STEPS; left > 0; ) {
    const item = chosen[left]
    if (item) pattern.push(item)
    left -= item?.steps ?? 1
  }
  return pattern
}

/** One request for whole GPUs, or one GPU with a pattern of shares. */
function columnOf(pattern: readonly Item[], { row }: Kind, sizes: readonly number[]): Column {
  const amounts = new Map<number, number>()
  const add = (at: number, amount: number) => amounts.set(at, (amounts.get(at) ?? 0) + amount)
  add(row, pattern[0]?.steps === STEPS ? pattern[0].gpus : 1)
  for (const item of pattern) {
    add(item.row, 1)
    add(row + 1, item.cores)
    add(row + 2, item.gib)
    if (item.gpuCount > 1) add(row + 3 + sizes.indexOf(item.gpuCount), 1)
  }
  return { rows: [...amounts.keys()], amounts: [...amounts.values()] }
}
