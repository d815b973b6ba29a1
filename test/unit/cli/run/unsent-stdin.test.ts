import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isPiped } from '../../../../src/cli/run/unsent-stdin.ts'
import { requirement } from '../../../support/requirements.ts'

it.skipIf(!requirement('/proc'))(
  'takes no pipe for forgotten that the parent reads from, as in a loop over hosts',
  () => {
    const directory = mkdtempSync(join(tmpdir(), 'unsent-stdin-'))
    const pipe = join(directory, 'pipe')
    execFileSync('mkfifo', [pipe])
    const [fd, another] = [openSync(pipe, 'r+'), openSync('/dev/null', 'r')]
    const streams = { stdin: { fd }, stderr: { isTTY: true } }
    expect(isPiped(streams, `/proc/self/fd/${another}`)).toBe(true)
    expect(isPiped(streams, `/proc/self/fd/${fd}`)).toBe(false)
    expect(isPiped(streams, '/proc/0/fd/0')).toBe(false)
    expect(isPiped({ ...streams, stderr: {} }, `/proc/self/fd/${another}`)).toBe(false)
    for (const each of [fd, another]) closeSync(each)
    rmSync(directory, { recursive: true })
  },
)
