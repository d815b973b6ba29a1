/** The whole program: every verb, the console, and the words that shells ask for when they complete a line. */
import { reportOutputErrors } from './command-line/report-output-errors.ts'
import { runVerbs } from './command-line/run-verbs.ts'
import { VerbTree } from './command-line/tree.ts'
import type { CliContext, VerbTable } from './command-line/verb.ts'
import { CONSOLE } from './console/entry.ts'
import { VERBS } from './verbs.ts'

/** The first argument when a shell asks for completions. */
const COMPLETE = '--complete'

/** Runs one verb. Never throws; what went wrong is on stderr. */
export async function runProgram(
  args: readonly string[],
  context: CliContext,
  verbs: VerbTable = VERBS,
): Promise<number> {
  if (args[0] !== COMPLETE) return await runVerbs({ root: CONSOLE, verbs }, args, context)
  const { complete } = await import('./completion/complete.ts')
  const tree = new VerbTree(CONSOLE, verbs, context, async () => {})
  return await reportOutputErrors(context, () => complete(tree, args.slice(1), context))
}
