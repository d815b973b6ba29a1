import { describe, expect, it } from 'vitest'
import { type FileResult, filesToRepeat, flakyLines, formatResults, mergeRuns } from '../../support/vitest-run.ts'

/** `a` passed, `-a` failed. */
const file = (path: string, ...tests: readonly string[]): FileResult => ({
  path,
  state: tests.some((name) => name.startsWith('-')) ? 'failed' : 'passed',
  tests: tests.map((name) => ({ name: name.replace('-', ''), state: name.startsWith('-') ? 'failed' : 'passed' })),
})
const results = (...files: readonly FileResult[]) => ({ files, strayErrors: [] })
const unloaded: FileResult = { path: 'broken.test.ts', state: 'failed', tests: [] }
const stray = { message: 'thrown by a timer', path: 'a.test.ts' }

describe('the last line of a test run', () => {
  it('counts what passed and what failed', () => {
    const run = results(file('a', 'one', '-two'), file('b', 'three', '-four'))
    expect(formatResults(run)).toEqual({ line: '2 passed, 2 failed', isGood: false })
  })

  it('is a success only if something ran', () => {
    expect(formatResults(results(file('a', 'one'))).isGood).toBe(true)
    expect(formatResults(results()).isGood).toBe(false)
  })

  it.each([
    ['could not be loaded', unloaded],
    ['was never run', { ...unloaded, state: 'missing' }],
    ['has a hook that failed', { ...file('hook.test.ts', 'one'), state: 'failed' }],
  ])('counts a file that %s, although none of its tests failed', (_, bad) => {
    expect(formatResults(results(file('a', 'two'), bad))).toMatchObject({
      line: `${1 + bad.tests.length} passed, 1 failed`,
      isGood: false,
    })
  })

  it('counts an error outside of all tests', () => {
    expect(formatResults({ files: [file('a', 'one')], strayErrors: [stray] })).toEqual({
      line: '1 passed, 1 failed',
      isGood: false,
    })
  })
})

describe('the second try', () => {
  it('is for the files that failed, by a test, by an error or before they began', () => {
    const run = { files: [file('a.test.ts', 'one'), file('b', '-two'), unloaded], strayErrors: [stray] }
    expect(filesToRepeat(run)).toEqual(['b', 'broken.test.ts', 'a.test.ts'])
    expect(filesToRepeat(results(file('a', 'one')))).toEqual([])
  })

  it('is not for an error of no file, nor for many files', () => {
    expect(filesToRepeat({ files: [file('b', '-two')], strayErrors: [{ message: 'unknown' }] })).toEqual([])
    expect(filesToRepeat(results(...Array.from({ length: 9 }, (_, index) => file(`f${index}`, '-x'))))).toEqual([])
  })

  it('counts in the end, and names what passed then', () => {
    const first = { files: [file('a.test.ts', 'one'), file('b', '-two', 'three'), unloaded], strayErrors: [stray] }
    const second = results(file('a.test.ts', 'one'), file('b', 'two', 'three'), file('broken.test.ts', 'four'))
    const merged = mergeRuns(first, second)
    expect(formatResults(merged)).toEqual({ line: '4 passed, 0 failed', isGood: true })
    expect(flakyLines(first, merged)).toEqual([
      'flaky: a.test.ts passed at the second try',
      'flaky: b > two passed at the second try',
      'flaky: broken.test.ts passed at the second try',
    ])
  })

  it('fails the run by a test that fails twice', () => {
    const first = results(file('a', 'one'), file('b', '-two', '-three'))
    const merged = mergeRuns(first, results(file('b', '-two', 'three')))
    expect(formatResults(merged)).toEqual({ line: '2 passed, 1 failed', isGood: false })
    expect(flakyLines(first, merged)).toEqual(['flaky: b > three passed at the second try'])
  })

  it('fails the run by a file that it did not run, and by an error of its own', () => {
    const first = results(file('a', 'one'), file('b', '-two'))
    expect(formatResults(mergeRuns(first, results())).isGood).toBe(false)
    const second = { files: [file('b', 'two')], strayErrors: [{ message: 'late', path: 'b' }] }
    expect(formatResults(mergeRuns(first, second)).isGood).toBe(false)
  })
})
