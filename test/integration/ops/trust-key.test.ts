/** The real script that says whether a host can make its key for the mesh, run in its own home directory. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { trustFacts } from '../../../src/ops/trust/facts.ts'
import { writeProgram } from '../../support/program.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-trust-'))
  writeProgram(join(home, 'bin/ssh-keygen'), 'exit 1')
})
afterEach(() => {
  chmodSync(home, 0o700)
  rmSync(home, { recursive: true })
})

/** ssh-keygen is only a stand-in: there is no key, so the script does not call it. */
function keyFact(as: readonly string[] = []) {
  const script = `fact() { ${trustFacts.key.script}\n}\nfact`
  const [program = 'sh', ...args] = [...as, 'sh', '-c', script]
  const { stdout } = spawnSync(program, args, { env: { HOME: home, PATH: `${home}/bin:${process.env.PATH}` } })
  return trustFacts.key.parse(stdout.toString().trim(), stdout)
}

it('can make a key with or without ~/.ssh', () => {
  expect(keyFact()).toEqual({ kind: 'none' })
  mkdirSync(join(home, '.ssh'))
  expect(keyFact()).toEqual({ kind: 'none' })
})

it('cannot make a key if ~/.ssh is a file', () => {
  writeFileSync(join(home, '.ssh'), '')
  expect(keyFact()).toEqual({ kind: 'none', obstacle: '~/.ssh is not a directory' })
})

it('cannot make a key if a directory is not writable', () => {
  // Root may write everywhere.
  const other = process.getuid?.() === 0 ? ['setpriv', '--reuid', '65534', '--clear-groups'] : []
  chmodSync(home, 0o555)
  expect(keyFact(other)).toEqual({ kind: 'none', obstacle: 'the home directory is not writable' })
  chmodSync(home, 0o755)
  mkdirSync(join(home, '.ssh'), { mode: 0o555 })
  expect(keyFact(other)).toEqual({ kind: 'none', obstacle: '~/.ssh is not writable' })
})
