/**
 * The points that a study may try. A value is a text in one canonical form (`0.30` is `0.3`, `3.0` is `3`), so two points are the
 * same exactly when their keys are. Parameters may depend on the choice of an earlier one. Pure.
 */
import { type DecimalRange, decimalAt, decimalRange, isPlainDecimal } from '../../base/decimals.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'

export type Parameter = {
  readonly name: string
  /** It is part of a point only where an earlier choice has one of these values. */
  readonly when?: { readonly name: string; readonly values: readonly string[] }
} & Domain

export type Domain =
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | ({ readonly kind: 'steps' } & DecimalRange)
  /** Any number from `low` to `high`, both included. */
  | { readonly kind: 'real'; readonly low: number; readonly high: number; readonly isLog: boolean }

/** In the order in which parameters were given; a condition refers to an earlier one. */
export type Space = { readonly parameters: readonly Parameter[]; readonly significantDigits: number }

/** Canonical values by name, only of parameters that are part of the point. */
export type Point = Readonly<Record<string, string>>

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const REAL = /^-?\d{1,20}(\.\d{1,20})?(e[-+]?\d{1,3})?$/i
const MOST_VALUES = 1_000_000
const MOST_PARAMETERS = 64
const MOST_COMBINATIONS = 10_000
export const DEFAULT_DIGITS = 6

const WRONG_RANGE = {
  'not plain': 'a range needs plain numbers, such as 10 or 0.1',
  'no step': 'the step must be positive, and the first number at most the last',
  'too many': `more than ${MOST_VALUES} values`,
} as const
const FORMS = 'int:1:10, int:10:200:10, float:0.1:0.3:0.1, float:0:1, log:1e-5:1e-1 or adam,sgd'

/** `NAME=DOMAIN`. @throws MusterError 'usage' */
export function parseParameter(text: string): Parameter {
  const at = text.indexOf('=')
  const name = text.slice(0, at)
  const wrong = (why: string) => new MusterError('usage', `--param ${printable(text)}: ${why}`)
  if (at < 1 || !NAME.test(name)) throw wrong(`write it as NAME=${FORMS}`)
  // Points are plain objects, which have these names from the start.
  if (name in {}) throw wrong(`${name} is reserved: choose another name`)
  return { name, ...parseDomain(text.slice(at + 1), wrong) }
}

function parseDomain(text: string, wrong: (why: string) => MusterError): Domain {
  const [kind = '', ...parts] = text.split(':')
  if (!['int', 'float', 'log'].includes(kind) || parts.length === 0) {
    const values = text.split(',')
    if (values.some((value) => value === '' || value.length > 200)) throw wrong(`write it as ${FORMS}`)
    if (new Set(values.map(canonicalText)).size < values.length) throw wrong('duplicate value')
    return { kind: 'choice', values: values.map(canonicalText) }
  }
  if (parts.length < 2 || parts.length > 3 || (kind === 'log' && parts.length === 3))
    throw wrong(`write it as ${FORMS}`)
  if (kind === 'int' || parts.length === 3) {
    const [from = '', to = '', step = '1'] = parts
    if (kind === 'int' && parts.some((part) => part.includes('.'))) throw wrong('int needs whole numbers')
    const range = decimalRange([from, to, step], MOST_VALUES)
    if (typeof range === 'string') throw wrong(WRONG_RANGE[range])
    return { kind: 'steps', ...range }
  }
  if (!parts.every((part) => REAL.test(part))) throw wrong('it needs two numbers')
  const [low = 0, high = 0] = parts.map(Number)
  if (!(low < high) || !Number.isFinite(low) || !Number.isFinite(high))
    throw wrong('the first number must be less than the second')
  if (kind === 'log' && low <= 0) throw wrong('log needs numbers above 0')
  return { kind: 'real', low, high, isLog: kind === 'log' }
}

/** `OTHER=VALUE[,VALUE] NAME=DOMAIN`. @throws MusterError 'usage' */
export function parseCondition(text: string): Parameter {
  const [condition = '', ...rest] = text.trim().split(/\s+/)
  const at = condition.indexOf('=')
  if (at < 1 || rest.length !== 1)
    throw new MusterError('usage', `--if ${printable(text)}: write it as --if 'opt=sgd momentum=float:0:0.9'`)
  const when = {
    name: condition.slice(0, at),
    values: condition
      .slice(at + 1)
      .split(',')
      .map(canonicalText),
  }
  return { ...parseParameter(rest[0] ?? ''), when }
}

