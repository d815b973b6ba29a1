/** Parses a run or a copy: `uptime`, `on @gpus: nvidia-smi`, `a.conf 'b c' /etc/app/`. Pure. */
import { sentenceOf } from '../../base/errors.ts'
import { hostInPath } from '../../ssh/copy/remote-path.ts'

/** `target`: a host set; undefined: the receivers. */
export type WorkRequest =
  | { readonly verb: 'run'; readonly target: string | undefined; readonly command: string }
  | {
      readonly verb: 'copy'
      readonly target: string | undefined
      readonly sources: readonly string[]
      readonly destination: string
    }

export const OPEN_QUOTE = 'unclosed quotation mark'

export type ParsedWork = WorkRequest | { readonly error: string }

const NO_FETCH = 'the console copies files only to hosts; in another terminal: muster fetch HOSTS FILES DIRECTORY'

/** A line of the palette: `run uptime`; undefined: it begins with no such verb. */
export function parseWorkLine(line: string): ParsedWork | undefined {
  if (/^\s*:?fetch(?:\s|$)/.test(line)) return { error: NO_FETCH }
  const match = /^\s*:?(?<verb>run|copy)\s(?<rest>.*)$/s.exec(line)
  const { verb, rest } = match?.groups ?? {}
  if (rest === undefined) return undefined
  return parseWork(verb === 'run' ? 'run' : 'copy', rest)
}

export function parseWork(verb: WorkRequest['verb'], text: string): ParsedWork {
  const { target, rest } = splitTarget(text)
  const example = verb === 'run' ? 'uptime' : 'app.conf /etc/app/'
  if (target === '') return { error: `add a colon after the hosts: on @gpus: ${example}` }
  if (verb === 'run') {
    const command = rest.trim()
    return command === '' ? { error: 'missing command' } : { verb, target, command }
  }
  const words = splitWords(rest)
  if (words === undefined) return { error: OPEN_QUOTE }
  const destination = words.at(-1)
  if (destination === undefined || words.length < 2)
    return { error: 'type files, then the destination: app.conf /etc/app/' }
  const wrong = hostInPath(destination)
  if (wrong !== undefined) return { error: sentenceOf(wrong) }
  return { verb, target, sources: words.slice(0, -1), destination }
}

/** An empty target: `on` without a colon. */
export function splitTarget(text: string): { readonly target: string | undefined; readonly rest: string } {
  if (!/^\s*on\s/.test(text)) return { target: undefined, rest: text }
  const match = /^\s*on\s+(?<target>[^:]*[^:\s])\s*:(?<rest>.*)$/s.exec(text)
  return { target: match?.groups?.target ?? '', rest: match?.groups?.rest ?? '' }
}

/** Words as in a shell, with quotes and backslashes only; undefined: a quote is not closed. */
export function splitWords(text: string): readonly string[] | undefined {
  const words: string[] = []
  for (let rest = text; ; ) {
    const next = takeWord(rest)
    if (next === undefined || next === 'open') return next === 'open' ? undefined : words
    words.push(next.word)
    rest = next.rest
  }
}

/** The first word and the rest as typed; undefined: none; `open`: a quote is not closed. */
export function takeWord(text: string): { readonly word: string; readonly rest: string } | 'open' | undefined {
  let word: string | undefined
  let quote = ''
  let at = text.length - text.trimStart().length
  for (; at < text.length; at += 1) {
    const character = text[at] ?? ''
    if (quote !== '' && character === quote) quote = ''
    else if (quote === '' && (character === "'" || character === '"')) {
      quote = character
      word ??= ''
    } else if (character === '\\' && quote !== "'" && at + 1 < text.length) {
      at += 1
      word = (word ?? '') + (text[at] ?? '')
    } else if (quote === '' && /\s/.test(character)) break
    else word = (word ?? '') + character
  }
  if (quote !== '') return 'open'
  return word === undefined ? undefined : { word, rest: text.slice(at) }
}
