/** Parses a line of the palette or of the prompt: `8265`, `on @gpus: 9100`, `m8 -R 9000:localhost:80`. Pure. */
import { type ForwardWords, forwardWords, isDashboard } from '../../ssh/forward/plan-forwards.ts'
import { OPEN_QUOTE, splitTarget, splitWords } from '../work-views/parse-work.ts'

/** `target`: a host set; undefined: the focused host, or where a dashboard is known to be. */
export type ParsedForward =
  | { readonly target: string | undefined; readonly words: ForwardWords }
  | { readonly error: string }

/** Undefined: not a line for forwards. */
export function parseForwardLine(line: string): ParsedForward | undefined {
  const rest = /^\s*:?forward\s(.*)$/s.exec(line)?.[1]
  return rest === undefined ? undefined : parseForward(rest)
}

export function parseForward(text: string): ParsedForward {
  const { target, rest } = splitTarget(text)
  if (target === '') return { error: 'add a colon after the hosts: on @gpus: 8265' }
  const words = splitWords(rest)
  if (words === undefined) return { error: OPEN_QUOTE }
  const [first = '', ...others] = words
  // As after `muster forward`.
  if (target === undefined && others.length > 0 && isTarget(first))
    return { target: first, words: forwardWords(others) }
  return { target, words: forwardWords(words) }
}

const isTarget = (word: string): boolean => /^[^\d[*:-]/.test(word) && !isDashboard(word)
