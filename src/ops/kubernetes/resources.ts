/** Amounts of resources as Kubernetes writes them, and what a pod asks for. Pure. */
import { type JsonRecord, list, record, textOf } from '../../base/json-lines.ts'

/** By name of the resource: cores, bytes, devices. */
export type ResourceAmounts = Readonly<Record<string, number>>

const MOST_NAMES = 64

/** Whether it counts devices or parts of them, not their memory or cores. */
export const isDevice = (name: string): boolean =>
  /gpu|\/mig-/i.test(name) && !/mem|core|ratio|percent|monitoring|tile/i.test(name)

export const amountsOf = (resources: unknown): ResourceAmounts =>
  Object.fromEntries(
    Object.entries(record(resources) ?? {})
      .slice(0, MOST_NAMES)
      .map(([name, value]) => [name, quantityOf(value)]),
  )

/** As the scheduler counts them: containers and sidecars together, or the largest of the others that run before them. */
export function requestsOf(spec: JsonRecord | undefined): ResourceAmounts {
  let peak: ResourceAmounts = {}
  let running: ResourceAmounts = {}
  for (const container of list(spec?.initContainers)) {
    const own = add(running, requestOf(container.resources))
    if (container.restartPolicy === 'Always') running = own
    else peak = largest(peak, own)
  }
  for (const container of list(spec?.containers)) running = add(running, requestOf(container.resources))
  // Those of the pod as a whole replace the sums.
  return add({ ...largest(peak, running), ...requestOf(spec?.resources) }, amountsOf(spec?.overhead))
}

/** Where only a limit is given it is the request, too. */
function requestOf(resources: unknown): ResourceAmounts {
  const { limits, requests } = record(resources) ?? {}
  return { ...amountsOf(limits), ...amountsOf(requests) }
}

const combine = (one: ResourceAmounts, other: ResourceAmounts, by: (a: number, b: number) => number): ResourceAmounts =>
  Object.fromEntries(
    [...new Set([...Object.keys(one), ...Object.keys(other)])].map((name) => [
      name,
      by(one[name] ?? 0, other[name] ?? 0),
    ]),
  )

const add = (one: ResourceAmounts, other: ResourceAmounts): ResourceAmounts =>
  combine(one, other, (a, b) => Math.min(a + b, MOST_AMOUNT))
const largest = (one: ResourceAmounts, other: ResourceAmounts): ResourceAmounts => combine(one, other, Math.max)

/** 8 PiB. */
const MOST_AMOUNT = 2 ** 53
const SUFFIXES: Readonly<Record<string, number>> = { n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3 }
const POWERS = 'KMGTPE'

/** `500m`, `1.5`, `16Gi`, `1e3`; 0 for anything else. */
export function quantityOf(value: unknown): number {
  const text = typeof value === 'number' ? String(value) : textOf(value)
  const [, digits, suffix = '', exponent] =
    /^\+?(\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:([numk]|[MGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$/.exec(text) ?? []
  if (digits === undefined) return 0
  const power = POWERS.indexOf(suffix.charAt(0)) + 1
  const factor = SUFFIXES[suffix] ?? (suffix.endsWith('i') ? 1024 : 1000) ** power
  return Math.min(MOST_AMOUNT, Number(digits) * factor * 10 ** Number(exponent ?? 0))
}
