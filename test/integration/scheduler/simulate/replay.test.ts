import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { WorkloadMix } from '../../../../src/scheduler/model/mix.ts'
import { createPolicy, type PolicyName } from '../../../../src/scheduler/policies/policies.ts'
import { inRankOrder, parseNodes, parsePods, parseSequence } from '../../../../src/scheduler/simulate/openb-trace.ts'
import { type ReplayResult, replayArrivals } from '../../../../src/scheduler/simulate/replay.ts'
import { atOnce } from '../../../support/at-once.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/openb')
const unzip = (file: string) => gunzipSync(readFileSync(join(FIXTURES, file))).toString('utf8')

const nodes = parseNodes(unzip('nodes.csv.gz'))
const pods = parsePods(unzip('pods-multigpu50.csv.gz'))
const counts = { nodeCount: nodes.length, podCount: pods.length }
const sequence = parseSequence(unzip('arrivals-multigpu50-42.txt.gz'), { variant: 'multigpu50', seed: 42 }, counts)
const hosts = inRankOrder(nodes, sequence.ranks)
const published = readFileSync(join(FIXTURES, 'published-multigpu50-42.csv'), 'utf8').split('\n')

/** A replay takes a second on a quiet machine. */
const TIMEOUT_MS = 120_000

const results = new Map<PolicyName, ReplayResult>()

function replayOnce(name: PolicyName): ReplayResult {
  const result = results.get(name) ?? replay(name)
  results.set(name, result)
  return result
}

function replay(name: PolicyName, { isLearning = false, limit = sequence.pods.length } = {}): ReplayResult {
  return atOnce(
    replayArrivals({
      hosts,
      arrivals: sequence.pods.slice(0, limit).map((row) => pods[row]!.request),
      mix: isLearning ? new WorkloadMix() : WorkloadMix.of(pods.map(({ request }) => request)),
      isLearning,
      createPolicy: (cluster, mix) => createPolicy(name, cluster, mix, 42),
      now: () => 0,
    }),
  )
}

describe('the published experiment', { timeout: TIMEOUT_MS }, () => {
  it.each([
    ['fgd', '06-FGD'],
    ['best-fit', '05-BestFit'],
    ['dot-product', '02-DotProd'],
    ['gpu-packing', '04-GpuPacking'],
    ['gpu-clustering', '03-GpuClustering'],
  ] as const)('is replayed with %s to 0.01 point at every percent', (name, column) => {
    const row = published
      .find((line) => line.split(',')[1] === column)!
      .split(',')
      .slice(5)
    const { curve } = replayOnce(name)
    const differences = row.map((text, percent) => Math.abs(Number(text) - Math.round(curve.get(percent)! * 100) / 100))
    expect(row).toHaveLength(131)
    expect(Math.max(...differences)).toBeLessThan(0.0101)
  })

  it('uses more GPUs with the default policy than with any other', () => {
    const others = (['fgd', 'first-fit', 'best-fit'] as const).map((name) => replayOnce(name).curve.get(100)!)
    expect(replayOnce('least-stranding').curve.get(100)).toBeGreaterThan(Math.max(...others))
  })

  it('uses more GPUs than FGD also when the mix is learned', () => {
    const { curve } = replay('least-stranding', { isLearning: true })
    expect(curve.get(100)).toBeGreaterThan(replayOnce('fgd').curve.get(100)!)
  })

  it('is deterministic, random choices included', () => {
    for (const name of ['least-stranding', 'random'] as const) {
      const [one, other] = [replay(name, { limit: 400 }), replay(name, { limit: 400 })]
      expect([...one.cluster.placements()].map(({ host }) => host)).toEqual(
        [...other.cluster.placements()].map(({ host }) => host),
      )
    }
  })
})

