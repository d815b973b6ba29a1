import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { PROTOCOL } from '../../../../src/cli/sessions/messages.ts'
import { lookForSessions } from '../../../../src/cli/sessions/session-directory.ts'
import { runMuster } from '../../../support/run-muster.ts'
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
  const looking = lookForSessions({ MUSTER_RUNTIME_DIR: directory }, 'all', clock)
  await waitUntil(() => clock.timerCount > 0, 'the console to be asked')
  clock.advance(60_000)
  expect(await looking).toEqual({ found: [], silent: [{ name: 'lab' }] })
})

it('finds no console where there is no directory, and makes none', async () => {
  const environment = { MUSTER_RUNTIME_DIR: directory }
  rmSync(join(directory, 'muster'), { recursive: true })
  expect(await lookForSessions(environment)).toEqual({ found: [], silent: [] })
  expect(readdirSync(directory)).toEqual([])
})

it.each([
  ['that is a link', (path: string) => symlinkSync(`${path}-of-another-user`, path), 'is not a directory'],
  [
    'that others can enter',
    (path: string) => chmodSync(mkdirSync(path, { recursive: true }) ?? path, 0o755),
    'is accessible to others (mode 755)',
  ],
])('says why no console can be found in a directory %s', async (_, change, reason) => {
  const path = join(directory, 'muster')
  rmSync(path, { recursive: true })
  change(path)
  const { exitCode, messages } = await runMuster(['sessions'], {
    directory,
    environment: { MUSTER_RUNTIME_DIR: directory },
  })
  expect(messages).toContain(`${path} ${reason}`)
  expect(messages).toContain('or set MUSTER_RUNTIME_DIR to a directory of your own')
  expect(exitCode).toBe(3)
})
