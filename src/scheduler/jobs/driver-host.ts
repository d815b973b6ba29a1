import type { HostCapacity } from '../model/resources.ts'

/** A host that runs jobs, as hosts.yaml declares it. */
export type DriverHost = {
  readonly name: string
  /** As declared, else its name. */
  readonly address: string
  /** As declared; undefined: asked of the host. */
  readonly cpuMilli?: number
  readonly memoryBytes?: number
  readonly gpuCount: number
  readonly labels: Readonly<Record<string, string>>
  readonly custom?: HostCapacity['custom']
}

/** Jobs get no more GPUs than the host has. `found`: how many it says that it has; undefined: it cannot tell. */
export function gpusOf({ gpuCount }: Pick<DriverHost, 'gpuCount'>, found: number | undefined) {
  const isLess = found !== undefined && found < gpuCount
  return {
    gpus: Array.from({ length: isLess ? found : gpuCount }, () => ''),
    gpusDeclared: isLess ? gpuCount : undefined,
  }
}

/** How many GPUs the host has, if it has fewer than declared. */
export function foundGpus(host: HostCapacity | undefined): number | undefined {
  return host?.gpusDeclared === undefined ? undefined : host.gpus?.length
}
