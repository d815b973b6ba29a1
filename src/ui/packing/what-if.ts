/** A what-if: a gang that is placed among the running jobs without being submitted. Pure. */
import { printable } from '../../base/printable.ts'
import { parseMemorySize } from '../../inventory/hosts-yaml-schema.ts'
import type { BundlePlace } from '../../scheduler/jobs/job.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import {
  type Gang,
  gpusAsked,
  milliOf,
  type ResourceRequest,
  type Strategy,
  WHOLE_MILLI,
} from '../../scheduler/model/resources.ts'
import { POLICIES, type PolicyName } from '../../scheduler/policies/policies.ts'
import { OPEN_QUOTE, splitWords } from '../work-views/parse-work.ts'

export const STRATEGIES: readonly Strategy[] = ['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD']

export type WhatIf = {
  readonly request: ResourceRequest
  readonly bundles: number
  readonly strategy: Strategy
  /** What places it. */
  readonly by: WhatIfPolicy
  /** Left and Right change it. */
  readonly slider: Slider
}

/** `muster`: as the queue does; `ray`: as Ray does; otherwise each bundle by this policy of `muster simulate`. */
export type WhatIfPolicy = 'muster' | 'ray' | PolicyName

export const WHAT_IF_POLICIES: readonly WhatIfPolicy[] = ['muster', 'ray', ...(Object.keys(POLICIES) as PolicyName[])]

export const SLIDERS = ['strategy', 'policy', 'bundles'] as const
export type Slider = (typeof SLIDERS)[number]

/** `places`: by rank; undefined: it does not fit, and `why`. */
export type TryOut = {
  readonly places: readonly BundlePlace[] | undefined
  readonly why: readonly string[]
  /** What is not known of its hosts yet, and counts as enough. */
  readonly unknown?: string
  /** Waiting jobs that would start later if it ran for an hour; `toMs` undefined: it is not known when. */
  readonly later?: readonly {
    readonly job: number
    readonly name: string
    readonly fromMs: number
    readonly toMs: number | undefined
  }[]
  /** It does not fit: running jobs that would have to end for it. Undefined: not even that would help. */
  readonly victims?: readonly { readonly job: number; readonly name: string }[] | undefined
}

/** Its job number in the picture; real jobs count from 1. */
export const WHAT_IF_JOB = 0

const MOST_BUNDLES = 1000

export const OPTIONS = ['--bundles', '--cpu', '--gpu', '--memory', '--strategy'] as const

/** `--bundles 4 --gpu 8 --cpu 2 --memory 16GiB --strategy SPREAD`, as for `muster job submit`; a string says what is wrong. */
export function parseWhatIf(text: string): WhatIf | string {
  const words = splitWords(text)
  if (words === undefined) return OPEN_QUOTE
  let [cpu, bundles, memoryBytes, strategy] = [1, 1, 0, 'PACK' as Strategy]
  let gpus = { gpuCount: 0, gpuMilli: 0 }
  for (let at = 0; at < words.length; at += 2) {
    const [name = '', value] = [words[at], words[at + 1]]
    if (!(OPTIONS as readonly string[]).includes(name))
      return `${printable(name)} is not an option; a request looks like --bundles 2 --gpu 4`
    if (value === undefined) return `${name} needs a value`
    const number = Number(value)
    const isAmount = value !== '' && Number.isFinite(number) && number >= 0
    if (name === '--strategy') {
      const known = STRATEGIES.find((one) => one === value.toUpperCase())
      if (known === undefined) return `--strategy must be one of ${STRATEGIES.join(', ')}`
      strategy = known
    } else if (name === '--memory') {
      const size = parseMemorySize(value)
      if (size === undefined) return '--memory must be a size like 16GiB'
      memoryBytes = size
    } else if (name === '--bundles') {
      if (!Number.isInteger(number) || number < 1 || number > MOST_BUNDLES)
        return `--bundles must be 1 to ${MOST_BUNDLES}`
      bundles = number
    } else if (!isAmount) return `${name} must be a number, 0 or more`
    else if (name === '--cpu') cpu = number
    else {
      const asked = gpusAsked(number)
      if (typeof asked === 'string') return `--gpu ${number}: ${asked}`
      gpus = asked
    }
  }
  const request: ResourceRequest = {
    cpuMilli: milliOf(cpu, 'up'),
    memoryBytes,
    ...gpus,
  }
  return { request, bundles, strategy, by: 'muster', slider: 'policy' }
}

