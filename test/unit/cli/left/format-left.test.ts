/** What `muster left` prints: rows that no file name of a host acts on, and JSON as docs/schema/left.schema.json says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { BringUpReport } from '../../../../src/cli/bring-up/report.ts'
import type { CliContext } from '../../../../src/cli/command-line/verb.ts'
import { formatLeft, leftEvent, othersNotes } from '../../../../src/cli/left/left.ts'
import { TERMINAL } from '../../../../src/cli/output/table.ts'
import type { HostLeftover } from '../../../../src/ops/kernel/left.ts'
import { ROOT } from '../../../support/console-options.ts'

const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, 'docs/schema/left.schema.json'), 'utf8')))
const left = { kind: 'left', steps: [] } as const
const items: readonly HostLeftover[] = [
  { host: 'm1', area: 'copy', what: 'unfinished copy: /a\n\u001b[2J', bytes: 4096, changedS: 100, state: left },
  { host: 'm2', area: 'env', what: 'environment: ~/lab', state: { kind: 'used', because: 'process 7 uses it' } },
]

it('shows one line for each thing, with its size, its age and why it stays', () => {
  expect(formatLeft(items, 220_000, TERMINAL)).toBe(`HOST  AREA  STATE  SIZE     CHANGED    WHAT
m1    copy  left   4.0 KiB  2 min ago  unfinished copy: /a\\x0a\\x1b[2J
m2    env   used                       environment: ~/lab (process 7 uses it)
`)
})

it('says that another hosts.yaml may declare what is left of bring-up', () => {
  expect(othersNotes({ file: 'b.yaml' }, ['copy', 'env'])).toEqual([
    'what b.yaml does not declare and nothing uses counts as left, even if another hosts.yaml declares it',
  ])
  expect(othersNotes({}, ['env'])).toEqual([expect.stringMatching(/^without a hosts.yaml, what nothing uses /)])
  expect(othersNotes({ file: 'b.yaml' }, ['copy', 'jobs'])).toEqual([])
})

it('prints JSON as documented', () => {
  const stdout = new PassThrough()
  const report = new BringUpReport({ json: true }, {
    stdout,
    stderr: stdout,
    environment: {},
    now: () => 0,
  } as unknown as CliContext)
  for (const item of items) report.event(leftEvent(item))
  report.summary({ left: 1, used: 1, declared: 0, kept: 0, unknown: 0, unreachable: 0 }, '')
  const lines = String(stdout.read()).trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect(schema.safeParse(JSON.parse(line)).error, line).toBeUndefined()
})
