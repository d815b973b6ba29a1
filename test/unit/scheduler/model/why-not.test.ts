import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import { fits, spotOn } from '../../../../src/scheduler/model/fits.ts'
import type { HostCapacity, ResourceRequest } from '../../../../src/scheduler/model/resources.ts'
import { type Change, formatReason, reasonsOf, whyNot } from '../../../../src/scheduler/model/why-not.ts'

const GIB = 2 ** 30

const hosts: readonly HostCapacity[] = [
  { name: 'm1', cpuMilli: 4000, memoryBytes: 8 * GIB, gpus: ['T4', 'T4'] },
  { name: 'm2', cpuMilli: 8000, memoryBytes: 16 * GIB, gpus: ['A10'], taints: ['lab'] },
  {
    name: 'm3',
    cpuMilli: 2000,
    memoryBytes: 4 * GIB,
    labels: { zone: 'b' },
    custom: { fpga: { kind: 'unit', count: 1 } },
  },
]

const requests = fc
  .record({
    cpuMilli: fc.constantFrom(0, 1000, 3000, 6000, 9000),
    memoryBytes: fc.constantFrom(0, 2 * GIB, 6 * GIB, 12 * GIB),
    gpu: fc.constantFrom([0, 0], [1, 300], [1, 600], [1, 1000], [2, 1000]),
    gpuModels: fc.constantFrom<string[][]>([], [], ['T4'], ['H100']),
    isZoned: fc.boolean(),
    isTolerant: fc.boolean(),
    fpga: fc.constantFrom(0, 0, 500, 1000),
  })
  .map(
    ({ gpu, isZoned, isTolerant, fpga, ...rest }): ResourceRequest => ({
      ...rest,
      gpuCount: gpu[0]!,
      gpuMilli: gpu[1]!,
      selectors: isZoned ? [{ label: 'zone', is: 'in', values: ['b'] }] : [],
      tolerates: isTolerant ? ['lab'] : [],
      custom: { fpga },
    }),
  )

/** The request as it would be after the change; undefined when the change is not one of the request. */
function changed(request: ResourceRequest, change: Change): ResourceRequest | undefined {
  switch (change.kind) {
    case 'ask-less-cpu':
      return { ...request, cpuMilli: change.cpuMilli }
    case 'ask-less-memory':
      return { ...request, memoryBytes: change.memoryBytes }
    case 'ask-less-gpu':
      return { ...request, gpuCount: change.gpuCount, gpuMilli: change.gpuMilli }
    case 'allow-model':
      return { ...request, gpuModels: [] }
    case 'tolerate':
      return { ...request, tolerates: [...(request.tolerates ?? []), ...change.taints] }
    case 'drop-selectors':
      return { ...request, selectors: (request.selectors ?? []).filter(({ label }) => !change.labels.includes(label)) }
    default:
      return undefined
  }
}

describe('why a request does not go in', () => {
  it('agrees with trying: reasons where it does not fit, changes after which it does, impossible when it never would', () => {
    fc.assert(
      fc.property(
        fc.array(requests, { maxLength: 6 }),
        requests,
        fc.subarray([0, 1, 2]),
        (running, request, drained) => {
          const cluster = new Cluster(hosts)
          for (const one of running) {
            const shape = cluster.shapeOf(one)
            const spot = [0, 1, 2].map((host) => spotOn(cluster, shape, host)).find((found) => found !== undefined)
            if (spot) cluster.take(shape, spot)
          }
          for (const host of drained) cluster.close(host, true)
          const shape = cluster.shapeOf(request)
          const answer = whyNot(cluster, shape)
          for (const { host, reasons } of answer.hosts) expect(reasons.length === 0).toBe(fits(cluster, shape, host))
          const empty = new Cluster(hosts)
          const wouldEver = [0, 1, 2].some((host) => fits(empty, empty.shapeOf(request), host))
          expect(answer.isImpossible).toBe(!wouldEver)
          for (const change of answer.changes) {
            const asked = changed(request, change)
            if (asked) expect(fits(cluster, cluster.shapeOf(asked), change.host)).toBe(true)
            if (change.kind === 'open-host') {
              cluster.close(change.host, false)
              expect(fits(cluster, shape, change.host)).toBe(true)
              cluster.close(change.host, true)
            }
            if (change.kind === 'free') {
              expect(fits(cluster, shape, change.host)).toBe(false)
              expect(fits(empty, empty.shapeOf(request), change.host)).toBe(true)
            }
          }
          // Exhaustively: whatever single amount would do on some host is among the changes.
          const oneLess = [0, 1, 2].flatMap((host) => {
            const cpu = cluster.cpuLeftMilli[host]!
            const asked = cluster.shapeOf({ ...request, cpuMilli: cpu })
            return cpu < request.cpuMilli && fits(cluster, asked, host)
              ? [{ kind: 'ask-less-cpu', host, cpuMilli: cpu }]
              : []
          })
          for (const expected of oneLess) expect(answer.changes).toContainEqual(expected)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('is said host by host, with the smallest change first', () => {
    const cluster = new Cluster(hosts)
    const half = cluster.shapeOf({ cpuMilli: 1000, memoryBytes: GIB, gpuCount: 1, gpuMilli: 500 })
    cluster.take(half, { host: 0, devices: [0] })
    cluster.take(half, { host: 0, devices: [1] })
    const shape = cluster.shapeOf({ cpuMilli: 1000, memoryBytes: GIB, gpuCount: 1, gpuMilli: 800 })
    const { hosts: reasons, changes, isImpossible } = whyNot(cluster, shape)
    expect(reasons.map((one) => one.reasons.map(formatReason))).toEqual([
      ['needs 0.8 of one GPU; none has that free (all 2 together: 1)'],
      ['has taints: lab'],
      ['has no GPU'],
    ])
    expect(isImpossible).toBe(false)
    expect(changes.map(({ kind, host }) => [kind, host])).toEqual([
      ['free', 0],
      ['ask-less-gpu', 0],
      ['tolerate', 1],
    ])
    expect(changes[1]).toEqual({ kind: 'ask-less-gpu', host: 0, gpuCount: 1, gpuMilli: 500 })
  })

  it('is empty where it fits', () => {
    const cluster = new Cluster(hosts)
    const shape = cluster.shapeOf({ cpuMilli: 1000, memoryBytes: GIB, gpuCount: 0, gpuMilli: 0 })
    expect(reasonsOf(cluster, shape, 0)).toEqual([])
  })
})
