/** A console of three hosts that are played by the test, and the report that it writes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createConsoleHarness } from '../../../unit/ui/console/console-harness.ts'

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'muster-report-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return directory
}

/** `directory`: where reports are written below. */
export function harness(size = { columns: 120, rows: 40 }, directory = newDirectory()) {
  const environment = { XDG_STATE_HOME: directory }
  const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'], environment, size })
  const { print, type, fleet } = harness
  const all = ['m1', 'm2', 'm3']
  const prompts = async () => {
    for (const host of all) await print(host, `\x1b[?2004h${host}# `)
  }
  /** Types a line, which every host echoes, and prints its answer. */
  const run = async (line: string, answer: (host: string) => string) => {
    type(`${line}\r`)
    for (const host of all) await print(host, `${line}\r\n\x1b[?2004l\r${answer(host)}\x1b[?2004h${host}# `)
  }
  let isOver = false
  onTestFinished(() => {
    isOver = true
  })
  const report = async () => {
    type('\x1de')
    const folder = join(directory, 'muster/reports')
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      // A dialog may have taken the keys.
      if (isOver) throw new Error('no report was written')
      if (/^(?:report (?:copied|written)|cannot|no report)/.test(harness.console.state.notice?.text ?? '')) break
    }
    const names = readdirSync(folder)
    const read = (ending: string) =>
      readFileSync(join(folder, names.find((name) => name.endsWith(ending)) ?? ''), 'utf8')
    const notice = harness.console.state.notice?.text
    return { markdown: read('.md'), html: read('.html'), folder, names, notice }
  }
  return { ...harness, directory, prompts, run, report, print, type, fleet }
}

/** Of the entries, without their times. */
export const titlesOf = (markdown: string) => markdown.match(/^## .*$/gm)?.map((line) => line.replace(/^## \S+ /, ''))
