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
