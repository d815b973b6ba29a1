import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type FileKey, nextMethod, orderKeys } from '../../../src/ssh/identity-files.ts'

const file = (path: string, changes: Partial<FileKey> = {}): FileKey => ({
  path,
  isEncrypted: false,
  isPrivate: true,
  publicKey: `key of ${path}`,
  ...changes,
})
const agent = (name: string) => ({ publicKey: `key of ${name}`, comment: name })
const labels = (...parameters: Parameters<typeof orderKeys>) =>
  orderKeys(...parameters).map((offer) => `${offer.from} ${offer.label}`)

describe('the order of keys', () => {
  it('puts key files before the other keys of the agent', () => {
    expect(labels([file('id')], [agent('work'), agent('home')], false)).toEqual([
      'file id',
      'agent agent key work',
      'agent agent key home',
    ])
  })

  it('lets the agent sign for a file whose key it holds', () => {
    expect(labels([file('id', { isEncrypted: true })], [agent('work'), agent('id')], false)).toEqual([
      'agent id',
      'agent agent key work',
    ])
  })

  it('leaves the other keys of the agent out when only the named identities count', () => {
    expect(labels([file('id')], [agent('work'), agent('id')], true)).toEqual(['agent id'])
  })

  it('uses the public half of a key that only the agent has', () => {
    expect(labels([file('id', { isPrivate: false })], [agent('id')], true)).toEqual(['agent id'])
    expect(labels([file('id', { isPrivate: false })], [], true)).toEqual([])
  })

  it('tries files that need a passphrase last, those that hide their public key after all others', () => {
    const files = [
      file('old', { isEncrypted: true, publicKey: undefined }),
      file('new', { isEncrypted: true }),
      file('plain'),
    ]
    expect(labels(files, [agent('work')], false)).toEqual([
      'file plain',
      'agent agent key work',
      'file new',
      'file old',
    ])
  })

  it('offers nothing twice and forgets no key that could be used', () => {
    const names = fc.constantFrom('a', 'b', 'c', 'd')
    const files = fc.array(fc.record({ name: names, isEncrypted: fc.boolean() }), { maxLength: 6 })
    fc.assert(
      fc.property(files, fc.uniqueArray(names), (someFiles, inAgent) => {
        const offers = orderKeys(
          someFiles.map(({ name, isEncrypted }) => file(name, { isEncrypted })),
          inAgent.map(agent),
          false,
        )
        const used = offers.map((offer) => (offer.from === 'agent' ? offer.publicKey : `key of ${offer.path}`))
        const wanted = new Set([
          ...someFiles.map(({ name }) => `key of ${name}`),
          ...inAgent.map((name) => `key of ${name}`),
        ])
        expect(used.toSorted()).toEqual([...wanted].toSorted())
      }),
    )
  })
})

describe('the next method', () => {
  it('is the first wanted one that the server accepts', () => {
    expect(nextMethod(['publickey', 'password'], ['password', 'publickey'], () => false)).toBe('publickey')
    expect(nextMethod(['publickey', 'password'], ['password'], () => false)).toBe('password')
  })

  it('is none once all accepted ones have been tried', () => {
    expect(
      nextMethod(['publickey', 'password'], ['publickey', 'gssapi-with-mic'], (name) => name === 'publickey'),
    ).toBeUndefined()
  })
})
