/** Runs vitest as a program and ends with one plain line, `N passed, N failed`, counted from its results. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** What of vitest's JSON report is read. A file that could not be loaded has no tests but a failed suite. */
export type TestReport = {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numFailedTestSuites: number
}

/** Returns the exit code: 0 only when something ran and nothing failed. */
export async function vitest(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-report-'))
  const file = join(directory, 'report.json')
  const program = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  try {
    const child = spawn(process.execPath, [program, 'run', ...reporters, ...args], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const [code] = await once(child, 'close')
    const { line, isGood } = formatReport(parseReport(readFileSync(file, 'utf8')))
    process.stdout.write(`${line}\n`)
    return code === 0 && isGood ? 0 : 1
  } catch (error) {
    process.stderr.write(`no results could be read: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

export function parseReport(text: string): TestReport {
  const report = JSON.parse(text) as Record<string, unknown>
  const count = (key: string): number => {
    const value = report[key]
    if (typeof value !== 'number') throw new Error(`the report has no ${key}`)
    return value
  }
  return {
    numPassedTests: count('numPassedTests'),
    numFailedTests: count('numFailedTests'),
    numFailedTestSuites: count('numFailedTestSuites'),
  }
}

export function formatReport(report: TestReport): { line: string; isGood: boolean } {
  const failed = Math.max(report.numFailedTests, report.numFailedTestSuites > 0 ? 1 : 0)
  return {
    line: `${report.numPassedTests} passed, ${failed} failed`,
    isGood: failed === 0 && report.numPassedTests > 0,
  }
}
