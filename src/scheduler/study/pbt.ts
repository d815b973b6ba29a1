/**
 * Population-based training as Ray Tune does it (PopulationBasedTraining, asynchronous): at each interval a member of the last
 * quantile continues from the checkpoint of a member of the first one, with changed parameters. Pure: the same readings and the same
 * seed give the same decisions, so a scheduler that was killed decides the same again.
 */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { createRandomNumbers } from '../policies/random.ts'
import { canonicalPoint, canonicalText, type Parameter, type Point, pointFrom, pointKey, type Space } from './space.ts'
import type { MemberMark, PbtSpec } from './study.ts'

/** How a parameter changes: to a neighbour or any of a list, or by a factor or to a number between two others. */
export type Mutation = { readonly name: string } & (
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'number'; readonly low: number; readonly high: number; readonly isLog: boolean }
)

/** A member whose trial runs. */
export type PopulationMember = {
  readonly member: number
  readonly trial: number
  readonly point: Point
  /** The last time attribute and value of the objective that it printed; undefined: none yet. NaN: its training diverged. */
  readonly step: number | undefined
  readonly value: number | undefined
  /** It is being replaced: nobody takes its checkpoint. */
  readonly isReplaced: boolean
}

export type Decision = {
  readonly victim: PopulationMember
  readonly source: PopulationMember
  /** That of the source, if no untried one was found. */
  readonly point: Point
  readonly reason: string
}

type Decided = { readonly marks: readonly MemberMark[]; readonly decisions: readonly Decision[] }

type DecideOptions = {
  readonly spec: PbtSpec
  readonly space: Space
  readonly isMost: boolean
  readonly seed: number
  /** Also of points that were only decided on. */
  isTried(key: string): boolean
}

const NUMBER = /^-?\d{1,20}(\.\d{1,20})?(e[-+]?\d{1,3})?$/i
const FACTORS = [1.2, 0.8] as const
const ATTEMPTS = 10
const FORMS = 'lr=loguniform:1e-5:1e-1, momentum=uniform:0:0.9 or batch=choice:8,16,32'

/** `NAME=uniform:LOW:HIGH`, `NAME=loguniform:LOW:HIGH` or `NAME=choice:A,B`. @throws MusterError 'usage' */
export function parseMutation(text: string): Mutation {
  const wrong = (why: string) => new MusterError('usage', `--mutate ${printable(text)}: ${why}`)
  const [, name, kind, rest = ''] = /^([A-Za-z_][A-Za-z0-9_]{0,63})=(uniform|loguniform|choice):(.+)$/s.exec(text) ?? []
  if (name === undefined) throw wrong(`write it as ${FORMS}`)
  if (kind === 'choice') {
    const values = rest.split(',').map(canonicalText)
    if (values.some((value) => value === '' || value.length > 200)) throw wrong(`write it as ${FORMS}`)
    if (new Set(values).size < values.length) throw wrong('duplicate value')
    return { name, kind, values }
  }
  const parts = rest.split(':')
  const [low = 0, high = 0] = parts.map(Number)
  if (parts.length !== 2 || !parts.every((part) => NUMBER.test(part))) throw wrong(`write it as ${FORMS}`)
  if (!(low < high) || !Number.isFinite(high)) throw wrong('the first number must be less than the second')
  if (kind === 'loguniform' && low <= 0) throw wrong('loguniform needs numbers above 0')
  return { name, kind: 'number', low, high, isLog: kind === 'loguniform' }
}

/** What a parameter is that only `--mutate` names, as for `--param`. */
export function parameterOfMutation(mutation: Mutation): string {
  if (mutation.kind === 'choice') return `${mutation.name}=${mutation.values.join()}`
  return `${mutation.name}=${mutation.isLog ? 'log' : 'float'}:${mutation.low}:${mutation.high}`
}

/** @throws MusterError 'usage' when a mutation could lead out of the space. */
export function checkMutations(mutations: readonly Mutation[], space: Space): void {
  for (const [index, mutation] of mutations.entries()) {
    const { name } = mutation
    const wrong = (why: string) => new MusterError('usage', `--mutate ${name}: ${why}`)
    const parameter = space.parameters.find((one) => one.name === name)
    if (parameter === undefined) throw wrong(`there is no parameter ${name}`)
    if (mutations.findIndex((other) => other.name === name) !== index) throw wrong('duplicate parameter')
    if (mutation.kind === 'number' && parameter.kind === 'choice')
      throw wrong(`--param lists its values: write ${name}=choice:${parameter.values.join()}`)
    const ends = mutation.kind === 'choice' ? mutation.values : [String(mutation.low), String(mutation.high)]
    const outside = ends.find((value) => inDomain(parameter, value, space) === undefined)
    if (outside !== undefined) throw wrong(`--param ${name} does not have ${outside}`)
  }
}

