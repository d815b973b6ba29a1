import { PassThrough, Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { CopyReport } from '../../../../src/cli/copy/report.ts'

it('says after an interruption that the same command continues, also for one host', () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const context = {
    stdin: Readable.from([]),
    stdout,
    stderr,
    environment: {},
    workingDirectory: '/',
    signal: AbortSignal.abort(),
    now: Date.now,
  }
  using report = new CopyReport(['m1'], {}, context)
  const counts = { copied: 1, identical: 0, failed: 0, sentBytes: 5, durationMs: 1 }
  report.handle({ type: 'result', host: 'm1', result: { outcome: 'cancelled', reason: 'cancelled', ...counts } })
  expect(report.finish([])).toBe(130)
  expect(String(stderr.read())).toBe('muster: The same command continues where it was cancelled.\n')
  expect(String(stdout.read())).toMatch(/^m1: .*cancelled/)
})
