/** What a head says of its nodes' resources: read with bounds, less what placement groups hold. */
import { describe, expect, it } from 'vitest'
import { parseRoom } from '../../../../src/ops/ray/room.ts'
import { rayWanted } from './ray-wanted.ts'

const node = (host: string, isHead: boolean) => ({
  host,
  isHead,
  address: `10.0.0.${host.slice(1)}`,
  custom: {},
  labels: {},
})
const wanted = rayWanted({ head: node('m1', true), workers: [node('m2', false)] })
const read = (answer: unknown) => parseRoom(wanted, new Set(['q-1-1-0']), JSON.stringify(answer))

const TEXT = `
 1.0/4.0 CPU
 0.0/2.0 GPU (0.0 used of 1.0 reserved in placement groups)
 0B/8.00GiB memory
 0.0/1.0 accelerator_type:A100
`

describe('the room of a cluster', () => {
  it('is what its nodes have, less what is used or held by placement groups that the text does not know yet', () => {
    const nodes = [
      { ip: '10.0.0.1', text: TEXT, held: { CPU: 3, GPU: 0.5 } },
      { ip: '10.0.0.9', text: ' 0.0/2.0 CPU', held: {} },
    ]
    const own = { CPU: 4, GPU: 2, memory: 8 * 2 ** 30, 'accelerator_type:A100': 1 }
    expect(read({ nodes, taken: { 'q-1-1-0': 4, 'q-2-1-0': 4 } })).toEqual({
      nodes: [
        { host: 'm1', total: own, free: { ...own, CPU: 1, GPU: 1 } },
        { host: '10.0.0.9', total: { CPU: 2 }, free: { CPU: 2 } },
      ],
      taken: { 'q-1-1-0': 4 },
    })
  })

  it('is unknown while a node has not said what it has', () => {
    expect(
      read({
        nodes: [
          { ip: '10.0.0.1', text: TEXT },
          { ip: '10.0.0.2', text: '' },
        ],
        taken: {},
      }),
    ).toBeUndefined()
  })

  it.each([
    ['nothing', ''],
    ['a number', '7'],
    ['no list', '{"nodes":{"a":1}}'],
    ['cut JSON', '{"nodes":['],
  ])('is unknown after %s', (_, text) => expect(parseRoom(wanted, new Set(), text)).toBeUndefined())

  it('is bounded, whatever the head prints', () => {
    const many = Array.from({ length: 1000 }, (_, index) => ({
      ip: index % 2 === 0 ? `10.1.0.${index}` : '10.0.0.1',
      text: Array.from({ length: 100 }, (_, name) => ` 0/1 r${name}`).join('\n'),
      held: { __proto__: 1, r0: -5, r1: 'x', r2: 1e300 },
    }))
    const room = read({ nodes: many, taken: { 'q-1-1-0': -1, __proto__: 3 } })
    expect(room?.nodes.length).toBeLessThanOrEqual(300)
    expect(new Set(room?.nodes.map(({ host }) => host)).size).toBe(room?.nodes.length)
    for (const { total, free } of room?.nodes ?? []) {
      expect(Object.keys(total)).toHaveLength(50)
      for (const [name, amount] of Object.entries(free)) expect(amount).toBeLessThanOrEqual(total[name] as number)
    }
    expect(room?.taken).toEqual({})
    expect(read({ nodes: [{ ip: 'a\u001b[31m', text: ' 0/1 C\u001b[2JPU' }] })?.nodes).toEqual([
      { host: expect.not.stringContaining('\u001b'), total: expect.anything(), free: expect.anything() },
    ])
    expect(
      read({ nodes: [{ ip: '10.0.0.1', text: ' 0/1e999 CPU\n 0/99999999999999999999 GPU\n 0/1 wheel' }] })?.nodes[0]
        ?.total,
    ).toEqual({
      wheel: 1,
    })
  })
})