function inDomain(parameter: Parameter, value: string, { significantDigits }: Space): string | undefined {
  const { when: _, ...alone } = parameter
  const text = alone.kind === 'steps' ? nearestStep(alone, Number(value), undefined) : value
  if (alone.kind === 'steps' && Math.abs(Number(text) - Number(value)) > stepOf(alone)) return undefined
  return canonicalPoint({ parameters: [alone], significantDigits }, { [parameter.name]: text })?.[parameter.name]
}

/**
 * The value of a member counts when it has come an interval further. It is compared when all others have, too, or at the latest when it
 * has come two intervals further: hosts are read one after the other, and who was read last would always look better.
 */
export function decide(
  members: readonly PopulationMember[],
  before: readonly MemberMark[],
  { spec, space, isMost, seed, isTried }: DecideOptions,
): Decided {
  const marks = new Map(before.map((mark) => [mark.member, mark]))
  const due = members.filter(({ member, step, value, isReplaced }) => {
    if (isReplaced || step === undefined || value === undefined) return false
    return step - (marks.get(member)?.step ?? 0) >= spec.perturbationInterval
  })
  const overdue = due.filter(({ member }) => marks.get(member)?.isWaiting)
  for (const { member, step = 0, value = 0 } of due)
    marks.set(member, { member, step, ...(Number.isFinite(value) && { value }), isWaiting: true })
  const printing = members.filter(
    ({ step, value, isReplaced }) => !isReplaced && step !== undefined && value !== undefined,
  )
  const isRound = printing.every(({ member }) => marks.get(member)?.isWaiting)
  const judged = isRound ? printing : overdue
  for (const { member } of judged) {
    const { isWaiting: _, ...mark } = marks.get(member) ?? { member, step: 0 }
    marks.set(member, mark)
  }
  const decisions: Decision[] = []
  const taken = new Set<string>()
  const { first, last } = quantiles(members, marks, isMost, spec.quantileFraction)
  for (const victim of judged) {
    const random = createRandomNumbers(mixed(seed, victim.trial, victim.step ?? 0))
    const sources = first.filter(({ member, isReplaced }) => !isReplaced && marks.get(member)?.value !== undefined)
    const source = last.includes(victim) ? sources[Math.floor(random() * sources.length)] : undefined
    if (source === undefined) continue
    const mutations = spec.mutate.map(parseMutation)
    const next = untried(mutations, space, source.point, spec.resampleProbability, random, (key) => {
      return taken.has(key) || isTried(key)
    })
    if (next !== undefined) taken.add(pointKey(next))
    const reason = reasonOf(spec, victim, source, marks)
    decisions.push({ victim, source, point: next ?? source.point, reason })
  }
  return { marks: [...marks.values()].toSorted((one, other) => one.member - other.member), decisions }
}

/** A victim goes on where its source was compared last. */
export function markOfReplaced(marks: readonly MemberMark[], member: number, source: number): readonly MemberMark[] {
  const step = marks.find((mark) => mark.member === source)?.step ?? 0
  return [
    ...marks.filter((mark) => mark.member !== member),
    { ...marks.find((mark) => mark.member === member), member, step },
  ]
}

/** Of those that were compared: the worst and the best, of which no member is in both. Those that diverged are the worst. */
export function quantiles(
  members: readonly PopulationMember[],
  marks: ReadonlyMap<number, MemberMark>,
  isMost: boolean,
  fraction: number,
): { readonly last: readonly PopulationMember[]; readonly first: readonly PopulationMember[] } {
  const scoreOf = ({ member }: PopulationMember) => {
    const value = marks.get(member)?.value
    return value === undefined ? Number.NEGATIVE_INFINITY : value * (isMost ? 1 : -1)
  }
  const ranked = members
    .filter(({ member }) => marks.has(member))
    .toSorted((one, other) => {
      const [left, right] = [scoreOf(one), scoreOf(other)]
      return left === right ? 0 : left < right ? -1 : 1
    })
  if (ranked.length <= 1) return { last: [], first: [] }
  const wanted = Math.ceil(ranked.length * fraction)
  const count = wanted > ranked.length / 2 ? Math.floor(ranked.length / 2) : wanted
  return { last: ranked.slice(0, count), first: ranked.slice(ranked.length - count) }
}

