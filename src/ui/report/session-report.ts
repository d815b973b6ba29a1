/** Writes the session report: Markdown and HTML in the state directory, readable by the user alone, and Markdown to the clipboard. */
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { counted } from '../../base/counted.ts'
import { fileReason, MusterError, notKept } from '../../base/errors.ts'
import { makeOwnDirectories } from '../../base/foreign-place.ts'
import { underFreeName } from '../../base/free-name.ts'
import { shortPath } from '../../base/short-path.ts'
import { fileTimeText } from '../../base/time-text.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { PageContext } from '../state/console-state.ts'
import { buildReport } from './build-report.ts'
import { formatHtml, formatMarkdown } from './format-report.ts'
import type { RunEntry, SessionLog } from './session-log.ts'

export type ReportOptions = {
  readonly context: PageContext
  readonly log: SessionLog
  readonly unfinishedRun: Omit<RunEntry, 'kind'> | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  promptOf(host: string): string | undefined
  readonly canCopy: boolean
}

/** Never rejects: what went wrong is a notice. */
export async function writeSessionReport(options: ReportOptions): Promise<void> {
  const { context, log, unfinishedRun, environment, promptOf, canCopy } = options
  try {
    log.endKeys()
    const entries = [...log.entries, ...(unfinishedRun ? [{ kind: 'run', ...unfinishedRun } as const] : [])]
    if (entries.length === 0) return context.notice('no report: nothing was typed or run yet', 'info', 'key')
    const report = await buildReport(entries, log, promptOf)
    const { cluster } = context.state
    const facts = { cluster, nowMs: context.clock.now() }
    const markdown = formatMarkdown(report, facts)
    const isCopied = canCopy && context.copyText(markdown, 'of the report')
    const directory = join(stateDirectory(environment), 'reports')
    const texts = { '.md': markdown, '.html': formatHtml(report, facts) }
    let path: string
    try {
      path = writeBoth(directory, facts.nowMs, texts)
    } catch (error) {
      const what = isCopied ? 'report copied, but not written' : 'cannot write the report'
      // A notice has one row: the reason comes before the path.
      context.notice(`${what}: ${fileReason(error)}`, 'error')
      const reason = error instanceof MusterError ? error.message : notKept(directory, error)
      return context.log('', `${what}: ${reason}`, 'error')
    }
    // Its name is the time: the newest one. The Log has it.
    const where = `${shortPath(directory, environment)} (.md and .html)`
    context.notice(`${isCopied ? 'report copied, and written' : 'report written'}: ${where}`)
    context.log(
      '',
      `report of ${counted(report.sections.length, 'entry', 'entries')} on ${foldHostSet(report.hosts)}: ${path}.md, .html`,
    )
  } catch (error) {
    context.notice(`cannot write the report: ${fileReason(error)}`, 'error')
  }
}

/** Both under one new name, without an ending. */
function writeBoth(directory: string, nowMs: number, files: Readonly<Record<string, string>>): string {
  makeOwnDirectories(directory)
  return underFreeName(join(directory, fileTimeText(nowMs)), (path) => {
    const made: string[] = []
    try {
      for (const [ending, text] of Object.entries(files)) {
        const file = openSync(path + ending, 'wx', 0o600)
        made.push(path + ending)
        try {
          writeFileSync(file, text)
        } finally {
          closeSync(file)
        }
      }
    } catch (error) {
      for (const each of made) rmSync(each, { force: true })
      throw error
    }
    return path
  })
}
