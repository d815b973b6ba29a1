/** How a result differs from an earlier one of the same kind. Pure. */
import { timeText } from '../../base/time-text.ts'
import type { NetFinding } from './mesh/judge.ts'

/** A rate has changed if it differs by more than this part. */
export const CHANGE = 0.2
const SHOWN = 6

export type Change = {
  /** What changed, and the two values: `m1 → m2 941 Mbit/s → 112 Mbit/s`. */
  readonly words: string
  readonly hosts: readonly string[]
  /** Speed relative to the earlier result; 1: the same. */
  readonly ratio: number
}

/** `where`: appended to the note that nothing changed, such as ` on every link`. */
export function changeFindings(
  all: readonly Change[],
  timeMs: number,
  nowMs: number,
  where: string,
): readonly NetFinding[] {
  if (all.length === 0) return []
  const since = timeText(timeMs, nowMs)
  const tell = (changes: readonly Change[], isSlower: boolean): NetFinding[] => {
    if (changes.length === 0) return []
    const sorted = changes.toSorted((one, other) => (isSlower ? one.ratio - other.ratio : other.ratio - one.ratio))
    const more = sorted.length > SHOWN ? ` and ${sorted.length - SHOWN} more` : ''
    const shown = sorted.slice(0, SHOWN).map(({ words }) => words)
    const [gravity, id] = isSlower ? (['risk', 'slower'] as const) : (['note', 'faster'] as const)
    const hosts = [...new Set(changes.flatMap((change) => change.hosts))]
    return [{ gravity, id: `${id}-than-before`, hosts, text: `${id} than at ${since}: ${shown.join(', ')}${more}` }]
  }
  const slower = all.filter(({ ratio }) => ratio < 1 - CHANGE)
  const faster = all.filter(({ ratio }) => ratio > 1 / (1 - CHANGE))
  if (slower.length > 0 || faster.length > 0) return [...tell(slower, true), ...tell(faster, false)]
  const text = `as fast as at ${since}, within ${CHANGE * 100} %${where}`
  return [{ gravity: 'note', id: 'as-before', hosts: [], text }]
}
