/** Writes the report of this session: Markdown and HTML in the state directory, for the user alone, and Markdown to the clipboard. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { makeOwnDirectories } from '../../base/foreign-place.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { PageContext } from '../state/console-state.ts'
import { buildReport } from './build-report.ts'
import { formatHtml, formatMarkdown } from './format-report.ts'
import type { SessionLog } from './session-log.ts'

export type ReportOptions = {
  readonly context: PageContext
  readonly log: SessionLog
  readonly environment: Readonly<Record<string, string | undefined>>
  promptOf(host: string): string | undefined
  readonly canCopy: boolean
}

export async function writeSessionReport({
  context,
  log,
  environment,
  promptOf,
  canCopy,
}: ReportOptions): Promise<void> {
  if (log.entries.length === 0) return context.notice('no report: nothing was typed or run yet')
  try {
    const report = await buildReport(log, promptOf)
    const { cluster } = context.state
    const facts = { cluster, nowMs: context.clock.now() }
    const markdown = formatMarkdown(report, facts)
    const path = writeBoth(join(stateDirectory(environment), 'reports'), facts.nowMs, {
      '.md': markdown,
      '.html': formatHtml(report, facts),
    })
    const isCopied = canCopy && context.copyText(markdown, 'of the report')
    const text = `report of ${report.sections.length} entries on ${foldHostSet(report.hosts)}: ${path}.md and .html`
    context.notice(isCopied ? `${text}, copied` : text)
    context.log('', text)
  } catch (error) {
    context.notice(`cannot write the report: ${messageOf(error)}`, 'error')
  }
}

/** Both under one new name, without an ending. */
function writeBoth(directory: string, nowMs: number, files: Readonly<Record<string, string>>): string {
  makeOwnDirectories(directory)
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '-')
  for (let count = 1; ; count += 1) {
    const path = join(directory, count === 1 ? stamp : `${stamp}-${count}`)
    try {
      for (const [ending, text] of Object.entries(files))
        writeFileSync(path + ending, text, { flag: 'wx', mode: 0o600 })
      return path
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
