/** A request prepared for a cluster. Equal requests share a shape, so policies cache by `shape.id`. */
import type { HostCapacity, ResourceRequest } from './resources.ts'

export type Shape = {
  /** From 0 on, in order of first appearance. */
  readonly id: number
  readonly request: ResourceRequest
  readonly cpuMilli: number
  readonly memoryBytes: number
  readonly gpuCount: number
  /** 0 without GPUs. */
  readonly gpuMilli: number
  /** By model number: 1 where it is acceptable. */
  readonly takesModel: Uint8Array
  readonly takesAnyModel: boolean
  /** By host: 1 where labels and taints allow it and some device has an acceptable model, whatever is free. */
  readonly allowedOn: Uint8Array
  readonly custom: readonly { readonly name: string; readonly amount: number }[]
  /** By host, how many preferences hold; undefined: there are none. */
  readonly preferredOn: Uint8Array | undefined
}

/** The same text for equal requests. */
export function shapeKey(request: ResourceRequest): string {
  const { cpuMilli, memoryBytes, gpuCount, gpuMilli } = request
  const amounts = `${cpuMilli} ${memoryBytes} ${gpuCount} ${gpuCount === 0 ? 0 : gpuMilli}`
  if (isPlain(request) && !request.gpuModels?.length) return amounts
  const { gpuModels = [], custom, selectors = [], preferences = [], tolerates = [] } = request
  const sortedCustom = Object.entries(custom ?? {}).sort(([left], [right]) => (left < right ? -1 : 1))
  return `${amounts} ${JSON.stringify([gpuCount === 0 ? [] : [...gpuModels].sort(), sortedCustom, selectors, preferences, [...tolerates].sort()])}`
}

/** Whether it needs only amounts and GPU models. */
function isPlain({ custom, selectors, preferences, tolerates }: ResourceRequest): boolean {
  return custom === undefined && !selectors?.length && !preferences?.length && !tolerates?.length
}

export function tolerates(request: ResourceRequest, host: HostCapacity): boolean {
  return host.taints === undefined || host.taints.every((taint) => request.tolerates?.includes(taint) === true)
}

/** The shapes of a cluster. Nearly all need only amounts and models, and are found without building a text. */
export class ShapeTable {
  readonly #byKey = new Map<string, Shape>()
  readonly #plain = new Map<number, Shape[]>()

  get size(): number {
    return this.#byKey.size
  }

  find(request: ResourceRequest): Shape | undefined {
    if (!isPlain(request)) return this.#byKey.get(shapeKey(request))
    const { cpuMilli, memoryBytes, gpuCount } = request
    const gpuMilli = gpuCount === 0 ? 0 : request.gpuMilli
    for (const shape of this.#plain.get(hashOf(request)) ?? NO_SHAPES)
      if (
        shape.cpuMilli === cpuMilli &&
        shape.memoryBytes === memoryBytes &&
        shape.gpuCount === gpuCount &&
        shape.gpuMilli === gpuMilli &&
        (gpuCount === 0 || isSameSet(shape.request.gpuModels ?? NO_MODELS, request.gpuModels ?? NO_MODELS))
      )
        return shape
    return undefined
  }

  add(shape: Shape): void {
    this.#byKey.set(shapeKey(shape.request), shape)
    if (!isPlain(shape.request)) return
    const hash = hashOf(shape.request)
    this.#plain.set(hash, [...(this.#plain.get(hash) ?? NO_SHAPES), shape])
  }
}

const NO_SHAPES: readonly Shape[] = []
const NO_MODELS: readonly string[] = []

function isSameSet(one: readonly string[], other: readonly string[]): boolean {
  return one === other || (one.every((word) => other.includes(word)) && other.every((word) => one.includes(word)))
}

function hashOf({ cpuMilli, memoryBytes, gpuCount, gpuMilli, gpuModels = NO_MODELS }: ResourceRequest): number {
  let hash = Math.imul(cpuMilli, 0x9e3779b1) ^ Math.imul(memoryBytes / 2 ** 20, 0x85ebca6b)
  if (gpuCount === 0) return hash
  hash ^= Math.imul(gpuCount * 1024 + gpuMilli, 0xc2b2ae35)
  // The same sum in any order.
  for (let index = 0; index < gpuModels.length; index++) {
    const model = gpuModels[index] as string
    hash = (hash + Math.imul(model.length * 1024 + model.charCodeAt(model.length - 1), 0x27d4eb2f)) | 0
  }
  return hash
}
