/** Options of a framework by its own names, the others as it has them by default. */
import type { Framework, Values } from '../../src/scheduler/plans/framework.ts'

export function valuesOf({ words }: Framework, values: Values): Values {
  const defaults = Object.fromEntries(Object.entries(words).map(([word, { byDefault }]) => [word, byDefault]))
  const wrong = Object.keys(values).find((word) => !Object.hasOwn(words, word))
  if (wrong !== undefined) throw new Error(`unknown word: ${wrong}`)
  return { ...defaults, ...values }
}
