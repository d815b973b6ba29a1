import { expect, it } from 'vitest'
import { SessionLog } from '../../../src/ui/report/session-log.ts'
import { WrittenSecrets } from '../../../src/ui/report/written-secrets.ts'

it('drops the oldest lines when there are too many, and still hides what was typed into them without echo', () => {
  const log = new SessionLog(() => ({ columns: 80, before: 'm$ ', isEditing: false, isFullScreen: false }))
  const hosts = Array.from({ length: 64 }, (_, index) => `m${index}`)
  const run = (line: string, output: string) => {
    log.noteTyped([{ hosts, bytes: Buffer.from(line) }], 0)
    log.noteTyped([{ hosts, bytes: Buffer.from('\r') }], 0)
    for (const host of hosts) log.noteOutput(host, Buffer.from(output), 0)
  }
  run('hunter22', '\r\nm$ ')
  for (let count = 0; count < 520; count++) run('ls', 'ls\r\nm$ ')
  const sizes = log.entries.flatMap((entry) =>
    entry.kind === 'typed' ? [...entry.parts.values()].map((part) => part.size) : [],
  )
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(25 * 2 ** 20)
  expect(log.droppedEntries).toBeGreaterThan(0)
  expect(log.otherSecrets()).toEqual(new Set(['hunter22']))
})

it.each([
  '$"\'\\',
  '\\',
  '%41',
  '\\u00',
  '&#1;',
  "'",
])('searches a long row of %j for a password without going back in it', (part) => {
  const row = part.repeat(100_000 / part.length)
  expect(new WrittenSecrets([`${'$"\'\\'.repeat(2)}x`]).hide(row, '█')).toBe(row)
})
