import { describe, expect, it } from 'vitest'
import { KnownHosts, lookupNameOf, parseKnownHosts } from '../../../../src/inventory/known-hosts/parse.ts'
import { judgeHostKey, knownAlgorithms } from '../../../../src/ssh/known-hosts/verifier.ts'
import { endpointOf } from '../../../support/endpoint.ts'
import { blobOf } from '../../inventory/known-hosts/key-blobs.ts'

const line = (names: string, type: string, seed = 0) =>
  `${names} ${type} ${Buffer.from(blobOf(type, seed)).toString('base64')}`
const naming = (lines: readonly string[]) => {
  const hosts = new KnownHosts(parseKnownHosts(lines.join('\n'), '/kh'))
  return (name: string) => hosts.naming(name)
}
const judge = (lines: readonly string[], endpoint = endpointOf('m8'), key = blobOf('ssh-ed25519')) =>
  judgeHostKey(naming(lines), endpoint, key)

describe('a host key against known_hosts', () => {
  it('is known if a line has it', () => {
    expect(judge([line('m8.test', 'ssh-ed25519')]).kind).toBe('known')
  })

  it('is known if one of several lines has it', () => {
    expect(judge([line('m8.test', 'ssh-ed25519', 1), line('m8.test', 'ssh-ed25519')]).kind).toBe('known')
  })

  it('is unknown if no line names the host', () => {
    expect(judge([line('m9.test', 'ssh-ed25519')]).kind).toBe('unknown')
  })

  it('has changed if the line of the host has another key', () => {
    const judgement = judge(['', line('m8.test', 'ssh-ed25519', 1)])
    expect(judgement).toMatchObject({ kind: 'changed', offending: { file: '/kh', line: 2 } })
  })

  it('has changed if only a key of another type is known, as with ssh', () => {
    expect(judge([line('m8.test', 'ssh-rsa')]).kind).toBe('changed')
  })

  it('is revoked even if another line trusts it', () => {
    const judgement = judge([line('m8.test', 'ssh-ed25519'), line('@revoked *', 'ssh-ed25519')])
    expect(judgement.kind).toBe('revoked')
  })

  it('is not revoked by a marker for other hosts or another key', () => {
    const lines = [
      line('m8.test', 'ssh-ed25519'),
      line('@revoked m9.test', 'ssh-ed25519'),
      line('@revoked *', 'ssh-rsa'),
    ]
    expect(judge(lines).kind).toBe('known')
  })

  it('is not accepted by an authority that signs certificates', () => {
    expect(judge([line('@cert-authority *.test', 'ssh-ed25519')]).kind).toBe('authority-only')
  })

  it('is looked up with the port if that is not 22', () => {
    const endpoint = endpointOf('m8', { port: 2222 })
    expect(lookupNameOf(endpoint)).toBe('[m8.test]:2222')
    expect(judge([line('[m8.test]:2222', 'ssh-ed25519', 1), line('m8.test', 'ssh-ed25519', 2)], endpoint).kind).toBe(
      'changed',
    )
  })

  it('is known on another port when the address alone has the same key', () => {
    expect(judge([line('m8.test', 'ssh-ed25519')], endpointOf('m8', { port: 2222 })).kind).toBe('known')
  })

  it('is unknown, not changed, on another port when the address alone has another key', () => {
    expect(judge([line('m8.test', 'ssh-ed25519', 1)], endpointOf('m8', { port: 2222 })).kind).toBe('unknown')
  })

  it('is looked up only under the alias if there is one', () => {
    const endpoint = endpointOf('m8', { port: 2222, hostKeyAlias: 'lab' })
    expect(judge([line('lab', 'ssh-ed25519')], endpoint).kind).toBe('known')
    expect(judge([line('m8.test', 'ssh-ed25519')], endpoint).kind).toBe('unknown')
  })

  it('leaves out the algorithm of a known key that is revoked', () => {
    const lines = [line('m8.test', 'ssh-ed25519'), line('m8.test', 'ssh-rsa'), line('@revoked *', 'ssh-ed25519')]
    expect(knownAlgorithms(naming(lines), endpointOf('m8'))).toEqual(['rsa-sha2-512', 'rsa-sha2-256'])
  })

  it('names the algorithms of the known keys, and for RSA the current ones', () => {
    const lines = [line('m8.test', 'ssh-rsa'), line('*', 'ssh-ed25519')]
    expect(knownAlgorithms(naming(lines), endpointOf('m8'))).toEqual(['rsa-sha2-512', 'rsa-sha2-256', 'ssh-ed25519'])
  })
})