/** @throws MusterError 'usage' for names twice, and conditions that can never hold. */
export function makeSpace(parameters: readonly Parameter[], significantDigits = DEFAULT_DIGITS): Space {
  if (parameters.length === 0) throw new MusterError('usage', 'a study needs a parameter: --param NAME=…')
  if (parameters.length > MOST_PARAMETERS) throw new MusterError('usage', `more than ${MOST_PARAMETERS} parameters`)
  for (const [index, { name, when }] of parameters.entries()) {
    const earlier = parameters.slice(0, index)
    if (earlier.some((other) => other.name === name)) throw new MusterError('usage', `duplicate parameter: ${name}`)
    if (when === undefined) continue
    const other = earlier.find((one) => one.name === when.name)
    if (other?.kind !== 'choice') throw wrongCondition(name, when.name, other, parameters)
    const unknown = when.values.find((value) => !other.values.includes(value))
    if (unknown !== undefined)
      throw new MusterError('usage', `--if ${when.name}=${printable(unknown)}: ${when.name} never has this value`, {
        hint: `Its values: ${other.values.map((value) => printable(value)).join(', ')}.`,
      })
  }
  const space = { parameters, significantDigits }
  if (combinationCount(space) > MOST_COMBINATIONS)
    throw new MusterError('usage', '--if: too many combinations of choices')
  return space
}

function wrongCondition(
  name: string,
  condition: string,
  other: Parameter | undefined,
  parameters: readonly Parameter[],
): MusterError {
  const [depends, on] = [`--if: ${name} depends on ${printable(condition)}`, printable(condition)]
  if (other !== undefined)
    return new MusterError('usage', `${depends}, which is a range`, {
      hint: `A condition needs a parameter with listed values, such as --param ${on}=1,2,4.`,
    })
  return parameters.some((one) => one.name === condition)
    ? new MusterError('usage', `${depends}, which comes later`, { hint: `Put the --if of ${on} before it.` })
    : new MusterError('usage', `${depends}, and there is no such parameter`, { hint: `Add it: --param ${on}=…` })
}

/** The text that UNIQUE(study, point) compares. */
export const pointKey = (point: Point): string =>
  JSON.stringify(
    Object.keys(point)
      .sort()
      .map((name) => [name, point[name]]),
  )

const isActive = ({ when }: Parameter, point: Point): boolean =>
  when === undefined || when.values.includes(point[when.name] ?? '')

/**
 * A point from texts as people and samplers write them, in canonical form. Undefined: it is not in the space.
 * Parameters whose condition does not hold are left out.
 */
export function canonicalPoint(space: Space, raw: Readonly<Record<string, string>>): Point | undefined {
  const point: Record<string, string> = {}
  for (const parameter of space.parameters) {
    if (!isActive(parameter, point)) continue
    const value = canonicalValue(parameter, raw[parameter.name], space.significantDigits)
    if (value === undefined) return undefined
    point[parameter.name] = value
  }
  return point
}

function canonicalValue(domain: Domain, text: string | undefined, digits: number): string | undefined {
  if (text === undefined) return undefined
  if (domain.kind === 'choice') return domain.values.find((value) => value === canonicalText(text))
  if (!REAL.test(text)) return undefined
  if (domain.kind === 'real') {
    const value = Number(text)
    return value < domain.low || value > domain.high ? undefined : formatReal(domain, value, digits)
  }
  const units = Math.round((Number(text) - Number(decimalAt(domain, 0))) / stepSize(domain))
  const value = units >= 0 && units < domain.count ? stepText(domain, units) : undefined
  return value !== undefined && Math.abs(Number(value) - Number(text)) <= stepSize(domain) * 1e-6 ? value : undefined
}

const stepSize = ({ step, digits }: DecimalRange): number => Number(step) / 10 ** digits
const stepText = (range: DecimalRange, index: number): string => canonicalText(decimalAt(range, index))

/** Rounded to so many significant digits, but never out of the domain. */
function formatReal(
  { low, high }: { readonly low: number; readonly high: number },
  value: number,
  digits: number,
): string {
  const rounded = Number(value.toPrecision(digits))
  return canonicalText(String(Math.min(high, Math.max(low, rounded))))
}

/** `0.30` is `0.3`, `3.0` is `3`, `1e-3` is `0.001`; what is no number stays as it is. */
export function canonicalText(text: string): string {
  if (isPlainDecimal(text)) {
    const [whole = '', fraction = ''] = text.replace('-', '').split('.')
    const plain = `${whole.replace(/^0+(?=\d)/, '')}${fraction.replace(/0+$/, '') === '' ? '' : `.${fraction.replace(/0+$/, '')}`}`
    return text.startsWith('-') && plain !== '0' ? `-${plain}` : plain
  }
  return REAL.test(text) ? String(Number(text)) : text
}