it('counts a request that makes half a percent full to the even percent', () => {
  const request = { cpuMilli: 0, memoryBytes: 0, gpuCount: 1, gpuMilli: 1000 }
  const gpus = Array.from({ length: 200 }, () => 'A')
  const { curve } = atOnce(
    replayArrivals({
      hosts: [{ name: 'n0', cpuMilli: 1, memoryBytes: 1, gpus }],
      arrivals: Array.from({ length: 5 }, () => request),
      mix: new WorkloadMix(),
      createPolicy: (cluster, mix) => createPolicy('first-fit', cluster, mix, 1),
      now: () => 0,
    }),
  )
  expect([...curve]).toEqual([
    [0, 0.5],
    [1, 1],
    [2, 2],
  ])
})

describe('a broken trace', () => {
  const NODES = 'sn,cpu_milli,memory_mib,gpu,model'
  const PODS = 'name,cpu_milli,memory_mib,num_gpu,gpu_milli'

  it.each([
    ['sn,cpu_milli,memory_mib\n', 'no column gpu, model'],
    ['', 'no column sn,'],
    [`${NODES}\n\n`, 'the node list is empty'],
    [`${NODES}\nm1,4000,8,99999999,T4\n`, 'line 2: gpu is 99999999, more than 1024'],
    [`${NODES}\nm1,4000,8,1,T4\nm2,9999999999,8,1,T4\n`, 'line 3: cpu_milli is 9999999999, more than'],
    [`${NODES}\nm1,,8,1,T4\n`, "line 2: cpu_milli is ''"],
  ])('of nodes is told by line and column: %j', (text, message) => {
    expect(() => parseNodes(text)).toThrow(message)
  })

  it.each([
    [`${PODS}\np1,4000,8,x,0\n`, "line 2: num_gpu is 'x'"],
    [`${PODS}\np1,4000,8,1,0\n`, 'line 2: the GPU share is 0 milli'],
    [`${PODS}\np1,4000,8,2,500\n`, 'line 2: 2 GPUs of 500 milli each'],
    [`${PODS}\np1,-4,8,0,0\n`, "line 2: cpu_milli is '-4'"],
    [`${PODS},creation_time,deletion_time\np1,4,8,0,0,soon,2\n`, "line 2: creation_time is 'soon'"],
  ])('of pods is told by line and column: %j', (text, message) => {
    expect(() => parsePods(text)).toThrow(message)
  })

  it('of arrivals names what does not fit and which sequences exist', () => {
    const parse = (text: string) => parseSequence(text, { variant: 'v', seed: 1 }, { nodeCount: 2, podCount: 2 })
    expect(() => parse('v 2 P 0\n')).toThrow("no line that begins with 'v 1 P'")
    expect(() => parse('v 2 P 0\n')).toThrow(expect.objectContaining({ hint: 'It has v 2.' }))
    expect(() => parse('')).toThrow("no line that begins with 'v 1 P'")
    expect(() => parse('v 1 P \nv 1 N 0 1\n')).toThrow('v 1 names no pods')
    expect(() => parse('v 1 P 0 7\nv 1 N 0 1\n')).toThrow('beyond the 2')
    expect(() => parse('v 1 P 0\nv 1 N 0 0\n')).toThrow('each of the 2 nodes once')
    expect(() => parse('v 1 P 0\nv 1 N 0 0.5\n')).toThrow('each of the 2 nodes once')
    expect(parse('v 1 P 0 1 0\nv 1 N 1 0\n')).toEqual({ pods: [0, 1, 0], ranks: [1, 0] })
  })

  it('may have a byte order mark, quotes, CRLF, reordered columns and fractional times', () => {
    expect(parseNodes('\ufeffmodel,gpu,"sn",memory_mib,cpu_milli\r\nT4,1,"m1",8,4000.0\r\n')).toEqual([
      { name: 'm1', cpuMilli: 4000, memoryBytes: 8 * 2 ** 20, gpus: ['T4'] },
    ])
    expect(parsePods(`${PODS},creation_time,deletion_time\np1,0,8,0,0,1.5,20\n`)).toMatchObject([
      { name: 'p1', request: { cpuMilli: 100, gpuCount: 0 }, createdAtS: 1, deletedAtS: 20 },
    ])
  })
})
