import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { PROTOCOL } from '../../../../src/cli/sessions/messages.ts'
import { lookForSessions } from '../../../../src/cli/sessions/session-directory.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

let directory: string
const server = createServer((socket) => void socket.resume())
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-sessions-'))
  mkdirSync(join(directory, 'muster'), { mode: 0o700 })
})
afterEach(() => {
  server.close()
  rmSync(directory, { recursive: true })
})

it('names a console that does not answer', async () => {
  await once(server.listen(join(directory, 'muster', `console-${PROTOCOL}-lab`)), 'listening')
  const clock = new ManualClock()
  const looking = lookForSessions({ XDG_RUNTIME_DIR: directory }, 'all', clock)
  await waitUntil(() => clock.timerCount > 0, 'the console to be asked')
  clock.advance(60_000)
  expect(await looking).toEqual({ found: [], silent: [{ name: 'lab' }] })
})
