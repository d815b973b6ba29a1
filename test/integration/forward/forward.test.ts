import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-forward-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

it('ends when one host refuses its forward and the other cannot be reached', async () => {
  // Nothing listens on port 1.
  const hosts = '{ here: { transport: local }, away: { address: 127.0.0.1, port: 1, user: root } }'
  writeFileSync(join(directory, 'hosts.yaml'), `cluster: lab\nhosts: ${hosts}\n`)
  const { exitCode, messages } = await runMuster(['forward', 'all', '-R', '9000:localhost:80'], { directory })
  expect(messages).toMatch(/^muster: here: it is this machine/m)
  expect(messages).toMatch(/^muster: away: .*refused/m)
  expect(exitCode).toBe(1)
})

it('does not say that it tries again where it ends', async () => {
  const { exitCode, messages } = await runMuster(['forward', 'root@127.0.0.1:1', '7000'], { directory })
  expect(messages).toMatch(/^muster: 127.0.0.1: cannot connect .*refused\n$/)
  expect(exitCode).toBe(4)
})

it('has no --dry-run: it would listen', async () => {
  const { exitCode, messages } = await runMuster(['forward', '127.0.0.1:1', '80', '--dry-run'], { directory })
  expect([exitCode, messages]).toEqual([2, 'muster: `muster forward` has no --dry-run: nothing was done\n'])
})
