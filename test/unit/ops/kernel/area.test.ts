import { expect, it } from 'vitest'
import { areaOf } from '../../../../src/ops/kernel/area.ts'

const digestOf = (wanted: unknown) =>
  areaOf({ name: 'one', hostsOf: () => [], factsOf: () => ({}), plan: () => [] }, wanted).digest()

it('tells that an area wants something else, also in maps and sets', () => {
  const wanted = (host: string, port: number) => ({ ports: new Map([[host, port]]), hosts: new Set([host]) })
  expect(digestOf(wanted('m1', 1))).toBe(digestOf(wanted('m1', 1)))
  expect(new Set([wanted('m1', 1), wanted('m1', 2), wanted('m2', 1)].map(digestOf)).size).toBe(3)
})
