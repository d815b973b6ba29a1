import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import { IdentityFiles } from '../../../src/ssh/identity-files.ts'
import { requirement } from '../../support/requirements.ts'

const LIVE = new AbortController().signal

describe.skipIf(!requirement('ssh-keygen'))('key files', () => {
  let directory: string
  const file = (name: string) => join(directory, name)
  const makeKey = (name: string, passphrase: string, ...options: string[]) => {
    // One round of the key's own hash: what makes a passphrase slow to guess makes it slow to test.
    spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-a', '1', '-N', passphrase, '-f', file(name), ...options])
    return file(name)
  }

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-keys-'))
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('without a passphrase are ready', async () => {
    const identity = await new IdentityFiles().load(makeKey('plain', ''))
    expect(identity).toMatchObject({ kind: 'plain', publicKey: { type: 'ssh-ed25519' } })
  })

  it('that do not exist are missing, which is no problem', async () => {
    expect((await new IdentityFiles().load(file('nowhere'))).kind).toBe('missing')
  })

  it('that others may read are refused with the command that fixes it', async () => {
    const path = makeKey('open', '')
    chmodSync(path, 0o644)
    const identity = await new IdentityFiles().load(path)
    expect(identity).toMatchObject({ kind: 'problem', hint: `chmod 600 ${path}` })
    expect(identity).toHaveProperty('reason', expect.stringContaining('0644'))
    chmodSync(path, 0o600)
    expect((await new IdentityFiles().load(path)).kind).toBe('plain')
  })

  it('that hold no key are named as the problem', async () => {
    writeFileSync(file('garbage'), 'hello\n', { mode: 0o600 })
    expect(await new IdentityFiles().load(file('garbage'))).toMatchObject({
      kind: 'problem',
      reason: 'is not a private key',
    })
    writeFileSync(file('torn'), '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n', {
      mode: 0o600,
    })
    expect((await new IdentityFiles().load(file('torn'))).kind).toBe('problem')
  })

  it('that are directories are named as the problem', async () => {
    expect(await new IdentityFiles().load(directory)).toMatchObject({ kind: 'problem', reason: 'is not a file' })
  })

  it('with a passphrase give their public half', async () => {
    const identity = await new IdentityFiles().load(makeKey('locked', 'secret'))
    expect(identity).toMatchObject({ kind: 'encrypted', publicKey: { type: 'ssh-ed25519' } })
  })

  it('in the old format give their public half if it is next to them', async () => {
    spawnSync('ssh-keygen', ['-q', '-t', 'ecdsa', '-m', 'PEM', '-N', 'secret', '-f', file('pem')])
    expect(await new IdentityFiles().load(file('pem'))).toMatchObject({
      kind: 'encrypted',
      publicKey: { type: 'ecdsa-sha2-nistp256' },
    })
    renameSync(`${file('pem')}.pub`, file('elsewhere'))
    expect(await new IdentityFiles().load(file('pem'))).toMatchObject({ kind: 'encrypted' })
  })

  it('with only the public half are used with the agent', async () => {
    const path = makeKey('half', '')
    rmSync(path)
    expect((await new IdentityFiles().load(path)).kind).toBe('public')
    expect((await new IdentityFiles().load(`${path}.pub`)).kind).toBe('public')
  })

  it('are unlocked once for all hosts, with one question', async () => {
    const path = makeKey('shared', 'secret')
    const files = new IdentityFiles()
    let questions = 0
    const ask = async () => {
      questions += 1
      return new Secret('secret')
    }
    const unlocked = await Promise.all([1, 2, 3].map(() => files.unlock(path, ask, LIVE)))
    expect(unlocked.map(({ kind }) => kind)).toEqual(['key', 'key', 'key'])
    expect(questions).toBe(1)
  })

  it('are tried again after a wrong passphrase, three times at most', async () => {
    const path = makeKey('guessed', 'secret')
    const retries: boolean[] = []
    const ask = async (isRetry: boolean) => {
      retries.push(isRetry)
      return new Secret('guess')
    }
    expect(await new IdentityFiles().unlock(path, ask, LIVE)).toEqual({ kind: 'wrong' })
    expect(retries).toEqual([false, true, true])
  })

  it('are skipped when the passphrase is left empty', async () => {
    const path = makeKey('passed', 'secret')
    expect(await new IdentityFiles().unlock(path, async () => new Secret(''), LIVE)).toEqual({ kind: 'declined' })
  })

  it('are asked for again when the host that asked goes away', async () => {
    const path = makeKey('left', 'secret')
    const files = new IdentityFiles()
    const abort = new AbortController()
    const question = Promise.withResolvers<Secret | undefined>()
    const first = files.unlock(path, () => question.promise, abort.signal)
    const second = files.unlock(path, async () => new Secret('secret'), LIVE)
    abort.abort()
    question.resolve(undefined)
    expect((await first).kind).toBe('declined')
    expect((await second).kind).toBe('key')
  })
})
