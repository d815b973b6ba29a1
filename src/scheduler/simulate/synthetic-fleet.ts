/**
 * A fleet and gangs for measurements: hosts of a few kinds, and gangs of equal bundles with as many large ones as it takes for
 * the wanted number of gangs to fill the fleet. The same seed gives the same ones.
 */
import type { HostCapacity, ResourceRequest } from '../model/resources.ts'
import { createRandomNumbers } from '../policies/random.ts'

const GIB = 2 ** 30
/** Of the fleet's GPUs, when all the wanted gangs run. */
const LOAD = 0.85

type Weighted = { readonly weight: number }
type HostKind = Weighted & { readonly gpus: number; readonly model: string; readonly cpu: number; readonly gib: number }
type BundleKind = Weighted & { readonly count: number; readonly milli: number }

const HOSTS: readonly HostKind[] = [
  { weight: 45, gpus: 8, model: 'A100', cpu: 128, gib: 1024 },
  { weight: 30, gpus: 2, model: 'T4', cpu: 96, gib: 512 },
  { weight: 15, gpus: 4, model: 'V100', cpu: 48, gib: 384 },
  { weight: 10, gpus: 0, model: '', cpu: 64, gib: 256 },
]
const SMALL: readonly BundleKind[] = [
  { weight: 40, count: 0, milli: 0 },
  { weight: 20, count: 1, milli: 50 },
  { weight: 20, count: 1, milli: 160 },
  { weight: 20, count: 1, milli: 320 },
]
const LARGE: readonly BundleKind[] = [
  { weight: 15, count: 1, milli: 470 },
  { weight: 15, count: 1, milli: 810 },
  { weight: 56, count: 1, milli: 1000 },
  { weight: 8, count: 2, milli: 1000 },
  { weight: 4, count: 4, milli: 1000 },
  { weight: 2, count: 8, milli: 1000 },
]
const BUNDLES: readonly (Weighted & { readonly bundles: number })[] = [
  { weight: 80, bundles: 1 },
  { weight: 12, bundles: 2 },
  { weight: 6, bundles: 4 },
  { weight: 2, bundles: 8 },
]
/** Of a bundle; of a large one, per GPU. */
const CORES = [1, 1, 2, 2, 3, 4]
const GIBS = [2, 4, 4, 8, 8, 16]

export function syntheticHosts(count: number, seed: number): readonly HostCapacity[] {
  const random = createRandomNumbers(seed)
  return Array.from({ length: count }, (_, index) => {
    const kind = pick(random, HOSTS)
    const gpus = new Array<string>(kind.gpus).fill(kind.model)
    return { name: `h${index + 1}`, cpuMilli: kind.cpu * 1000, memoryBytes: kind.gib * GIB, gpus }
  })
}

/** Each call returns the bundles of another gang. */
export function createSyntheticGangs(
  hosts: readonly HostCapacity[],
  gangs: number,
  seed: number,
): () => ResourceRequest[] {
  const random = createRandomNumbers(seed)
  const gpus = hosts.reduce((sum, host) => sum + (host.gpus?.length ?? 0), 0)
  const bundles = mean(BUNDLES, (choice) => choice.bundles)
  const small = bundles * mean(SMALL, meanGpus)
  const large = bundles * mean(LARGE, meanGpus)
  const partLarge = Math.min(1, Math.max(0, ((LOAD * gpus) / gangs - small) / (large - small)))
  return () => {
    const { count, milli } = pick(random, random() < partLarge ? LARGE : SMALL)
    const times = Math.max(1, count)
    const request: ResourceRequest = {
      cpuMilli: 1000 * times * (CORES[Math.floor(random() * CORES.length)] ?? 1),
      memoryBytes: GIB * times * (GIBS[Math.floor(random() * GIBS.length)] ?? 1),
      gpuCount: count,
      gpuMilli: milli,
    }
    return new Array<ResourceRequest>(pick(random, BUNDLES).bundles).fill(request)
  }
}

function meanGpus({ count, milli }: BundleKind): number {
  return (count * milli) / 1000
}

function mean<T extends Weighted>(choices: readonly T[], weigh: (choice: T) => number): number {
  const weights = choices.reduce((sum, { weight }) => sum + weight, 0)
  return choices.reduce((sum, choice) => sum + choice.weight * weigh(choice), 0) / weights
}

function pick<T extends Weighted>(random: () => number, choices: readonly T[]): T {
  let rest = random() * choices.reduce((sum, { weight }) => sum + weight, 0)
  for (const choice of choices) {
    rest -= choice.weight
    if (rest < 0) return choice
  }
  return choices.at(-1) as T
}
