/** What Tab completes where a job is submitted. Pure. */
import type { Completing } from '../dialogs/dialog.ts'
import { completeHostSet, completeLastPath, completeOneOf } from '../dialogs/prompt-line.ts'

/** Before `--`: options, and hosts behind `--on`; else a path. */
export function completeSubmit(text: string, options: readonly string[]): Completing | undefined {
  const isOptions = /^\s*-/.test(text) && !/(^|\s)--\s/.test(text)
  if (!isOptions) return completeLastPath(text)
  const from = Math.max(0, text.search(/(?<=(?:^|\s)--on[\s=]\s*)\S*$/))
  if (from > 0) {
    const hosts = completeHostSet(text.slice(from))
    return hosts && { ...hosts, from: hosts.from + from }
  }
  return /(^|\s)-\S*$/.test(text) ? completeOneOf(options)(text) : completeLastPath(text)
}
