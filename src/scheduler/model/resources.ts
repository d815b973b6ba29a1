/** What hosts have and what requests need, in integers: milli-CPU, bytes, milli-GPU of one device. */
import { MusterError } from '../../base/errors.ts'

/** A whole device (a GPU, or one instance of a `unit` resource). */
export const WHOLE_MILLI = 1000

/** Further digits come from binary fractions: 16.1 × 1000 is 16100.000000000002. */
const DIGITS = 12

/** Round up what is requested, round down what there is. */
export function milliOf(amount: number, rounding: 'up' | 'down'): number {
  const milli = Number((amount * WHOLE_MILLI).toPrecision(DIGITS))
  return rounding === 'up' ? Math.ceil(milli) : Math.floor(milli)
}

/** The GPUs that a person asks for, or why that is not possible. A share is never rounded up, so that three thirds fit on one GPU. */
export function gpusAsked(amount: number): Pick<ResourceRequest, 'gpuCount' | 'gpuMilli'> | string {
  if (amount > 1 && !Number.isInteger(amount)) return 'more than one GPU must be a whole number'
  const [less, more] = [milliOf(amount, 'down'), milliOf(amount, 'up')]
  if (amount > 0 && less === 0) return 'a share of a GPU is at least 0.001'
  if (less !== more)
    return `a share of a GPU has at most three decimals: write ${less / WHOLE_MILLI} or ${more / WHOLE_MILLI}`
  return { gpuCount: Math.ceil(amount), gpuMilli: Math.min(less, WHOLE_MILLI) }
}

/** `pool`: one amount that is divided freely. `unit`: instances; a share lives on one of them. */
export type CustomCapacity =
  | { readonly kind: 'pool'; readonly amount: number }
  | { readonly kind: 'unit'; readonly count: number }

export type HostCapacity = {
  readonly name: string
  readonly cpuMilli: number
  readonly memoryBytes: number
  /** The model of each GPU in device order; `''`: unknown. */
  readonly gpus?: readonly string[]
  /** How many GPUs hosts.yaml declares, if the host has only those in `gpus`. */
  readonly gpusDeclared?: number | undefined
  readonly custom?: Readonly<Record<string, CustomCapacity>>
  readonly labels?: Readonly<Record<string, string>>
  /** Only requests that tolerate all of them may run here. */
  readonly taints?: readonly string[]
  /** Running jobs stay, nothing new comes. */
  readonly isDrained?: boolean
}

/** A condition on a label. The label `host` is every host's own name. */
export type Selector =
  | { readonly label: string; readonly is: 'in' | 'not-in'; readonly values: readonly string[] }
  | { readonly label: string; readonly is: 'present' | 'absent' }

/** What one bundle needs, all of it on one host. */
export type ResourceRequest = {
  readonly cpuMilli: number
  readonly memoryBytes: number
  readonly gpuCount: number
  /** Of each GPU: 1–1000; below 1000 only with `gpuCount` 1. Ignored when `gpuCount` is 0. */
  readonly gpuMilli: number
  /** Acceptable GPU models; empty: any. */
  readonly gpuModels?: readonly string[]
  /** `pool`: the amount. `unit`: milli of one instance (1–1000), or whole instances (a multiple of 1000). */
  readonly custom?: Readonly<Record<string, number>>
  /** All of them must hold. */
  readonly selectors?: readonly Selector[]
  /** The more of them hold, the better. */
  readonly preferences?: readonly Selector[]
  readonly tolerates?: readonly string[]
}

/** @throws MusterError 'usage' for an invalid amount, or a share of several GPUs. */
export function checkRequest(request: ResourceRequest): void {
  const { cpuMilli, memoryBytes, gpuCount, gpuMilli, custom = {} } = request
  for (const [name, amount] of Object.entries({ cpuMilli, memoryBytes, gpuCount, ...custom }))
    if (!Number.isSafeInteger(amount) || amount < 0)
      throw wrong(`${name} is ${amount}: it must be a whole number from 0`)
  if (gpuCount === 0) return
  if (!Number.isInteger(gpuMilli) || gpuMilli < 1 || gpuMilli > WHOLE_MILLI)
    throw wrong(`the GPU share is ${gpuMilli} milli: it must be 1 to ${WHOLE_MILLI}`)
  if (gpuCount > 1 && gpuMilli !== WHOLE_MILLI)
    throw wrong(`${gpuCount} GPUs of ${gpuMilli} milli each: only a single GPU can be shared`)
}

/** @throws MusterError 'usage' for an invalid amount. */
export function checkHost(host: HostCapacity): void {
  const amounts = Object.entries(host.custom ?? {}).map(([name, capacity]): [string, number] => [
    name,
    capacity.kind === 'pool' ? capacity.amount : capacity.count,
  ])
  for (const [name, amount] of [...amounts, ['cpuMilli', host.cpuMilli], ['memoryBytes', host.memoryBytes]] as const)
    if (!Number.isSafeInteger(amount) || amount < 0)
      throw wrong(`${host.name}: ${name} is ${amount}: it must be a whole number from 0`)
}

export function holds(selector: Selector, host: HostCapacity): boolean {
  const { label } = selector
  const value =
    label === 'host' ? host.name : Object.hasOwn(host.labels ?? {}, label) ? host.labels?.[label] : undefined
  switch (selector.is) {
    case 'present':
      return value !== undefined
    case 'absent':
      return value === undefined
    case 'in':
      return value !== undefined && selector.values.includes(value)
    case 'not-in':
      return value === undefined || !selector.values.includes(value)
  }
}

function wrong(sentence: string): MusterError {
  return new MusterError('usage', sentence)
}

/** As in Ray: PACK and SPREAD are preferences, the STRICT ones are conditions. */
export type Strategy = 'PACK' | 'SPREAD' | 'STRICT_PACK' | 'STRICT_SPREAD'

export type Gang = {
  readonly name: string
  readonly bundles: readonly ResourceRequest[]
  readonly strategy: Strategy
  readonly maxBundlesPerHost?: number
}
