/** What a change says in its last line. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { changeAreas } from '../../../../src/cli/bring-up/change.ts'
import type { CliContext } from '../../../../src/cli/command-line/verb.ts'
import { TtyDialog } from '../../../../src/cli/connect/tty-dialog.ts'
import { areaOf } from '../../../../src/ops/kernel/area.ts'
import { operationOf, StandInHosts } from '../../ops/kernel/stand-in-hosts.ts'

it('counts the hosts of the plan, also if nothing is left to do on them', async () => {
  const state = mkdtempSync(join(tmpdir(), 'muster-change-'))
  const items = ['m1', 'm2'].map((host) => operationOf('file', host, ['remove']))
  const hosts = new StandInHosts((_, script) =>
    script.includes('muster-lock-holder') ? { outcome: { kind: 'exit', code: 76 } } : {},
  )
  const area = areaOf(
    {
      name: 'area',
      hostsOf: () => ['m1', 'm2', 'm3'],
      factsOf: () => ({}),
      plan: () => items.splice(0),
    },
    undefined,
  )
  const stdout = new PassThrough()
  const context = {
    stdout,
    stderr: stdout,
    environment: { XDG_STATE_HOME: state },
    signal: new AbortController().signal,
    now: () => 0,
  } as unknown as CliContext
  const code = await changeAreas('down', [area], { hosts, dialog: new TtyDialog(), fanOut: 8 }, { yes: true }, context)
  rmSync(state, { recursive: true })
  expect(String(stdout.read()).trimEnd().split('\n').at(-1)).toBe('2 hosts: 2 done')
  expect(code).toBe(0)
})
