/** Whether a host can make its key for the mesh, asked by the real script in a home of its own. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { trustFacts } from '../../../src/ops/trust/facts.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-trust-'))
  mkdirSync(join(home, 'bin'))
  writeFileSync(join(home, 'bin/ssh-keygen'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
})
afterEach(() => {
  chmodSync(home, 0o700)
  rmSync(home, { recursive: true })
})

/** With an ssh-keygen that is not called, as there is no key. */
function keyFact() {
  const script = `fact() { ${trustFacts.key.script}\n}\nfact`
  const { stdout } = spawnSync('sh', ['-c', script], { env: { HOME: home, PATH: `${home}/bin:${process.env.PATH}` } })
  return trustFacts.key.parse(stdout.toString().trim(), stdout)
}

it('can make a key with or without ~/.ssh', () => {
  expect(keyFact()).toEqual({ kind: 'none' })
  mkdirSync(join(home, '.ssh'))
  expect(keyFact()).toEqual({ kind: 'none' })
})

it('can make none where ~/.ssh is a file', () => {
  writeFileSync(join(home, '.ssh'), '')
  expect(keyFact()).toEqual({ kind: 'none', obstacle: '~/.ssh is not a directory' })
})

it.skipIf(process.getuid?.() === 0)('can make none where it may not write', () => {
  chmodSync(home, 0o500)
  expect(keyFact()).toEqual({ kind: 'none', obstacle: 'the home directory is not writable' })
  chmodSync(home, 0o700)
  mkdirSync(join(home, '.ssh'), { mode: 0o500 })
  expect(keyFact()).toEqual({ kind: 'none', obstacle: '~/.ssh is not writable' })
})
