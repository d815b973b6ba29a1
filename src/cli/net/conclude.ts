/** What `muster net pair` and `muster net nfs` print at the end. */
import { printable } from '../../base/printable.ts'
import type { TestConclusion } from '../../ops/net/kept-test.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { writeEvent } from '../output/json-lines.ts'

export function printConclusion(
  { findings, problem }: TestConclusion,
  { json }: GlobalOptions,
  context: CliContext,
): void {
  const { stdout, stderr } = context
  if (problem !== undefined) stderr.write(`muster: cannot keep the result: ${problem}\n`)
  for (const finding of findings) {
    if (json === true) writeEvent({ type: 'finding', ...finding }, context)
    else stdout.write(`${finding.gravity}  ${printable(finding.text)}\n`)
  }
}
