/**
 * What a study tries next. A method suggests; what was tried already is never tried again: it is asked again a few times, then the
 * nearest untried point is taken, and when there is none the study has tried all. Pure: the same history gives the same answer, so a
 * scheduler that was killed between two steps asks for the same point again.
 */
import { distance, type Point, pointAt, pointFrom, pointKey, type Space, sizeOf } from './space.ts'

export type Trial = { readonly number: number; readonly point: Point; readonly value: number | undefined }

export type Method = {
  readonly name: string
  readonly summary: string
  /** A suggestion for trial `number`, at its `attempt`; undefined: it has none left. It may be one that was tried. */
  suggest(space: Space, trials: readonly Trial[], number: number, attempt: number, seed: number): Point | undefined
}

const ATTEMPTS = 10
/** A larger space is not searched from end to end for what is nearest. */
const MOST_SEARCHED = 1_000_000
const MOST_DRAWN = 10_000

export type Asked =
  | { readonly kind: 'point'; readonly point: Point; readonly repeated: number; readonly isSubstitute: boolean }
  | { readonly kind: 'all-tried'; readonly count: number }

/** `isTried`: by key, also of trials that run or wait. */
export function askNext(
  space: Space,
  method: Method,
  trials: readonly Trial[],
  number: number,
  seed: number,
  isTried: (key: string) => boolean,
): Asked {
  let last: Point | undefined
  let repeated = 0
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const point = method.suggest(space, trials, number, attempt, seed)
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

/** What is tried instead of a point that was tried: the nearest other one, in a very large space any. Undefined: all are tried. */
export function untriedNear(
  space: Space,
  to: Point | undefined,
  number: number,
  seed: number,
  isTried: (key: string) => boolean,
): Point | undefined {
  const size = sizeOf(space)
  return size <= MOST_SEARCHED ? nearest(space, size, to, isTried) : drawn(space, number, seed, isTried)
}

function nearest(
  space: Space,
  size: number,
  to: Point | undefined,
  isTried: (key: string) => boolean,
): Point | undefined {
  let found: { readonly point: Point; readonly far: number } | undefined
  for (let index = 0; index < size; index++) {
    const point = pointAt(space, index)
    if (point === undefined || isTried(pointKey(point))) continue
    if (to === undefined) return point
    const far = distance(space, to, point)
    if (found === undefined || far < found.far) found = { point, far }
  }
  return found?.point
}

function drawn(space: Space, number: number, seed: number, isTried: (key: string) => boolean): Point | undefined {
  for (let attempt = 0; attempt < MOST_DRAWN; attempt++) {
    const point = random.suggest(space, [], number, ATTEMPTS + attempt, seed)
    if (point !== undefined && !isTried(pointKey(point))) return point
  }
  return undefined
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
  suggest: (space, _, number, attempt) => pointAt(space, number + attempt),
}

export const random: Method = {
  name: 'random',
  summary: 'points drawn at random',
  suggest: (space, _, number, attempt, seed) => pointFrom(space, (index) => unitRandom(seed, number, attempt, index)),
}

export const brute: Method = {
  name: 'brute',
  summary: 'all combinations, in random order',
  suggest(space, _, number, attempt, seed) {
    const size = sizeOf(space)
    return Number.isFinite(size)
      ? pointAt(space, Math.floor(unitRandom(seed, number, attempt, 0) * size))
      : random.suggest(space, [], number, attempt, seed)
  },
}

/** Roberts' sequence: multiples of the inverses of the generalised golden ratio fill the space evenly in any dimension. */
export const quasi: Method = {
  name: 'quasi-random',
  summary: 'points that fill the space evenly',
  suggest(space, _, number, attempt, seed) {
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
