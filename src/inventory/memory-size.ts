/** Amounts of memory as people write them. */

const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

/** Reads `512GiB`, `1.5TB`, `1024B` or a bare number of bytes; undefined when it is none or not a whole number of bytes. */
export function parseMemorySize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?([A-Za-z]+)?$/.exec(text)
  const unit = UNITS[match?.[2] ?? 'B']
  if (!match || unit === undefined) return undefined
  const product = Number(match[1]) * unit
  // 4.1 × 10⁹ is 4099999999.9999995 in floating point.
  const bytes = Number.isInteger(product) ? product : Number(product.toPrecision(15))
  return Number.isSafeInteger(bytes) ? bytes : undefined
}
