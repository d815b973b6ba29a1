import { expect, it } from 'vitest'
import { TERMINAL } from '../../../../src/cli/output/table.ts'
import { JobReport } from '../../../../src/cli/ray/jobs.ts'
import { parseJobEvent } from '../../../../src/ops/ray/jobs.ts'

it.each([
  ['"isStopped":true,"status":"STOPPED"', 'stopped'],
  ['"isStopped":true,"status":"RUNNING"', 'stopped'],
  ['"isStopped":true,"status":"PENDING"', 'still pending: Ray ends it once it has placed it'],
  ['"isStopped":false,"status":"SUCCEEDED"', 'it had already ended'],
])('after a stop that Ray answers with %s says "%s"', (answer, words) => {
  let shown = ''
  const stdout = { ...TERMINAL, write: (text: string) => (shown += text) }
  const report = new JobReport({ do: 'stop', id: 'one' }, false, { stdout, stderr: { write() {} }, now: () => 0 })
  const event = parseJobEvent(`{"type":"stopped",${answer}}`)
  if (event === undefined || event.type === 'error') throw new Error('it cannot be read')
  report.event(event)
  expect(report.finish()).toBe(0)
  expect(shown).toBe(`one: ${words}\n`)
})
