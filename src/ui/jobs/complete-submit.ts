/** What Tab completes where a job is submitted. Pure. */
import type { Completing } from '../dialogs/dialog.ts'
import { completeHostSet, completeLastPath, completeOneOf } from '../dialogs/prompt-line.ts'
import type { SubmitWords } from './queue-view.ts'

/** Before `--`: options and their values, hosts behind `--on`; else a path. */
export function completeSubmit(text: string, { options, values }: SubmitWords): Completing | undefined {
  const isOptions = /^\s*-/.test(text) && !/(^|\s)--\s/.test(text)
  if (!isOptions) return completeLastPath(text)
  const from = Math.max(0, text.search(/(?<=(?:^|\s)--on[\s=]\s*)\S*$/))
  if (from > 0) {
    const hosts = completeHostSet(text.slice(from))
    return hosts && { ...hosts, from: hosts.from + from }
  }
  const [, option = '', given = '', word = ''] = /(?:^|\s)(--[a-z-]+)(?:=|\s+)(\S*,)?([^\s,]*)$/.exec(text) ?? []
  const known = Object.hasOwn(values, option)
    ? values[option]?.filter((value) => !given.split(',').includes(value))
    : undefined
  if (known !== undefined) return { from: text.length - word.length, word, kind: known }
  return /(^|\s)-\S*$/.test(text) ? completeOneOf(options)(text) : completeLastPath(text)
}