/** How many combinations there are of the choices on which others depend. */
const combinationCount = (space: Space): number =>
  decidingOf(space).reduce((product, { values }) => product * values.length, 1)

const decidingOf = ({ parameters }: Space): readonly Extract<Parameter, { kind: 'choice' }>[] =>
  parameters.flatMap((one) =>
    one.kind === 'choice' && parameters.some(({ when }) => when?.name === one.name) ? [one] : [],
  )

const countOf = (domain: Domain): number =>
  domain.kind === 'choice' ? domain.values.length : domain.kind === 'steps' ? domain.count : Number.POSITIVE_INFINITY

/** The last parameter first. */
type Branch = { readonly chosen: Point; readonly others: readonly Parameter[]; readonly count: number }

const branches = new WeakMap<Space, readonly Branch[]>()

/** The space as branches without conditions: one for each possible combination of deciding choices. */
function branchesOf(space: Space): readonly Branch[] {
  const known = branches.get(space)
  if (known !== undefined) return known
  const deciding = decidingOf(space)
  let combinations: Point[] = [{}]
  for (const one of deciding)
    combinations = combinations.flatMap((chosen) =>
      isActive(one, chosen) ? one.values.map((value) => ({ ...chosen, [one.name]: value })) : [chosen],
    )
  const names = new Set(deciding.map(({ name }) => name))
  const made = combinations.map((chosen) => {
    const others = space.parameters.filter((one) => !names.has(one.name) && isActive(one, chosen)).toReversed()
    return { chosen, others, count: others.reduce((product, one) => product * countOf(one), 1) }
  })
  branches.set(space, made)
  return made
}

/** How many points there are; Infinity where a number may be any. */
export const sizeOf = (space: Space): number => branchesOf(space).reduce((sum, { count }) => sum + count, 0)

/** The points of a finite space by number, in the order of a grid: the last parameter changes first. */
export function pointAt(space: Space, index: number): Point | undefined {
  let left = index
  for (const { chosen, others, count } of branchesOf(space)) {
    if (left >= count) {
      left -= count
      continue
    }
    const values: Record<string, string> = { ...chosen }
    for (const one of others) {
      if (one.kind === 'real') return undefined
      const size = countOf(one)
      values[one.name] = one.kind === 'choice' ? (one.values[left % size] ?? '') : stepText(one, left % size)
      left = Math.floor(left / size)
    }
    return inOrder(space, values)
  }
  return undefined
}

const inOrder = ({ parameters }: Space, values: Point): Point =>
  Object.fromEntries(parameters.flatMap(({ name }) => (values[name] === undefined ? [] : [[name, values[name]]])))

/** A point from numbers in [0, 1), one for each parameter in its order: random ones, or those of a sequence. */
export function pointFrom(space: Space, unit: (index: number) => number): Point {
  const point: Record<string, string> = {}
  for (const [index, parameter] of space.parameters.entries())
    if (isActive(parameter, point)) point[parameter.name] = valueFrom(parameter, unit(index), space.significantDigits)
  return point
}

function valueFrom(domain: Domain, unit: number, digits: number): string {
  if (domain.kind === 'choice') return domain.values[Math.floor(unit * domain.values.length)] ?? ''
  if (domain.kind === 'steps') return stepText(domain, Math.floor(unit * domain.count))
  const { low, high, isLog } = domain
  const value = isLog ? Math.exp(Math.log(low) + unit * (Math.log(high) - Math.log(low))) : low + unit * (high - low)
  return formatReal(domain, value, digits)
}

/** Where a value lies in its domain, from 0 to 1. */
export function unitOf(domain: Domain, value: string): number {
  if (domain.kind === 'choice') return domain.values.indexOf(value) / Math.max(1, domain.values.length - 1)
  if (domain.kind === 'steps')
    return (Number(value) - Number(decimalAt(domain, 0))) / stepSize(domain) / Math.max(1, domain.count - 1)
  const { low, high, isLog } = domain
  const at = (number: number) => (isLog ? Math.log(number) : number)
  return (at(Number(value)) - at(low)) / (at(high) - at(low))
}

/** Smaller is nearer: another choice counts 1, numbers by their distance in the domain, a parameter that one lacks 1. */
export function distance(space: Space, one: Point, other: Point): number {
  let sum = 0
  for (const parameter of space.parameters) {
    const [first, second] = [one[parameter.name], other[parameter.name]]
    if (first === second) continue
    if (first === undefined || second === undefined || parameter.kind === 'choice') sum += 1
    else sum += (unitOf(parameter, first) - unitOf(parameter, second)) ** 2
  }
  return sum
}
