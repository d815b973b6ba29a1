/**
 * What a study tries next. A method suggests; what was tried already is never tried again: it is asked again a few times, then the
 * nearest untried point is taken, and when there is none the study has tried all. Pure: the same history gives the same answer, so a
 * scheduler that was killed between two steps asks for the same point again.
 */
import { distance, type Point, pointAt, pointFrom, pointKey, type Space, sizeOf, unitOf } from './space.ts'

export type Method = {
  readonly name: string
  readonly summary: string
  /** A suggestion for trial `number`, at its `attempt`; undefined: it has none left. It may be one that was tried. */
  suggest(space: Space, number: number, attempt: number, seed: number): Point | undefined
}

const ATTEMPTS = 10
/** A larger space is not searched from end to end for what is nearest. */
const MOST_LISTED = 20_000
const DRAWN = 1000

export type NextPoint =
  | { readonly kind: 'point'; readonly point: Point; readonly repeated: number; readonly isSubstitute: boolean }
  | { readonly kind: 'all-tried'; readonly count: number }

/** `isTried`: by key, also of trials that run or wait. */
export function askNext(
  space: Space,
  method: Method,
  number: number,
  seed: number,
  isTried: (key: string) => boolean,
): NextPoint {
  let repeated = 0
  let last: Point | undefined
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const point = method.suggest(space, number, attempt, seed)
    if (point === undefined) break
    if (!isTried(pointKey(point))) return { kind: 'point', point, repeated, isSubstitute: false }
    repeated++
    last = point
  }
  const point = untriedNear(space, last, number, seed, isTried)
  return point === undefined
    ? { kind: 'all-tried', count: sizeOf(space) }
    : { kind: 'point', point, repeated, isSubstitute: true }
}

/**
 * The untried point nearest to `near`, or the first one of the grid. In a space with more than 20,000 points it is one drawn round
 * it, farther away with each attempt. Undefined: all were tried.
 */
export function untriedNear(
  space: Space,
  near: Point | undefined,
  number: number,
  seed: number,
  isTried: (key: string) => boolean,
): Point | undefined {
  const size = sizeOf(space)
  if (size <= MOST_LISTED) {
    const untried = listOf(space, size).filter(({ key }) => !isTried(key))
    if (near === undefined) return untried[0]?.point
    return nearestOf(space, near, untried)
  }
  for (let attempt = 0; attempt < DRAWN; attempt++) {
    const reach = near === undefined ? 1 : (attempt + 1) / DRAWN
    const point = pointFrom(space, (index) => {
      const drawn = unitRandom(seed, number, ATTEMPTS + attempt, index)
      const value = near?.[space.parameters[index]?.name ?? '']
      return value === undefined ? drawn : unitNear(space, index, value, drawn, reach)
    })
    if (!isTried(pointKey(point))) return point
  }
  if (!Number.isFinite(size)) return undefined
  for (let index = 0; index < size; index++) {
    const point = pointAt(space, index)
    if (point !== undefined && !isTried(pointKey(point))) return point
  }
  return undefined
}

type Listed = { readonly key: string; readonly point: Point }

const lists = new Map<Space, readonly Listed[]>()
/** A list of 20,000 points takes a few megabytes. */
const MOST_LISTS = 8

function listOf(space: Space, size: number): readonly Listed[] {
  const known = lists.get(space)
  if (known !== undefined) return known
  const list = Array.from({ length: size }, (_, index) => {
    const point = pointAt(space, index) ?? {}
    return { key: pointKey(point), point }
  })
  if (lists.size >= MOST_LISTS) lists.clear()
  lists.set(space, list)
  return list
}

function nearestOf(space: Space, near: Point, points: readonly Listed[]): Point | undefined {
  let nearest: Point | undefined
  let least = Number.POSITIVE_INFINITY
  for (const { point } of points) {
    const far = distance(space, near, point)
    if (far >= least) continue
    least = far
    nearest = point
  }
  return nearest
}

/** `drawn` moved to the neighbourhood of a value: within `reach` of it, or for a choice another one with that probability. */
function unitNear(space: Space, index: number, value: string, drawn: number, reach: number): number {
  const parameter = space.parameters[index]
  if (parameter === undefined) return drawn
  if (parameter.kind === 'choice')
    return drawn < reach ? drawn / reach : (parameter.values.indexOf(value) + 0.5) / parameter.values.length
  // The middle of its step, so that a small reach stays there.
  const count = parameter.kind === 'steps' ? parameter.count : Number.POSITIVE_INFINITY
  const at = unitOf(parameter, value) * (1 - 1 / count) + 0.5 / count
  return Math.min(1 - Number.EPSILON, Math.max(0, at + (2 * drawn - 1) * reach))
}

/** Different for each trial, attempt and parameter, and the same each time it is asked. */
function unitRandom(seed: number, number: number, attempt: number, index: number): number {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(number + 1, 0xc2b2ae35)
  state ^= Math.imul(attempt + 1, 0x27d4eb2f) ^ Math.imul(index + 1, 0x165667b1)
  for (const factor of [0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f]) {
    state ^= state >>> 16
    state = Math.imul(state, factor)
  }
  return ((state ^ (state >>> 15)) >>> 0) / 2 ** 32
}

export const grid: Method = {
  name: 'grid',
  summary: 'all combinations, one after the other',
  suggest: (space, number, attempt) => pointAt(space, number + attempt),
}

export const random: Method = {
  name: 'random',
  summary: 'points drawn at random',
  suggest: (space, number, attempt, seed) => pointFrom(space, (index) => unitRandom(seed, number, attempt, index)),
}

export const brute: Method = {
  name: 'brute',
  summary: 'all combinations, in random order',
  suggest(space, number, attempt, seed) {
    const size = sizeOf(space)
    if (!Number.isFinite(size)) return random.suggest(space, number, attempt, seed)
    return number + attempt < size ? pointAt(space, shuffled(number + attempt, size, seed)) : undefined
  },
}

const ROUNDS = 4

/**
 * Where a number below `size` lies in a random order of all of them, without making that order: a Feistel network over a
 * rectangle of at least as many places, entered again until it ends within.
 */
function shuffled(number: number, size: number, seed: number): number {
  const rows = Math.ceil(Math.sqrt(size))
  const columns = Math.ceil(size / rows)
  let place = number
  do {
    let [row, column] = [Math.floor(place / columns), place % columns]
    for (let round = 0; round < ROUNDS; round++) {
      row = (row + Math.floor(unitRandom(seed, column, round, 0) * rows)) % rows
      column = (column + Math.floor(unitRandom(seed, row, round, 1) * columns)) % columns
    }
    place = row * columns + column
  } while (place >= size)
  return place
}

/** Roberts' sequence: multiples of the inverses of the generalised golden ratio fill the space evenly in any dimension. */
export const quasi: Method = {
  name: 'quasi-random',
  summary: 'points that fill the space evenly',
  suggest(space, number, attempt, seed) {
    const ratio = goldenRatio(space.parameters.length)
    const offset = unitRandom(seed, 0, 0, 0)
    return pointFrom(space, (index) => (offset + (number + attempt + 1) / ratio ** (index + 1)) % 1)
  },
}

/** The root of x^(d+1) = x + 1 above 1. */
function goldenRatio(dimensions: number): number {
  let ratio = 2
  for (let step = 0; step < 64; step++) ratio = (1 + ratio) ** (1 / (dimensions + 1))
  return ratio
}

export const METHODS: readonly Method[] = [grid, random, brute, quasi]
