/** What jobs of an engine need: its form, its place on nodes, and the words for what is missing. */
import { describe, expect, it } from 'vitest'
import type { Strategy } from '../../../../src/scheduler/model/resources.ts'
import type { GroupsPlan } from '../../../../src/scheduler/plans/framework.ts'
import {
  clusterOfNodes,
  type EngineNode,
  fitsIdle,
  keepRoom,
  namesIn,
  needsOf,
  needsText,
  neverWords,
  parseNeeds,
  takeNeeds,
  whyNoRoom,
  withUnknown,
  writeNeeds,
} from '../../../../src/scheduler/plans/needs.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const node = (host: string, total: Record<string, number>, free = total): EngineNode => ({ host, total, free })
const asked = (text: string, own: Record<string, number> = {}) => ({ own, needs: parseNeeds(text) })
const free = (nodes: readonly EngineNode[], what: ReturnType<typeof asked>) =>
  clusterOfNodes(nodes, 'free', namesIn(what))

describe('parseNeeds', () => {
  it.each([
    ['4x{gpu:1,cpu:1} PACK', '4 × {GPU 1, CPU 1} PACK'],
    ['{gpu:1,cpu:1} 2x{cpu:1}', '{GPU 1, CPU 1} + 2 × {CPU 1} PACK'],
    ['2 × {"GPU": 0.5} + {CPU=2, memory=4GiB} strict_spread', '2 × {GPU 0.5} + {CPU 2, memory 4 GiB} STRICT_SPREAD'],
    ['{accelerator_type:A100:0.001, GPU:1}', '{accelerator_type:A100 0.001, GPU 1} PACK'],
    ['{memory:1073741824}', '{memory 1 GiB} PACK'],
  ])('reads %s', (text, words) => {
    expect(needsText(parseNeeds(text))).toBe(words)
  })

  it.each([
    ['', 'write it as'],
    ['4', 'write it as'],
    ['0x{gpu:1}', 'write it as'],
    ['{gpu:1} {', 'write it as'],
    ['{gpu:1} PACKED', 'unknown strategy: PACKED'],
    ['{}', 'a bundle asks for nothing'],
    ['{gpu:0}', 'a bundle asks for nothing'],
    ['{gpu:1.5}', 'must be a whole number'],
    ['{gpu:-1}', 'number of 0 or more'],
    ['{gpu:1e9}', 'too much'],
    ['{memory:1e16}', 'number of 0 or more'],
    ['{gpu}', 'write it as'],
    ['99999x{cpu:1}', 'too many'],
    ['9999x{cpu:1} 9999x{cpu:1}', 'too many'],
    [`{gpu:1}${' '.repeat(5000)}`, 'longer than'],
    ['{g\u001b[31m:x}', 'number of 0 or more'],
  ])('refuses %j', (text, words) => {
    expect(() => parseNeeds(text)).toThrow(words)
  })
})

describe('needsOf', () => {
  const group = (bundles: readonly Record<string, number>[], strategy: Strategy = 'PACK') => ({
    name: 'g',
    bundles,
    strategy,
  })
  const written = (plan: GroupsPlan) => {
    const needs = needsOf(plan)
    return needs && writeNeeds(needs)
  }

  it('adds up groups that are taken one after the other, and is read again as the same', () => {
    const plan: GroupsPlan = {
      groups: [group([{ GPU: 1 }, { GPU: 1 }]), group([{ GPU: 1 }, { CPU: 1 }])],
      shortage: 'hangs',
    }
    expect(written(plan)).toBe('3x{GPU:1} {CPU:1} PACK')
    expect(parseNeeds(written(plan) ?? '')).toEqual(needsOf(plan))
    const model: GroupsPlan = {
      groups: [group([{ CPU: 4, GPU: 0.5, 'accelerator_type:A100': 0.001 }])],
      shortage: 'hangs',
    }
    expect(parseNeeds(written(model) ?? '')).toEqual(needsOf(model))
  })

  it('is one group where the others queue, and nothing where groups differ or do not wait', () => {
    const groups = [group([{ GPU: 1 }], 'SPREAD'), group([{ GPU: 1 }])]
    expect(written({ groups, shortage: 'queues' })).toBe('{GPU:1} SPREAD')
    expect(written({ groups, shortage: 'hangs' })).toBeUndefined()
    expect(written({ groups: [group([{ GPU: 1 }])], shortage: 'fails' })).toBeUndefined()
    expect(written({ groups: [], shortage: 'hangs' })).toBeUndefined()
  })
})

