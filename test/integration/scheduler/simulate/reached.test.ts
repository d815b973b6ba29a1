/** The results of queue policies and gangs on parts of the data of docs/benchmarks.md: they may get better, not worse. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { QUEUE_POLICIES, type QueuePolicyName } from '../../../../src/scheduler/queue/queue-policies.ts'
import { type GangPolicyName, parseGangInstances, runGangs } from '../../../../src/scheduler/simulate/gang-instances.ts'
import { parseWorkloadLog, runLog, scaleSubmitTimes } from '../../../../src/scheduler/simulate/swf.ts'
import { atOnce } from '../../../support/at-once.ts'

const FIXTURES = join(import.meta.dirname, '../../../fixtures/queue')

describe('the beginning of the NASA iPSC log, submitted 2.5 times as fast', () => {
  const { jobs } = parseWorkloadLog(gunzipSync(readFileSync(join(FIXTURES, 'nasa-3000.swf.gz'))).toString())
  const run = (name: QueuePolicyName) => atOnce(runLog(scaleSubmitTimes(jobs, 0.4), 128, QUEUE_POLICIES[name]()))

  test('gives the known results for published policies', () => {
    const rows = (['fcfs', 'easy', 'conservative', 'sjf'] as const).map((name) => {
      const { averageWaitS, maximumWaitS, utilisationPercent } = run(name)
      return [averageWaitS.toFixed(1), maximumWaitS, utilisationPercent.toFixed(2)]
    })
    expect(rows).toEqual([
      ['83805.7', 160_371, '71.94'],
      ['11616.9', 64_267, '85.97'],
      ['12541.5', 58_895, '86.30'],
      ['4945.0', 525_282, '73.88'],
    ])
  })

  test("the default's longest wait exceeds that of conservative back-fill by a tenth at most, at the same utilisation", () => {
    const ours = run('oldest-reserved')
    const conservative = run('conservative')
    expect(ours.maximumWaitS).toBeLessThanOrEqual(1.1 * conservative.maximumWaitS)
    expect(ours.utilisationPercent).toBeGreaterThanOrEqual(conservative.utilisationPercent)
    expect(ours.averageBoundedSlowdown).toBeLessThan(217)
  })
})

describe('gangs', () => {
  const instances = parseGangInstances(readFileSync(join(FIXTURES, 'gangs.json'), 'utf8'))
  const ratios = (policy: GangPolicyName, window: number) =>
    instances.map((instance) => atOnce(runGangs(instance, policy, window)).ratioToBest ?? 0)

  test('a window comes close to the best known result', () => {
    expect(Math.min(...ratios('window', 64))).toBeGreaterThan(0.99)
  })

  test('placing gangs one by one never uses fewer GPUs than Ray', () => {
    const ours = ratios('window', 1)
    ratios('ray', 1).forEach((ray, index) => {
      expect(ours[index]).toBeGreaterThanOrEqual(ray)
    })
    expect(Math.min(...ours)).toBeGreaterThan(0.7)
  })
})
