/** `npm run bench -- gangs`: how near to the best that is known gangs come, from windows of several sizes and as Ray does it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GangPolicyName, parseGangInstances, runGangs } from '../../src/scheduler/simulate/gang-instances.ts'
import { atOnce } from '../support/at-once.ts'

const WINDOWS = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64]

/** `traces`: the directory that has gangs/gangs.json; without it the instances of the unit tests are taken. */
export function benchGangs(traces: string): string {
  const file =
    traces === '' ? join(import.meta.dirname, '../fixtures/queue/gangs.json') : join(traces, 'gangs/gangs.json')
  const instances = parseGangInstances(readFileSync(file, 'utf8'))
  const row = (name: string, policy: GangPolicyName, window: number) => {
    const cpu = process.cpuUsage()
    const ratios = instances.map((instance) => atOnce(runGangs(instance, policy, window)).ratioToBest ?? 0)
    const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length
    const cpuS = process.cpuUsage(cpu).user / 1e6
    return `| ${name} | ${mean.toFixed(4)} | ${Math.min(...ratios).toFixed(4)} | ${cpuS.toFixed(2)} |`
  }
  return [
    `${instances.length} instances, part of the most GPUs that are known to be possible.`,
    '',
    '| policy | mean | minimum | s of CPU |',
    '| --- | --- | --- | --- |',
    ...WINDOWS.map((window) => row(`window of ${window}`, 'window', window)),
    row('Ray', 'ray', 1),
  ].join('\n')
}
