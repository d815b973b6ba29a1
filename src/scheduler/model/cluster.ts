/**
 * What is free on which device of which host. A host's number is its index in the list that the cluster was made from.
 * Policies choose spots; `take` refuses what does not fit.
 */
import { getOrMake } from '../../base/collections.ts'
import { MusterError } from '../../base/errors.ts'
import { CustomInstances } from './custom-instances.ts'
import { checkHost, checkRequest, type HostCapacity, holds, type ResourceRequest, WHOLE_MILLI } from './resources.ts'
import { type Shape, ShapeTable, shapeKey, tolerates } from './shape.ts'

/** Where a request goes: a host and its devices, by their numbers within the host. */
export type Spot = { readonly host: number; readonly devices: readonly number[] }

/** A spot that is taken; `release` gives it back. */
export type Placement = Spot & {
  readonly shape: Shape
  /** Which instances of custom unit resources, in the order of `shape.custom`. */
  readonly instances: readonly (readonly number[])[]
}

/** Called after each placement is taken, and after each is released or undone. */
type Watcher = (placement: Placement, isTake: boolean) => void

type Change = { readonly isTake: boolean; readonly placement: Placement }

const NO_INSTANCES: readonly (readonly number[])[] = []

export class Cluster {
  readonly hosts: readonly HostCapacity[]
  /** GPU models by number. */
  readonly models: readonly string[]
  readonly cpuLeftMilli: Int32Array
  /** Bytes; integers below 2^53. */
  readonly memoryLeftBytes: Float64Array
  /** Host h has the devices `deviceStart[h]` up to but not including `deviceStart[h + 1]`. */
  readonly deviceStart: Int32Array
  readonly deviceLeftMilli: Int32Array
  readonly deviceModel: Uint16Array
  /** By host: milli-GPU free on all of its devices, and devices of which nothing is taken. */
  readonly gpuLeftMilli: Int32Array
  readonly idleDevices: Int32Array
  /** By host: `changeCount` before its last change; -1 while there was none. */
  readonly lastChange: Int32Array
  /** The same for its last change that may have freed something. */
  readonly lastGain: Int32Array
  /** By host: 1 while it takes nothing new. */
  readonly isClosed: Uint8Array
  readonly custom = new Map<string, CustomInstances>()

  #shapes = new ShapeTable()
  readonly #hostsByModels = new Map<string, Uint8Array>()
  /** Hosts in the order of their last change, as a doubly linked list; -1 at the ends. */
  readonly #changedBefore: Int32Array
  readonly #changedAfter: Int32Array
  #changedLast = -1
  readonly #live = new Set<Placement>()
  readonly #watchers: Watcher[] = []
  #changeCount = 0
  #journal: Change[] | undefined
  #usedGpuMilli = 0
  #isScratch = false
  readonly #hasTaints: boolean
  readonly totalGpuMilli: number

  /** @throws MusterError 'usage' when an amount is invalid, or two hosts have the same name. */
  constructor(hosts: readonly HostCapacity[]) {
    hosts.forEach(checkHost)
    if (new Set(hosts.map((host) => host.name)).size < hosts.length)
      throw new MusterError('usage', 'two hosts of the cluster have the same name')
    this.hosts = hosts
    this.#hasTaints = hosts.some(({ taints = [] }) => taints.length > 0)
    this.models = [...new Set(hosts.flatMap((host) => host.gpus ?? []))]
    this.cpuLeftMilli = Int32Array.from(hosts, (host) => host.cpuMilli)
    this.memoryLeftBytes = Float64Array.from(hosts, (host) => host.memoryBytes)
    this.isClosed = Uint8Array.from(hosts, (host) => (host.isDrained ? 1 : 0))
    this.deviceStart = new Int32Array(hosts.length + 1)
    const numbers = new Map(this.models.map((model, number) => [model, number]))
    const devices: number[] = []
    hosts.forEach((host, index) => {
      for (const model of host.gpus ?? []) devices.push(numbers.get(model) ?? 0)
      this.deviceStart[index + 1] = devices.length
      for (const [name, capacity] of Object.entries(host.custom ?? {})) {
        getOrMake(this.custom, name, () => new CustomInstances()).add(index, capacity)
      }
    })
    this.deviceModel = Uint16Array.from(devices)
    this.deviceLeftMilli = new Int32Array(devices.length).fill(WHOLE_MILLI)
    this.idleDevices = Int32Array.from(hosts, (host) => host.gpus?.length ?? 0)
    this.gpuLeftMilli = this.idleDevices.map((count) => count * WHOLE_MILLI)
    this.lastChange = new Int32Array(hosts.length).fill(-1)
    this.lastGain = new Int32Array(hosts.length).fill(-1)
    this.totalGpuMilli = devices.length * WHOLE_MILLI
    this.#changedBefore = new Int32Array(hosts.length).fill(-1)
    this.#changedAfter = new Int32Array(hosts.length).fill(-1)
  }

