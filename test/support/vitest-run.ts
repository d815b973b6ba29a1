/**
 * Runs vitest as a program and ends with one plain line, `N passed, N failed`, counted from its results. On request the
 * files that failed run once more by themselves: what passes then is named as flaky, what fails twice fails the run. The last
 * line is appended to the file MUSTER_TOTALS, too, if that is set.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** `state` as vitest names it: `passed`, `failed`, `skipped`, …; `missing`: the file was never run. */
export type FileResult = {
  readonly path: string
  readonly state: string
  readonly tests: readonly { readonly name: string; readonly state: string }[]
}

/** Stray errors happened outside of any test; `path` is the file that ran then. */
export type Results = {
  readonly files: readonly FileResult[]
  readonly strayErrors: readonly { readonly message: string; readonly path?: string }[]
}

/** More files than this do not fail by chance. */
const MAX_REPEATED_FILES = 8

/** Returns the exit code: 0 only when something ran and nothing failed in the end. */
export async function vitest(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  { repeatsFailed = false } = {},
): Promise<number> {
  try {
    const first = await runOnce(args, environment)
    const again = repeatsFailed ? filesToRepeat(first.results) : []
    let { code, results } = first
    if (again.length > 0) {
      process.stdout.write(`\nThese files failed and run once more: ${again.join(' ')}\n`)
      const second = await runOnce(again, environment)
      code = second.code
      results = mergeRuns(first.results, second.results)
      for (const line of flakyLines(first.results, results)) process.stdout.write(`${line}\n`)
    }
    const { line, isGood } = formatResults(results)
    process.stdout.write(`${line}\n`)
    const totals = process.env.MUSTER_TOTALS
    if (totals !== undefined) appendFileSync(totals, `${line}\n`)
    return code === 0 && isGood ? 0 : 1
  } catch (error) {
    process.stderr.write(`no results could be read: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}

async function runOnce(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<{ code: number | null; results: Results }> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-results-'))
  const file = join(directory, 'results.json')
  const program = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
  const reporters = ['--reporter=default', `--reporter=${join(import.meta.dirname, 'results-reporter.ts')}`]
  try {
    const child = spawn(process.execPath, [program, 'run', ...reporters, ...args], {
      env: { ...process.env, ...environment, MUSTER_TEST_RESULTS: file },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, results: JSON.parse(readFileSync(file, 'utf8')) as Results }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Files of which another run may tell more; none when an error belongs to no file, or when too many failed. */
export function filesToRepeat({ files, strayErrors }: Results): string[] {
  if (strayErrors.some(({ path }) => path === undefined)) return []
  const paths = new Set([
    ...files.filter((file) => !isFine(file)).map(({ path }) => path),
    ...strayErrors.flatMap(({ path }) => path ?? []),
  ])
  return paths.size > MAX_REPEATED_FILES ? [] : [...paths]
}

/** The first run, with what the second one says of the files that it repeated. */
export function mergeRuns(first: Results, second: Results): Results {
  const repeated = new Map(second.files.map((file) => [file.path, file]))
  // A file that should have been repeated and was not keeps its failure, and its errors.
  const files = first.files.map((file) => repeated.get(file.path) ?? file)
  const kept = first.strayErrors.filter(({ path }) => path === undefined || !repeated.has(path))
  return { files, strayErrors: [...kept, ...second.strayErrors] }
}

/** One line for each test that failed at first and passed in the end, or for its file when no test of it had failed. */
export function flakyLines(first: Results, merged: Results): string[] {
  const final = new Map(merged.files.map((file) => [file.path, file]))
  const isStray = (path: string) => first.strayErrors.some((error) => error.path === path)
  return first.files.flatMap((file) => {
    if (isFine(file) && !isStray(file.path)) return []
    const passed = new Set(final.get(file.path)?.tests.flatMap(({ name, state }) => (state === 'passed' ? [name] : [])))
    const failed = file.tests.filter(({ state }) => state === 'failed')
    const names = failed.filter(({ name }) => passed.has(name)).map(({ name }) => `${file.path} > ${name}`)
    const isFineNow = isFine(final.get(file.path) ?? file)
    const all = failed.length > 0 || !isFineNow ? names : [file.path]
    return all.map((name) => `flaky: ${name} passed at the second try`)
  })
}

export function formatResults({ files, strayErrors }: Results): { line: string; isGood: boolean } {
  const count = (state: string) => files.flatMap(({ tests }) => tests).filter((test) => test.state === state).length
  // A file that could not be loaded, or a hook that failed, counts although no test of it did.
  const withoutTest = files.filter((file) => !isFine(file) && file.tests.every(({ state }) => state !== 'failed'))
  const failed = count('failed') + withoutTest.length + strayErrors.length
  const passed = count('passed')
  return { line: `${passed} passed, ${failed} failed`, isGood: failed === 0 && passed > 0 }
}

function isFine({ state }: FileResult): boolean {
  return state === 'passed' || state === 'skipped'
}