describe('room on nodes', () => {
  it('counts what is free, by node', () => {
    const nodes = [
      node('m1', { CPU: 4, GPU: 4 }, { CPU: 4, GPU: 1.5 }),
      node('m2', { CPU: 4, GPU: 4 }, { CPU: 1, GPU: 4 }),
    ]
    expect(whyNoRoom(free(nodes, asked('5x{gpu:1}')), nodes, asked('5x{gpu:1}'), 'Ray')).toBeUndefined()
    expect(whyNoRoom(free(nodes, asked('{gpu:.5}')), nodes, asked('{gpu:.5}'), 'Ray')).toBeUndefined()
    const many = asked('4x{gpu:1,cpu:1}')
    expect(whyNoRoom(free(nodes, many), nodes, many, 'Ray')).toEqual([
      'Ray has no room for 4 × {GPU 1, CPU 1} PACK: 2 of 4 bundles fit.',
      'Free: m1 1.5 of 4 GPU, 4 of 4 CPU; m2 4 of 4 GPU, 1 of 4 CPU.',
    ])
  })

  it('counts the process of the job itself', () => {
    const nodes = [node('m1', { CPU: 2 })]
    const both = asked('2x{cpu:1}', { CPU: 1 })
    expect(whyNoRoom(free(nodes, both), nodes, both, 'Ray')?.[0]).toBe(
      'Ray has no room for 2 × {CPU 1} PACK and {CPU 1} for the job itself: 1 of 2 bundles fits.',
    )
    expect(fitsIdle(nodes, both)).toBe(false)
    expect(neverWords(nodes, both, 'Ray')).toBe(
      'can never be placed: Ray has no room for 2 × {CPU 1} PACK and {CPU 1} for the job itself, even when it is idle (m1 2 of 2 CPU)',
    )
    expect(fitsIdle(nodes, asked('2x{cpu:1}'))).toBe(true)
  })

  it('takes what no node names as missing, and on declared nodes as unknown', () => {
    const nodes = [node('m1', { CPU: 2, GPU: 1 })]
    const model = asked('{GPU:1, accelerator_type:A100:0.001}')
    expect(fitsIdle(nodes, model)).toBe(false)
    expect(fitsIdle(withUnknown(nodes, model), model)).toBe(true)
    const declared = [node('m1', { CPU: 2, 'accelerator_type:A100': 1 }), node('m2', { CPU: 2 })]
    expect(
      fitsIdle(withUnknown(declared, asked('2x{accelerator_type:A100:1}')), asked('2x{accelerator_type:A100:1}')),
    ).toBe(false)
    const unknown = [node('m1', { CPU: Number.POSITIVE_INFINITY, GPU: 1 })]
    expect(fitsIdle(unknown, asked('{cpu:500,gpu:1}'))).toBe(true)
    expect(neverWords(unknown, asked('{cpu:1,gpu:2}'), 'Ray')).toContain('(m1 CPU unknown, 1 of 1 GPU)')
  })

  it('folds nodes that are alike, and lists a few', () => {
    const alike = ['m1', 'm2', 'm3'].map((name) => node(name, { CPU: 2 }))
    expect(neverWords(alike, asked('{cpu:3}'), 'Ray')).toContain('(m[1-3] 2 of 2 CPU)')
    const apart = Array.from({ length: 10 }, (_, index) => node(`m${index}`, { CPU: index + 1 }))
    expect(neverWords(apart, asked('{cpu:30}'), 'Ray')).toContain('; and 2 more)')
    expect(neverWords([], asked('{cpu:30}'), 'Ray')).toBe('can never be placed: Ray has no nodes')
  })

  it('takes all or nothing, and keeps room for what will be taken', () => {
    const nodes = [node('m1', { CPU: 3, GPU: 2 })]
    const cluster = free(nodes, asked('{gpu:1}'))
    expect(takeNeeds(cluster, asked('3x{gpu:1}', { CPU: 1 }))).toBe(false)
    expect(cluster.cpuLeftMilli[0]).toBe(3000)
    expect(takeNeeds(cluster, asked('2x{gpu:1}', { CPU: 1 }))).toBe(true)
    expect(cluster.gpuLeftMilli[0]).toBe(0)
    keepRoom(cluster, asked('{gpu:1} 9x{cpu:1}'))
    expect(cluster.cpuLeftMilli[0]).toBe(0)
  })

  it('never takes more than is free, whatever is asked', () => {
    const random = seededRandom()
    const upTo = (most: number) => Math.floor(random() * (most + 1))
    for (let round = 0; round < 300; round++) {
      const nodes = Array.from({ length: 1 + upTo(3) }, (_, index) => {
        const total = { CPU: upTo(8), GPU: upTo(4), memory: upTo(8) * 2 ** 30, wheel: upTo(3) }
        const part = (amount: number) => Math.round(amount * random() * 100) / 100
        return node(`m${index}`, total, {
          CPU: part(total.CPU),
          GPU: part(total.GPU),
          memory: part(total.memory),
          wheel: part(total.wheel),
        })
      })
      const bundle = ['{gpu:1}', '{gpu:0.5,cpu:1}', '{cpu:2,wheel:0.5}', '{memory:1GiB}', '{gpu:2}'][upTo(4)]
      const what = asked(`${1 + upTo(4)}x${bundle} ${['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD'][upTo(3)]}`, {
        CPU: upTo(2),
      })
      const cluster = free(nodes, what)
      const before = cluster.copy()
      const why = whyNoRoom(cluster, nodes, what, 'Ray')
      expect(cluster.gpuLeftMilli).toEqual(before.gpuLeftMilli)
      expect(takeNeeds(cluster, what)).toBe(why === undefined)
      for (const left of [cluster.cpuLeftMilli, cluster.gpuLeftMilli])
        expect(Math.min(...left)).toBeGreaterThanOrEqual(0)
      // What fits in what is free fits when nothing runs.
      if (why === undefined) expect(fitsIdle(nodes, what)).toBe(true)
    }
  })
})
