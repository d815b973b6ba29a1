import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MusterError } from '../../../../src/base/errors.ts'
import {
  type ForwardSpec,
  formatSocketAddress,
  parseDynamicForward,
  parseLocalForward,
  parsePlainForward,
  parseRemoteForward,
  urlOf,
} from '../../../../src/ssh/forward/forward-spec.ts'

/** `127.0.0.1:9000 localhost:80`. */
const shown = (spec: ForwardSpec): string =>
  [spec.listen, ...(spec.kind === 'dynamic' ? [] : [spec.to])].map(formatSocketAddress).join(' ')

describe('a port to forward', () => {
  it.each([
    ['8265', '127.0.0.1:8265 localhost:8265'],
    ['9000:80', '127.0.0.1:9000 localhost:80'],
    ['9000:db:5432', '127.0.0.1:9000 db:5432'],
    ['127.0.0.2:9000:db:5432', '127.0.0.2:9000 db:5432'],
    ['9000:[fe80::1%eth0]:80', '127.0.0.1:9000 [fe80::1%eth0]:80'],
  ])('reads %s', (text, words) => {
    expect(shown(parsePlainForward(text))).toBe(words)
    expect(parsePlainForward(text)).toMatchObject({ kind: 'local', isExact: false })
  })

  it.each([
    ['-L', parseLocalForward, '9000:db:5432', '127.0.0.1:9000 db:5432'],
    ['-L', parseLocalForward, 'localhost:9000:db:5432', '127.0.0.1:9000 db:5432'],
    ['-L', parseLocalForward, '*:9000:db:5432', '*:9000 db:5432'],
    ['-L', parseLocalForward, ':9000:db:5432', '*:9000 db:5432'],
    ['-L', parseLocalForward, '[::1]:9000:[::1]:80', '[::1]:9000 [::1]:80'],
    ['-R', parseRemoteForward, '9000:localhost:80', 'localhost:9000 localhost:80'],
    ['-R', parseRemoteForward, '0:localhost:80', 'localhost:0 localhost:80'],
    ['-R', parseRemoteForward, '*:9000:localhost:80', '*:9000 localhost:80'],
    ['-D', parseDynamicForward, '1080', '127.0.0.1:1080'],
    ['-D', parseDynamicForward, '[::1]:1080', '[::1]:1080'],
  ])('reads %s as ssh does', (_, parse, text, words) => {
    expect(shown(parse(text))).toBe(words)
  })

  it.each([
    [parsePlainForward, '', /is not a port/],
    [parsePlainForward, '0', /is not a port from 1 to 65535/],
    [parsePlainForward, '65536', /is not a port/],
    [parsePlainForward, '8265x', /is not a port/],
    [parsePlainForward, '1:2:3:4:5', /too many parts|is not an IP address/],
    [parseLocalForward, '9000', /the address to connect to is missing/],
    [parseLocalForward, '9000:-oProxyCommand=x:80', /is not the name or address/],
    [parseLocalForward, '9000:/var/run/docker.sock', /sockets with a path/],
    [parseLocalForward, 'elsewhere:9000:db:80', /is not an IP address of this machine/],
    [parseLocalForward, '::1:9000:db:80', /too many parts/],
    [parseLocalForward, '[::1:9000:db:80', /needs brackets/],
    [parseRemoteForward, '9000', /the address on this machine is missing/],
    [parseDynamicForward, '0', /is not a port/],
    [parseDynamicForward, '1:2:3', /too many parts/],
  ])('refuses what is none', (parse, text, reason) => {
    expect(() => parse(text)).toThrow(reason)
  })

  it('listens on loopback only unless an address was given, whatever the text', () => {
    const texts = fc.oneof(
      fc.string(),
      fc
        .array(fc.constantFrom('80', '0', 'db', '*', '', '[::1]', '127.0.0.1', ':', '[', '70000'))
        .map((all) => all.join(':')),
    )
    fc.assert(
      fc.property(texts, (text) => {
        for (const parse of [parsePlainForward, parseLocalForward, parseDynamicForward]) {
          try {
            const { listen } = parse(text)
            expect(listen.port).toBeGreaterThan(0)
            if (text.split(':').length < 4 && parse !== parseDynamicForward) expect(listen.address).toBe('127.0.0.1')
          } catch (error) {
            expect(error).toBeInstanceOf(MusterError)
          }
        }
      }),
    )
  })

  it('has an address for the browser of this machine', () => {
    expect(urlOf({ address: '0.0.0.0', port: 8265 })).toBe('http://127.0.0.1:8265/')
    expect(urlOf({ address: '::1', port: 8265 })).toBe('http://[::1]:8265/')
  })
})
