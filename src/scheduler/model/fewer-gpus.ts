/** Hosts with fewer GPUs than hosts.yaml declares, in words. */
import { counted } from '../../base/counted.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { HostCapacity } from './resources.ts'

type Counts = Pick<HostCapacity, 'name' | 'gpusDeclared'> & { readonly gpus?: readonly unknown[] }

/** `has 1 GPU, but 11 are declared`; undefined: the host has no fewer, or cannot tell. */
export function fewerGpus({ gpus = [], gpusDeclared }: Omit<Counts, 'name'>): string | undefined {
  return gpusDeclared === undefined ? undefined : `has ${counted(gpus.length, 'GPU')}, but ${gpusDeclared} are declared`
}

/** One line for all hosts with the same numbers. */
export function fewerGpusLines(hosts: readonly Counts[]): readonly string[] {
  const byText = Map.groupBy(hosts, fewerGpus)
  return [...byText].flatMap(([text, own]) =>
    text === undefined ? [] : [`${foldHostSet(own.map(({ name }) => name))}: ${text}`],
  )
}
