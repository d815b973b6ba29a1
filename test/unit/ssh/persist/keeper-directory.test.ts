import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MusterError } from '../../../../src/base/errors.ts'
import {
  isProof,
  keeperDirectory,
  newNonce,
  proofOf,
  readToken,
  requirePrivate,
} from '../../../../src/ssh/persist/keeper-directory.ts'

const stats = (changes: object) => ({
  uid: 1000,
  mode: 0o40700,
  isDirectory: () => true,
  isFile: () => false,
  ...changes,
})

describe('the directory of the keeper', () => {
  it('is refused if another user owns it', () => {
    expect(() => requirePrivate('/run/m', stats({ uid: 0 }), 1000, 'directory')).toThrow(/belongs to user 0/)
  })

  it('is refused if others may read or change it', () => {
    for (const mode of [0o40701, 0o40710, 0o40777])
      expect(() => requirePrivate('/run/m', stats({ mode }), 1000, 'directory')).toThrow(MusterError)
  })

  it('is refused if it is a link or a file', () => {
    expect(() => requirePrivate('/run/m', stats({ isDirectory: () => false }), 1000, 'directory')).toThrow(
      /not a directory/,
    )
  })

  it('is accepted if only the user can use it', () => {
    expect(() => requirePrivate('/run/m', stats({}), 1000, 'directory')).not.toThrow()
  })

  it('is in MUSTER_RUNTIME_DIR only if that belongs to the user, and can hold a Unix socket', () => {
    const uid = process.getuid?.() ?? 0
    const own = import.meta.dirname
    expect(keeperDirectory({ MUSTER_RUNTIME_DIR: dirname(own) }, uid)).toBe(join(dirname(own), 'muster'))
    expect(keeperDirectory({ MUSTER_RUNTIME_DIR: '/nowhere/to/be/found' }, uid)).toBe(`/tmp/muster-${uid}`)
    expect(keeperDirectory({ MUSTER_RUNTIME_DIR: own }, uid + 1)).toBe(`/tmp/muster-${uid + 1}`)
    const long = mkdtempSync(join(tmpdir(), 'long-'.repeat(20)))
    expect(keeperDirectory({ MUSTER_RUNTIME_DIR: long }, uid)).toBe(`/tmp/muster-${uid}`)
    rmSync(long, { recursive: true })
  })

  it('is the same in all sessions of the user, and stays when the user logs out', () => {
    expect(keeperDirectory({ XDG_RUNTIME_DIR: import.meta.dirname, TMPDIR: '/var/tmp' }, 1000)).toBe('/tmp/muster-1000')
  })
})

describe('the secret of the keeper', () => {
  it.runIf(process.platform === 'linux')('is not awaited from a pipe in its place', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-token-'))
    execFileSync('mkfifo', ['-m', '600', join(directory, 'token')])
    await expect(readToken(directory)).rejects.toThrow(/token is not a file/)
    rmSync(directory, { recursive: true })
  })
})

describe('the proof', () => {
  const token = Buffer.alloc(32, 7)

  it('of the token is valid only for its side and nonces', () => {
    const [one, other] = [newNonce(), newNonce()]
    const proof = proofOf('keeper', token, one, other)
    expect(isProof(proof, proofOf('keeper', token, one, other))).toBe(true)
    expect(isProof(proof, proofOf('program', token, one, other))).toBe(false)
    expect(isProof(proof, proofOf('keeper', token, other, one))).toBe(false)
    expect(isProof(proof, proofOf('keeper', Buffer.alloc(32), one, other))).toBe(false)
    expect(isProof(undefined, proof)).toBe(false)
  })
})
