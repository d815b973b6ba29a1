import { PassThrough, Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { CopyReport } from '../../../../src/cli/copy/report.ts'

const contextOf = (signal: AbortSignal) => ({
  stdin: Readable.from([]),
  stdout: new PassThrough(),
  stderr: new PassThrough(),
  environment: {},
  workingDirectory: '/',
  signal,
  now: Date.now,
})

it('says after an interruption that the same command continues, also for one host', () => {
  const context = contextOf(AbortSignal.abort())
  const { stdout, stderr } = context
  using report = new CopyReport(['m1'], 'sent from here', {}, context)
  const counts = { copied: 1, identical: 0, failed: 0, sentBytes: 5, durationMs: 1 }
  report.handle({ type: 'result', host: 'm1', result: { outcome: 'cancelled', reason: 'cancelled', ...counts } })
  expect(report.finish([])).toBe(130)
  expect(String(stderr.read())).toBe('muster: The same command continues where it was cancelled.\n')
  expect(String(stdout.read())).toMatch(/^m1: .*cancelled/)
})

it('ends with what this machine sent, not with what hosts passed on', () => {
  const context = contextOf(new AbortController().signal)
  using report = new CopyReport(['m1', 'm2'], 'sent from here', {}, context)
  const counts = { outcome: 'ok', copied: 1, identical: 0, failed: 0, durationMs: 1000 } as const
  report.handle({ type: 'result', host: 'm1', result: { ...counts, sentBytes: 1024, passedOnBytes: 0 } })
  report.handle({ type: 'result', host: 'm2', result: { ...counts, sentBytes: 0, passedOnBytes: 1024 } })
  expect(report.finish([])).toBe(0)
  expect(String(context.stdout.read())).toBe('m1: 1 copied, 1.0 KiB in 1.0 s\nm2: 1 copied, 1.0 KiB in 1.0 s\n')
  expect(String(context.stderr.read())).toBe('muster: 2 of 2 hosts ok; 1.0 KiB sent from here\n')
})
