import { describe, expect, it } from 'vitest'
import { formatReport, parseReport } from '../../support/vitest-run.ts'

const report = (passed: number, failed: number, suites: number): string =>
  JSON.stringify({ numPassedTests: passed, numFailedTests: failed, numFailedTestSuites: suites })

describe('the last line of a test run', () => {
  it('counts what passed and what failed', () => {
    expect(formatReport(parseReport(report(12, 3, 2)))).toEqual({ line: '12 passed, 3 failed', isGood: false })
  })

  it('is good only when something ran', () => {
    expect(formatReport(parseReport(report(12, 0, 0))).isGood).toBe(true)
    expect(formatReport(parseReport(report(0, 0, 0))).isGood).toBe(false)
  })

  it('counts a file that could not be loaded, though it has no tests', () => {
    expect(formatReport(parseReport(report(12, 0, 1)))).toEqual({ line: '12 passed, 1 failed', isGood: false })
  })

  it('cannot be made from a report of another form', () => {
    expect(() => parseReport('{"numPassedTests":"12"}')).toThrow('the report has no numPassedTests')
  })
})
