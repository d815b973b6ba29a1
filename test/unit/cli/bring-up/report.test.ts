/** What up, down and status print: JSON as docs/schema says, and lines that no text of a host acts on. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { BringUpReport } from '../../../../src/cli/bring-up/report.ts'
import type { CliContext } from '../../../../src/cli/command-line/verb.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import { ROOT } from '../../../support/console-options.ts'
import { operationOf } from '../../ops/kernel/stand-in-hosts.ts'

const schema = z.union(
  ['change', 'status'].map((name) =>
    z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, `docs/schema/${name}.schema.json`), 'utf8'))),
  ),
)

const finding = {
  host: 'm9',
  gravity: 'blocker',
  id: 'login',
  cause: 'cannot log in\u001b[31m',
  detail: 'denied',
} as const
const steps = operationOf('key', 'm8', [
  { id: 'make', changes: ['+ key'], undo: { title: 'take it back', script: 'x' } },
])
const step = steps.verdict.kind === 'steps' ? steps.verdict.steps[0] : undefined
const blocked: Operation = { ...operationOf('key', 'm9', []), verdict: { kind: 'blocked', findings: [finding] } }

const HOMES = [{ hosts: ['m7', 'm8', 'm9'], path: '/home/ada\u0007' }]

function say(isJson: boolean, isVerbose = true): string[] {
  const stdout = new PassThrough()
  const context = { stdout, stderr: stdout, environment: {}, now: () => 0 } as unknown as CliContext
  const report = new BringUpReport({ json: isJson, verbose: isVerbose }, context)
  if (step === undefined) throw new Error('there is no step')
  report.plan({ direction: 'up', operations: [operationOf('key', 'm7', []), steps, blocked], sharedHomes: HOMES })
  report.apply({ type: 'begin', operation: steps, step })
  report.apply({ type: 'output', operation: steps, step, stream: 'stderr', text: '5%\r10%\rbell \u0007\r\n' })
  for (const end of [
    { kind: 'done' },
    { kind: 'unneeded' },
    { kind: 'cancelled' },
    { kind: 'skipped', reason: 'something failed' },
    { kind: 'failed', outcome: { kind: 'exit', code: 1 }, reason: 'no', isUndone: true },
    { kind: 'failed', outcome: { kind: 'unreachable', reason: 'lost' }, reason: 'lost' },
  ] as const) {
    report.apply({ type: 'end', operation: steps, step, end, durationMs: 1234.5 })
  }
  report.findings([
    { ...finding, area: 'trust' },
    { ...finding, host: 'm10', area: 'trust' },
  ])
  report.statuses([
    { area: 'trust', host: 'm8', status: 'good', because: ['it is so'], findings: [], atMs: 5 },
    { area: 'trust', host: 'm9', status: 'away', because: ['no route'], findings: [] },
  ])
  const counts = { hosts: 1, done: 1, failed: 0, cancelled: 0, blocked: 0, unreachable: 0, findings: 2 }
  report.summary(counts, '1 host: 1 done')
  return String(stdout.read()).trimEnd().split('\n')
}

describe('the report of a bring-up', () => {
  it('is JSON as documented', () => {
    const lines = say(true)
    expect(lines).toHaveLength(17)
    for (const line of lines) expect(() => schema.parse(JSON.parse(line)), line).not.toThrow()
    expect(lines.join('')).not.toContain('\u001b')
  })

  it('is lines for people, equal hosts together', () => {
    expect(say(false)).toEqual([
      'm[7-9] share /home/ada\\x07',
      'area · key · m8',
      '  make',
      '    + key',
      '    if it fails: take it back',
      'area · key · m9',
      '  ! cannot log in\\x1b[31m [denied]',
      'area · key · m7',
      '  nothing to do: it is so',
      'm8: make …',
      'm8: bell \\x07',
      'm8: make: done (1.2 s)',
      'm8: make: already done',
      'm8: make: cancelled',
      'm8: make: not started: something failed',
      'm8: make: FAILED: no',
      'm8: make: FAILED: lost',
      'blocker  trust · m[9-10]: cannot log in\\x1b[31m [denied]',
      'good      trust · m8',
      'no answer trust · m9: no route',
      '1 host: 1 done',
    ])
  })
})
