/** Whether a host is measured at the address that it gives as its own. */
import { expect, it } from 'vitest'
import { canonicalAddress, refusedClaims } from '../../../../src/ops/net/mesh/claims.ts'

const DECLARED = new Map([
  ['m1', '10.0.0.1'],
  ['m2', 'm2.example.org'],
  ['m3', 'm3.example.org'],
  ['m5', '10.0.0.5'],
  ['m6', 'fd00::6'],
  ['alias', '10.0.0.1'],
])

const refused = (claims: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    refusedClaims(
      Object.entries(claims).map(([name, address]) => ({ name, address })),
      DECLARED,
    ),
  )

it('believes addresses of their own, also two names of one machine', () => {
  expect(refused({ m1: '10.0.0.1', alias: '10.0.0.1', m2: '10.0.0.2', m3: 'fd00::3' })).toEqual({})
  // As the hosts of the demo, which differ only in their ports.
  expect(refused({ m1: '10.1.0.1', alias: '10.1.0.1' })).toEqual({})
  expect(Object.keys(refused({ m1: '10.1.0.1', alias: '10.1.0.1', m3: '10.1.0.1' }))).toEqual(['m1', 'alias', 'm3'])
})

it('believes no host that it has an address which is declared for another one, also outside of the target', () => {
  const [m1, m5, m6] = ['m1', 'm5', 'm6'].map((name) => expect.stringMatching(`which is declared for ${name}$`))
  expect(refused({ m1: '10.0.0.1', m3: '10.0.0.1' })).toEqual({ m3: m1 })
  expect(refused({ m2: '10.0.0.2', m3: '10.0.0.5' })).toEqual({ m3: m5 })
  expect(refused({ m3: 'FD00:0::6' })).toEqual({ m3: m6 })
  expect(refused({ m3: '::ffff:10.0.0.5' })).toEqual({ m3: m5 })
  expect(refused({ m3: '::ffff:a00:5' })).toEqual({ m3: m5 })
  // Its declared address does not give it that of another one.
  expect(refused({ m1: '10.0.0.5' })).toEqual({ m1: m5 })
})

it('believes neither of two hosts that give one address, where none is declared', () => {
  const reason = 'm2 and m3 give the same address, 10.0.0.2. Set their addresses in hosts.yaml'
  expect(refused({ m1: '10.0.0.1', m2: '10.0.0.2', m3: '10.0.0.2' })).toEqual({ m2: reason, m3: reason })
})

it.each([
  '127.0.0.1',
  '127.8.8.8',
  '::1',
  '::',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  'ff02::1',
  '300.1.1.1',
])('sends nothing to %s', (address) => {
  expect(refused({ m3: address })).toEqual({
    m3: `it gives ${address} as its address, where other hosts cannot reach it`,
  })
})

it('knows an address in any spelling', () => {
  expect(canonicalAddress('m1')).toBeUndefined()
  expect(canonicalAddress('FD00::0001')).toBe('fd00::1')
})
