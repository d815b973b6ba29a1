/** The measurement of a pair or an NFS mount in words: failures, and at the end the results, findings and changes. Pure. */
import { printable } from '../../base/printable.ts'
import { testSummary } from '../../ops/net/format-test.ts'
import { styleOf, type Theme } from '../compositor/scene.ts'
import { type Row, wrapRows } from '../rows/rows-pane.ts'
import { wrapFinding } from './mesh-panes.ts'
import type { LiveRun } from './network-view.ts'

export function conclusionRows(
  { record, conclusion }: LiveRun<{ readonly failures: readonly string[] }>,
  columns: number,
  theme: Theme,
): readonly Row[] {
  const say = (colour: Theme['text']) => (text: string) => wrapRows(printable(text), columns, ' ', styleOf(colour))
  const { test, findings = [], problem } = conclusion ?? {}
  return [
    ...record.failures.flatMap(say(theme.danger)),
    ...(test === undefined ? [] : testSummary(test).flatMap(say(theme.text))),
    ...findings.flatMap((finding) => wrapFinding(finding, columns, theme)),
    ...(problem === undefined ? [] : say(theme.danger)(`cannot keep the result: ${problem}`)),
  ]
}
