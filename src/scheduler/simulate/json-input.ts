/** What the JSON files of `simulate gangs` and `simulate queue` have in common. */
import * as z from 'zod'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type HostCapacity, type ResourceRequest, WHOLE_MILLI } from '../model/resources.ts'

const GIB = 2 ** 30

export const strategy = z.enum(['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD'])

/** Of each bundle. */
export const gpuMilli = z
  .int()
  .min(0)
  .refine((milli) => milli <= WHOLE_MILLI || milli % WHOLE_MILLI === 0, {
    error: 'must be a share of one GPU (up to 1000) or whole GPUs (a multiple of 1000)',
  })

/** @throws MusterError 'configuration' with the first mistake. `what`: the file, for people. */
export function parseJson<T>(text: string, what: string, schema: z.ZodType<T>): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new MusterError('configuration', printable(`the ${what} file is not valid JSON: ${messageOf(error)}`), {
      cause: error,
    })
  }
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new MusterError('configuration', printable(`the ${what} file: ${issue?.path.join('.')}: ${issue?.message}`))
}

type Amounts = { readonly cpu: number; readonly memoryGiB: number }

const amountsOf = ({ cpu, memoryGiB }: Amounts) => ({
  cpuMilli: Math.round(cpu * 1000),
  memoryBytes: Math.round(memoryGiB * GIB),
})

export function hostOf(name: string, { gpus, ...amounts }: Amounts & { readonly gpus: number }): HostCapacity {
  return { name, ...amountsOf(amounts), gpus: Array.from({ length: gpus }, () => '') }
}

export function bundlesOf(
  count: number,
  { gpuMilli: milli, ...amounts }: Amounts & { readonly gpuMilli: number },
): readonly ResourceRequest[] {
  const gpuCount = milli === 0 ? 0 : Math.max(1, milli / WHOLE_MILLI)
  const bundle = { ...amountsOf(amounts), gpuCount, gpuMilli: Math.min(WHOLE_MILLI, milli) }
  return Array.from({ length: count }, () => bundle)
}
