/** `muster [TARGET]` up to the point where it needs a terminal. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-console-verb-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { here: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

it('does not read host names from stdin, which the console needs for keys', async () => {
  const { exitCode, messages } = await runMuster(['-'], { directory, stdin: ['here\n'] })
  expect([exitCode, messages]).toEqual([2, expect.stringContaining('names cannot be read from stdin here')])
})
