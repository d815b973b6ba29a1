import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatKnownHostsLine, parseKnownHosts } from '../../../../src/inventory/known-hosts/parse.ts'
import { anyCharacter } from '../../../support/any-character.ts'
import { randomRuns } from '../../../support/random-runs.ts'
import { blobOf } from './key-blobs.ts'

const ED25519 = Buffer.from(blobOf('ssh-ed25519')).toString('base64')
const parse = (text: string) => parseKnownHosts(text, '/kh')
const matches = (names: string, name: string) => parse(`${names} ssh-ed25519 ${ED25519}`)[0]?.matches(name)

describe('known_hosts', () => {
  it('reads a name, a key and a comment', () => {
    const [entry] = parse(`m8 ssh-ed25519 ${ED25519} the big one\n`)
    expect(entry).toMatchObject({ file: '/kh', line: 1, marker: 'none', keyType: 'ssh-ed25519' })
    expect(entry?.blob).toEqual(blobOf('ssh-ed25519'))
  })

  it('counts lines, skipping comments, empty and malformed ones', () => {
    const text = [
      '# a comment',
      '',
      'm8 ssh-ed25519',
      `m8 ssh-rsa ${ED25519}`,
      'm8 ssh-ed25519 !!!!',
      `@unknown m8 ssh-ed25519 ${ED25519}`,
      `|1|onlysalt ssh-ed25519 ${ED25519}`,
      `  m8 \t ssh-ed25519 ${ED25519}\r`,
    ]
    expect(parse(text.join('\n')).map(({ line }) => line)).toEqual([8])
  })

  it('reads the markers', () => {
    const text = `@revoked * ssh-ed25519 ${ED25519}\n@cert-authority *.test ssh-ed25519 ${ED25519}`
    expect(parse(text).map(({ marker }) => marker)).toEqual(['revoked', 'cert-authority'])
  })

  it.each([
    ['m8', 'm8', true],
    ['M8', 'm8', true],
    ['m8', 'm80', false],
    ['m8,10.0.0.8', '10.0.0.8', true],
    ['*.example.com', 'a.example.com', true],
    ['*.example.com', 'example.com', false],
    ['m?', 'm8', true],
    ['m?', 'm', false],
    ['m*?', 'm', false],
    ['m*?', 'm123', true],
    ['*,!m9', 'm8', true],
    ['*,!m9', 'm9', false],
    ['!m9', 'm8', false],
    ['[m8]:2222', '[m8]:2222', true],
    ['[m8]:2222', 'm8', false],
    ['m.8', 'mx8', false],
  ])('pattern %s against %s: %s', (names, name, expected) => {
    expect(matches(names, name)).toBe(expected)
  })

  it('hides a name by hashing it, and finds it again', () => {
    const line = formatKnownHostsLine('m8.example', blobOf('ssh-ed25519'), true)
    expect(line).not.toContain('m8.example')
    expect(parse(line)[0]?.matches('m8.example')).toBe(true)
    expect(parse(line)[0]?.matches('m9.example')).toBe(false)
  })

  it('hashes a name with HMAC-SHA1', () => {
    const salt = Buffer.alloc(20, 7)
    const expected = createHmac('sha1', salt).update('m8.example').digest('base64')
    expect(matches(`|1|${salt.toString('base64')}|${expected}`, 'M8.example')).toBe(true)
  })

  it('reads back every line that it writes', () => {
    const names = fc.stringMatching(/^[a-z0-9][a-z0-9.-]{0,30}$/)
    fc.assert(
      fc.property(names, fc.boolean(), fc.integer({ min: 0, max: 255 }), (name, isHashed, seed) => {
        const blob = blobOf('ssh-ed25519', seed)
        const [entry] = parse(formatKnownHostsLine(name, blob, isHashed))
        expect(entry?.matches(name)).toBe(true)
        expect(Buffer.compare(entry!.blob, blob)).toBe(0)
      }),
      { numRuns: randomRuns(25) },
    )
  })

  it('survives any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        for (const entry of parse(text)) entry.matches('m8')
      }),
    )
  })
})
