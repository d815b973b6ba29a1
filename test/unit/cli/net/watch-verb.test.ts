/** `muster net watch` up to the point where it needs a terminal. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-watch-verb-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { here: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

it.each([
  [['here'], 'muster net watch needs a terminal\nStart it without a pipe; scripts use `--count N` (N samples'],
  [['--speed', '3'], '--speed is only for --replay'],
  [['--count', '1', '--speed', '3'], '--speed is only for --replay'],
  [['--replay', 'a.jsonl', '--record', 'b.jsonl'], '--replay and --record cannot be used together'],
  [['here', '--replay', 'a.jsonl'], '--replay shows the hosts of its recording'],
  [['here', '--json', '--record', 'missing/a.jsonl'], 'cannot write missing/a.jsonl: there is no directory missing\n'],
  [['--replay', 'a.jsonl', '--json'], '--replay shows a recording on the screen'],
])('refuses %j, and says what to do', async (args, message) => {
  const { exitCode, messages } = await runMuster(['net', 'watch', ...args], { directory })
  expect([exitCode, messages]).toEqual([2, expect.stringContaining(message)])
})