function untried(
  mutations: readonly Mutation[],
  space: Space,
  from: Point,
  resampleProbability: number,
  random: () => number,
  isTried: (key: string) => boolean,
): Point | undefined {
  for (let attempt = 0; attempt < 2 * ATTEMPTS; attempt++) {
    // The neighbours may all be tried: then any value will do.
    const point = explore(mutations, space, from, attempt < ATTEMPTS ? resampleProbability : 1, random)
    if (!isTried(pointKey(point))) return point
  }
  return undefined
}

/** Numbers that lead out of the space stop at its end. */
export function explore(
  mutations: readonly Mutation[],
  space: Space,
  from: Point,
  resampleProbability: number,
  random: () => number,
): Point {
  const byName = new Map(mutations.map((mutation) => [mutation.name, mutation]))
  const point: Record<string, string> = {}
  for (const parameter of space.parameters) {
    const { name, when } = parameter
    if (when !== undefined && !when.values.includes(point[when.name] ?? '')) continue
    const before = from[name]
    const mutation = byName.get(name)
    // A choice that changed may bring a parameter that the source did not have.
    const text =
      before === undefined
        ? drawn(parameter, space, random)
        : mutation && mutated(mutation, parameter, before, resampleProbability, random)
    point[name] = (text === undefined ? before : inDomain(parameter, text, space)) ?? before ?? ''
  }
  return canonicalPoint(space, point) ?? from
}

function drawn({ when: _, ...parameter }: Parameter, { significantDigits }: Space, random: () => number): string {
  return pointFrom({ parameters: [parameter], significantDigits }, random)[parameter.name] ?? ''
}

function mutated(
  mutation: Mutation,
  parameter: Parameter,
  before: string,
  resampleProbability: number,
  random: () => number,
): string {
  const isResampled = random() < resampleProbability
  if (mutation.kind === 'choice') {
    const { values } = mutation
    const at = values.indexOf(before)
    if (isResampled || at === -1) return values[Math.floor(random() * values.length)] ?? before
    const shifted = at + (random() < 0.5 ? -1 : 1)
    return values[Math.min(values.length - 1, Math.max(0, shifted))] ?? before
  }
  const { low, high, isLog } = mutation
  const unit = random()
  if (isResampled) {
    const value = isLog ? Math.exp(Math.log(low) + unit * (Math.log(high) - Math.log(low))) : low + unit * (high - low)
    return parameter.kind === 'steps' ? nearestStep(parameter, value, undefined) : clamped(parameter, value)
  }
  const value = Number(before) * (FACTORS[unit < 0.5 ? 0 : 1] ?? 1)
  return parameter.kind === 'steps' ? nearestStep(parameter, value, Number(before)) : clamped(parameter, value)
}

function clamped(parameter: Parameter, value: number): string {
  return String(parameter.kind === 'real' ? Math.min(parameter.high, Math.max(parameter.low, value)) : value)
}

type Steps = Extract<Parameter, { kind: 'steps' }>
const stepOf = ({ step, digits }: Pick<Steps, 'step' | 'digits'>): number => Number(step) / 10 ** digits

/** A number of the domain; one step from `before` where the change is too small for one. */
function nearestStep(
  { first, step, count, digits }: Omit<Steps, 'name' | 'when'>,
  value: number,
  before: number | undefined,
): string {
  const [low, size] = [Number(first) / 10 ** digits, stepOf({ step, digits })]
  const at = Math.round((value - low) / size)
  const was = before === undefined ? undefined : Math.round((before - low) / size)
  const moved = at === was && before !== undefined && value !== before ? at + Math.sign(value - before) : at
  return (low + Math.min(count - 1, Math.max(0, moved)) * size).toFixed(digits)
}

function reasonOf(
  { timeAttr }: PbtSpec,
  { member }: PopulationMember,
  source: PopulationMember,
  marks: ReadonlyMap<number, MemberMark>,
): string {
  const [good, bad] = [source.member, member].map((one) => shortNumber(marks.get(one)?.value ?? Number.NaN))
  return `replaced by member ${source.member}'s checkpoint at ${timeAttr} ${shortNumber(source.step ?? 0)}: ${good} against ${bad}`
}

const shortNumber = (value: number): string => String(Number(value.toPrecision(6)))

/** One seed from three numbers. */
function mixed(...numbers: readonly number[]): number {
  return numbers.reduce((state, number) => {
    const bits = Math.imul((state ^ Math.floor(number)) >>> 0, 0x85ebca6b)
    return Math.imul(bits ^ (bits >>> 15), 0xc2b2ae35) ^ (bits >>> 13)
  }, 0x9e3779b9)
}