  get hostCount(): number {
    return this.hosts.length
  }

  get usedGpuMilli(): number {
    return this.#usedGpuMilli
  }

  get placementCount(): number {
    return this.#live.size
  }

  /** Oldest first. */
  placements(): IterableIterator<Placement> {
    return this.#live.values()
  }

  /** @throws MusterError 'usage' when the request contradicts itself. */
  shapeOf(request: ResourceRequest): Shape {
    const known = this.#shapes.find(request)
    if (known) return known
    checkRequest(request)
    const shape = this.#makeShape(request)
    this.#shapes.add(shape)
    return shape
  }

  /**
   * Checks amounts and devices alone, so that running jobs can be entered on a host that is drained now.
   * @throws MusterError 'internal' when the spot does not hold the shape: nothing is ever over-committed.
   */
  take(shape: Shape, spot: Spot): Placement {
    const { host, devices } = spot
    const first = this.deviceStart[host] as number
    if (!this.holdsOn(shape, spot)) {
      const name = this.hosts[host]?.name ?? 'no host'
      throw new MusterError(
        'internal',
        `a request was sent to ${name}, which does not hold it: ${shapeKey(shape.request)}`,
      )
    }
    const instances =
      shape.custom.length === 0
        ? NO_INSTANCES
        : shape.custom.map(({ name, amount }) => this.custom.get(name)?.choose(host, amount) ?? [])
    const placement: Placement = { host, devices, shape, instances }
    this.#apply(placement, first, -1)
    if (!this.#isScratch) this.#live.add(placement)
    this.#journal?.push({ isTake: true, placement })
    return placement
  }

  /** Whether `take` would take it. */
  holdsOn(shape: Shape, spot: Spot): boolean {
    return this.holdsAmounts(shape, spot.host) && this.#holdsDevices(shape, spot)
  }

  /** @throws MusterError 'internal' when it was released before. */
  release(placement: Placement): void {
    if (!this.#isScratch && !this.#live.delete(placement))
      throw new MusterError('internal', 'a placement was released twice')
    this.#apply(placement, this.deviceStart[placement.host] as number, 1)
    this.#journal?.push({ isTake: false, placement })
  }

  /** A scratch cluster with the same free amounts and shapes, in which placements of this one can be released. */
  copy(): Cluster {
    const twin = new Cluster(this.hosts)
    twin.#isScratch = true
    twin.#shapes = this.#shapes
    twin.cpuLeftMilli.set(this.cpuLeftMilli)
    twin.memoryLeftBytes.set(this.memoryLeftBytes)
    twin.deviceLeftMilli.set(this.deviceLeftMilli)
    twin.gpuLeftMilli.set(this.gpuLeftMilli)
    twin.idleDevices.set(this.idleDevices)
    twin.isClosed.set(this.isClosed)
    for (const [name, instances] of this.custom) twin.custom.get(name)?.copyFrom(instances)
    twin.#usedGpuMilli = this.#usedGpuMilli
    return twin
  }

  /** Reduces each free amount of a scratch cluster to that of the other one, if that is smaller. */
  keepLeast(other: Cluster): void {
    if (!this.#isScratch) throw new MusterError('internal', 'only a copy of a cluster may be narrowed')
    for (let host = 0; host < this.hostCount; host++) {
      this.cpuLeftMilli[host] = Math.min(this.cpuLeftMilli[host] as number, other.cpuLeftMilli[host] as number)
      this.memoryLeftBytes[host] = Math.min(this.memoryLeftBytes[host] as number, other.memoryLeftBytes[host] as number)
      let left = 0
      let idle = 0
      for (let device = this.deviceStart[host] as number; device < (this.deviceStart[host + 1] as number); device++) {
        const least = Math.min(this.deviceLeftMilli[device] as number, other.deviceLeftMilli[device] as number)
        this.deviceLeftMilli[device] = least
        left += least
        if (least === WHOLE_MILLI) idle++
      }
      this.#usedGpuMilli += (this.gpuLeftMilli[host] as number) - left
      this.gpuLeftMilli[host] = left
      this.idleDevices[host] = idle
      this.touch(host)
    }
    for (const [name, instances] of this.custom) {
      const others = other.custom.get(name)
      if (others) instances.keepLeast(others)
    }
  }

  /** Reduces the free cores of a host in a scratch cluster. */
  withholdCpu(host: number, cpuMilli: number): void {
    if (!this.#isScratch) throw new MusterError('internal', 'only a copy of a cluster may be narrowed')
    this.cpuLeftMilli[host] = Math.max(0, (this.cpuLeftMilli[host] as number) - cpuMilli)
    this.touch(host)
  }

  close(host: number, isClosed: boolean): void {
    this.isClosed[host] = isClosed ? 1 : 0
    if (!isClosed) this.lastGain[host] = this.#changeCount
    this.touch(host)
  }

  /** Runs `work` and undoes what it took and released unless it returns a value. Does not nest. */
  attempt<T>(work: () => T | undefined): T | undefined {
    if (this.#journal) throw new MusterError('internal', 'an attempt within an attempt')
    const journal: Change[] = []
    this.#journal = journal
    let result: T | undefined
    try {
      result = work()
      return result
    } finally {
      this.#journal = undefined
      if (result === undefined) this.#undo(journal)
    }
  }

  watch(watcher: Watcher): void {
    this.#watchers.push(watcher)
  }

  /** A host has changed since count n when its `lastChange` is at least n. */
  get changeCount(): number {
    return this.#changeCount
  }

  /** -1 while none did. */
  get changedLast(): number {
    return this.#changedLast
  }

  /** The host that changed last before this one; -1: none. */
  changedBefore(host: number): number {
    return this.#changedBefore[host] as number
  }

  #makeShape(request: ResourceRequest): Shape {
    const { gpuCount, gpuModels = [], selectors = [], preferences = [] } = request
    const isAny = gpuCount === 0 || gpuModels.length === 0
    const takesModel = Uint8Array.from(this.models, (model) => (isAny || gpuModels.includes(model) ? 1 : 0))
    const hasModel = this.#hostsWith(takesModel, isAny)
    const allows = (host: HostCapacity) =>
      tolerates(request, host) && selectors.every((selector) => holds(selector, host))
    const allowsAll = selectors.length === 0 && !this.#hasTaints
    const allowedOn = allowsAll
      ? hasModel
      : hasModel.map((has, host) => (has === 1 && allows(this.hosts[host] as HostCapacity) ? 1 : 0))
    return {
      id: this.#shapes.size,
      request,
      cpuMilli: request.cpuMilli,
      memoryBytes: request.memoryBytes,
      gpuCount,
      gpuMilli: gpuCount === 0 ? 0 : request.gpuMilli,
      takesModel,
      takesAnyModel: isAny,
      allowedOn,
      custom: Object.entries(request.custom ?? {}).flatMap(([name, amount]) =>
        amount === 0 ? [] : [{ name, amount }],
      ),
      preferredOn:
        preferences.length === 0
          ? undefined
          : Uint8Array.from(this.hosts, (host) => preferences.filter((selector) => holds(selector, host)).length),
    }
  }

  /** By host: 1 where the model of some device is acceptable. Cached, as there are few models. */
  #hostsWith(takesModel: Uint8Array, isAny: boolean): Uint8Array {
    return getOrMake(this.#hostsByModels, isAny ? '' : `models ${takesModel.join('')}`, () => {
      const hosts = new Uint8Array(this.hostCount).fill(isAny ? 1 : 0)
      for (let host = 0; !isAny && host < hosts.length; host++)
        for (let device = this.deviceStart[host] as number; device < (this.deviceStart[host + 1] as number); device++)
          if (takesModel[this.deviceModel[device] as number] === 1) hosts[host] = 1
      return hosts
    })
  }

  /** Whether CPU, memory and custom resources suffice. */
  holdsAmounts(shape: Shape, host: number): boolean {
    if (!((this.cpuLeftMilli[host] as number) >= shape.cpuMilli)) return false
    if ((this.memoryLeftBytes[host] as number) < shape.memoryBytes) return false
    for (const { name, amount } of shape.custom) if (!this.custom.get(name)?.fits(host, amount)) return false
    return true
  }

  #holdsDevices(shape: Shape, { host, devices }: Spot): boolean {
    if (devices.length !== shape.gpuCount) return false
    const first = this.deviceStart[host] as number
    const end = this.deviceStart[host + 1] as number
    for (let index = 0; index < devices.length; index++) {
      const device = first + (devices[index] as number)
      if (!(device >= first && device < end)) return false
      if ((this.deviceLeftMilli[device] as number) < shape.gpuMilli) return false
      if (shape.takesModel[this.deviceModel[device] as number] !== 1) return false
      if (devices.indexOf(devices[index] as number) !== index) return false
    }
    return true
  }

  #apply(placement: Placement, first: number, sign: 1 | -1): void {
    const { host, devices, shape, instances } = placement
    this.cpuLeftMilli[host] = (this.cpuLeftMilli[host] as number) + sign * shape.cpuMilli
    this.memoryLeftBytes[host] = (this.memoryLeftBytes[host] as number) + sign * shape.memoryBytes
    for (let index = 0; index < devices.length; index++) {
      const device = first + (devices[index] as number)
      const before = this.deviceLeftMilli[device] as number
      const after = before + sign * shape.gpuMilli
      this.deviceLeftMilli[device] = after
      if (before === WHOLE_MILLI || after === WHOLE_MILLI)
        this.idleDevices[host] = (this.idleDevices[host] as number) + sign
    }
    this.gpuLeftMilli[host] = (this.gpuLeftMilli[host] as number) + sign * shape.gpuCount * shape.gpuMilli
    for (let index = 0; index < instances.length; index++) {
      const custom = shape.custom[index]
      if (custom) this.custom.get(custom.name)?.apply(host, instances[index] ?? [], sign * custom.amount)
    }
    this.#usedGpuMilli -= sign * shape.gpuCount * shape.gpuMilli
    if (sign > 0) this.lastGain[host] = this.#changeCount
    this.touch(host)
    for (const watcher of this.#watchers) watcher(placement, sign < 0)
  }

  #undo(journal: readonly Change[]): void {
    for (const { isTake, placement } of journal.toReversed()) {
      if (isTake) this.#live.delete(placement)
      else this.#live.add(placement)
      this.#apply(placement, this.deviceStart[placement.host] as number, isTake ? 1 : -1)
    }
  }

  /** Marks the host as changed, also because of something that is not kept here. */
  touch(host: number): void {
    if (host !== this.#changedLast) {
      const before = this.#changedBefore[host] as number
      const after = this.#changedAfter[host] as number
      if (before >= 0) this.#changedAfter[before] = after
      if (after >= 0) this.#changedBefore[after] = before
      if (this.#changedLast >= 0) this.#changedAfter[this.#changedLast] = host
      this.#changedBefore[host] = this.#changedLast
      this.#changedAfter[host] = -1
      this.#changedLast = host
    }
    this.lastChange[host] = this.#changeCount
    this.#changeCount++
  }
}