/** One step along a slider; lists wrap around. */
export function slide(whatIf: WhatIf, slider: Slider, by: 1 | -1): WhatIf {
  switch (slider) {
    case 'strategy':
      return { ...whatIf, strategy: step(STRATEGIES, whatIf.strategy, by) }
    case 'policy':
      return { ...whatIf, by: step(WHAT_IF_POLICIES, whatIf.by, by) }
    case 'bundles':
      return { ...whatIf, bundles: Math.max(1, Math.min(MOST_BUNDLES, whatIf.bundles + by)) }
  }
}

export function nextSlider(whatIf: WhatIf): WhatIf {
  return { ...whatIf, slider: step(SLIDERS, whatIf.slider, 1) }
}

function step<T>(list: readonly T[], from: T, by: number): T {
  return list[(list.indexOf(from) + by + list.length) % list.length] ?? from
}

export function gangOfWhatIf({ request, bundles, strategy }: WhatIf): Gang {
  return { name: '', strategy, bundles: Array.from({ length: bundles }, () => request) }
}

/** A first what-if: bundles that any host may have room for. */
export function exampleWhatIf(hosts: readonly PackedHost[]): WhatIf {
  const hasGpus = hosts.some(({ devices }) => devices.length > 0)
  const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: hasGpus ? 1 : 0, gpuMilli: hasGpus ? WHOLE_MILLI : 0 }
  return { request, bundles: 2, strategy: 'SPREAD', by: 'muster', slider: 'policy' }
}

/** The text that `parseWhatIf` reads. */
export function formatWhatIf({
  request: { cpuMilli, gpuCount, gpuMilli, memoryBytes },
  bundles,
  strategy,
}: WhatIf): string {
  const gpu = gpuCount === 0 ? '' : ` --gpu ${(gpuCount * gpuMilli) / 1000}`
  const memory = memoryBytes === 0 ? '' : ` --memory ${memoryWords(memoryBytes)}`
  return `--bundles ${bundles} --cpu ${cpuMilli / 1000}${gpu}${memory} --strategy ${strategy}`
}

/** `4 × (1 CPU + 8 GPU) SPREAD` */
export function whatIfWords({ request, bundles, strategy }: WhatIf): string {
  const gpu = request.gpuCount === 0 ? '' : ` + ${(request.gpuCount * request.gpuMilli) / 1000} GPU`
  const memory = request.memoryBytes === 0 ? '' : ` + ${memoryWords(request.memoryBytes)}`
  return `${bundles} × (${request.cpuMilli / 1000} CPU${gpu}${memory}) ${strategy}`
}

function memoryWords(bytes: number): string {
  const [unit, size] = MEMORY_UNITS.find(([, size]) => bytes % size === 0) ?? ['B', 1]
  return `${bytes / size}${unit}`
}

const MEMORY_UNITS = [
  ['TiB', 2 ** 40],
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
] as const

/** The hosts with the trial placed on them. */
export function withTrial(hosts: readonly PackedHost[], { request }: WhatIf, { places = [] }: TryOut) {
  return hosts.map((host): PackedHost => {
    const own = places.filter((place) => place.host === host.name)
    if (own.length === 0) return host
    const [cpuMilli, memoryBytes] = [request.cpuMilli * own.length, request.memoryBytes * own.length]
    const taken = own.flatMap(({ devices }) => devices)
    return {
      ...host,
      cpuUsedMilli: host.cpuUsedMilli + cpuMilli,
      memoryUsedBytes: host.memoryUsedBytes + memoryBytes,
      holdings: [...host.holdings, { job: WHAT_IF_JOB, cpuMilli, memoryBytes }],
      devices: host.devices.map((shares, device) => [
        ...shares,
        ...taken.filter((one) => one === device).map(() => ({ job: WHAT_IF_JOB, milli: request.gpuMilli })),
      ]),
    }
  })
}
