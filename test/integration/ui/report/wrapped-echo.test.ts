/** The report of lines that wrap in their pane, or are continued, recorded on terminals of fish and zsh. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { buildReport } from '../../../../src/ui/report/build-report.ts'
import { createConsoleHarness } from '../../../unit/ui/console/console-harness.ts'

/** `>` was typed, `<` was printed; of each section the title and the output. */
type Recording = { readonly steps: readonly string[]; readonly report: readonly (readonly (string | null)[])[] }
const RECORDINGS = Object.entries(
  JSON.parse(readFileSync('test/fixtures/wrapped-echoes.json', 'utf8')) as Record<string, Recording>,
)

async function reportOf(steps: readonly string[], mostCharacters: number) {
  // A pane of 40 columns.
  const { console, print } = createConsoleHarness({ hosts: ['m1'], size: { columns: 42, rows: 30 } })
  const { sessionLog } = console
  for (const step of steps) {
    const text = step.slice(1)
    if (step.startsWith('>')) sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from(text) }], 0)
    else for (let at = 0; at < text.length; at += mostCharacters) await print('m1', text.slice(at, at + mostCharacters))
  }
  const promptOf = (host: string) => console.views.screen(host)?.textBeforeCursor()
  const { sections } = await buildReport(sessionLog.entries, sessionLog, promptOf)
  return sections.map(({ title, groups }) => [title ?? null, ...groups.flatMap(({ lines }) => lines)])
}

describe('a line that wraps', () => {
  it.each(RECORDINGS)('is no output, and not called hidden: %s', async (_, { steps, report }) => {
    expect(await reportOf(steps, 10_000)).toEqual(report)
    expect(JSON.stringify(report)).not.toContain('hunter2')
  })

  it.each(RECORDINGS)('is the same in small pieces: %s', async (_, { steps, report }) => {
    expect(await reportOf(steps, 9)).toEqual(report)
  })
})
