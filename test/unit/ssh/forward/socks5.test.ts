import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isAddress, isPort } from '../../../../src/inventory/host-name.ts'
import { MOST_SOCKS_BYTES, readGreeting, readRequest } from '../../../../src/ssh/forward/socks5.ts'

const request = (type: number, address: readonly number[], port = [0x1f, 0x90], command = 1): Uint8Array =>
  Uint8Array.of(5, command, 0, type, ...address, ...port)
const name = (text: string): number[] => [text.length, ...Buffer.from(text, 'latin1')]

describe('the greeting of a SOCKS client', () => {
  it('is read once it is whole', () => {
    expect(readGreeting(Uint8Array.of(5, 2, 2))).toEqual({ kind: 'more' })
    expect(readGreeting(Uint8Array.of(5, 2, 2, 0, 99))).toEqual({ kind: 'read', value: undefined, usedBytes: 4 })
  })

  it('is refused without a method that needs no password', () => {
    for (const bytes of [
      [5, 0],
      [5, 1, 2],
    ])
      expect(readGreeting(Uint8Array.from(bytes))).toEqual({ kind: 'refused', answer: Uint8Array.of(5, 255) })
  })

  it('is refused without an answer if it is SOCKS 4 or HTTP', () => {
    for (const bytes of [[4, 1], [...Buffer.from('GET / HTTP/1.1')]])
      expect(readGreeting(Uint8Array.from(bytes))).toEqual({ kind: 'refused', answer: new Uint8Array() })
  })
})

describe('the request of a SOCKS client', () => {
  it.each([
    ['an IPv4 address', request(1, [10, 0, 0, 7]), '10.0.0.7'],
    ['an IPv6 address', request(4, [0x20, 1, 0x0d, 0xb8, ...Array(11).fill(0), 1]), '2001:db8:0:0:0:0:0:1'],
    ['a name, which stays one', request(3, name('db.internal')), 'db.internal'],
  ])('has %s', (_, bytes, address) => {
    expect(readRequest(bytes)).toEqual({ kind: 'read', value: { address, port: 8080 }, usedBytes: bytes.length })
    for (let length = 0; length < bytes.length; length += 1)
      expect(readRequest(bytes.subarray(0, length))).toEqual({ kind: 'more' })
  })

  it.each([
    ['BIND', request(1, [10, 0, 0, 7], [0, 80], 2), 7],
    ['an unknown kind of address', request(2, [0, 0]), 8],
    ['a name with a line break', request(3, name('a\nb')), 8],
    ['a name that is an option', request(3, name('-oProxyCommand=x')), 8],
    ['a name of bytes beyond ASCII', request(3, name('d\u00fcb')), 8],
    ['an empty name', request(3, [0]), 8],
    ['port 0', request(1, [10, 0, 0, 7], [0, 0]), 1],
  ])('is refused: %s', (_, bytes, code) => {
    const read = readRequest(bytes)
    expect(read.kind === 'refused' && [...read.answer]).toEqual([5, code, 0, 1, 0, 0, 0, 0, 0, 0])
  })

  it('never takes more than a bounded number of bytes, and only good addresses', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 700 }),
      fc.uint8Array({ maxLength: 700 }).map((rest) => Uint8Array.of(5, 1, 0, 3, ...rest)),
      fc.uint8Array({ maxLength: 700 }).map((rest) => Uint8Array.of(5, 1, 0, 4, ...rest)),
    )
    fc.assert(
      fc.property(bytes, (all) => {
        for (const read of [readGreeting(all), readRequest(all)]) {
          if (read.kind === 'more') expect(all.length).toBeLessThan(MOST_SOCKS_BYTES)
          if (read.kind !== 'read') continue
          expect(read.usedBytes).toBeLessThanOrEqual(MOST_SOCKS_BYTES)
          if (read.value === undefined) continue
          expect(isAddress(read.value.address) && isPort(read.value.port)).toBe(true)
        }
      }),
    )
  })
})
