/** Reads JSON of any shape: a value of the wanted type, or nothing. */

export type JsonRecord = Readonly<Record<string, unknown>>

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function record(value: unknown): JsonRecord | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : undefined
}

export function list(value: unknown): readonly JsonRecord[] {
  const entries: readonly unknown[] = Array.isArray(value) ? value : []
  return entries.flatMap((entry): readonly JsonRecord[] => {
    const found = record(entry)
    return found === undefined ? [] : [found]
  })
}

/** Empty where it is no text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Also of a number in quotes, as Ray writes large ones. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}
