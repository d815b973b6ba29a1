/** `muster study import` of an experiment that real Ray Tune runs on a host: while it runs, and when it is over. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../../lab/cluster/python-environment.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'study')
/** Where hosts see the fixtures. */
const PLACE = '/srv'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'environment ray-libraries')

type Line = {
  readonly trial: number
  readonly state: string
  readonly parameters: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<string, number>>
  readonly member: number
  readonly parent?: number
  readonly steps?: readonly (readonly [number, number])[]
}

describe.skipIf(!canRun)('a population of Ray Tune', { timeout: 400_000 }, () => {
  let lab: Lab
  const muster = async (...args: readonly string[]) =>
    await lab.run([...PROGRAM, '--hosts', join(lab.directory, 'tune.yaml'), '--connect-timeout', '40', ...args], {
      timeoutMs: 120_000,
    })
  const trials = async () =>
    (await muster('study', 'export', 'pbt', '--json')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)

  beforeAll(async () => {
    lab = await startLab({
      count: 1,
      mounts: { [ENVIRONMENT_PLACE]: await pythonEnvironment('ray-libraries'), [PLACE]: FIXTURES },
    })
    const hosts = lab.hosts.map(({ name, address }) => `${name}: { address: ${address} }`).join(', ')
    writeFileSync(join(lab.directory, 'tune.yaml'), `cluster: tune\ndefaults: { user: root }\nhosts: { ${hosts} }\n`)
  }, 300_000)
  afterAll(async () => await lab?.stop())

  it('is read while it runs, and has its line of descent and last values at the end', async () => {
    const [host] = lab.hosts
    if (host === undefined) throw new Error('no host')
    const line = `RAY_USAGE_STATS_ENABLED=0 ${ENVIRONMENT}/bin/python -W ignore ${PLACE}/ray_tune.py results 2> ray.err`
    const running = host.exec(line)
    const read = async () => await muster('study', 'import', 'pbt', 'results/pbt', '--on', host.name)
    let isOver = false
    void running.finally(() => {
      isOver = true
    })
    await waitUntil(async () => isOver || (await read()).code === 0, 'the experiment can be read', 120_000)
    const { stdout, code } = await running
    expect(code, (await host.exec('tail -5 ray.err')).stdout).toBe(0)
    expect((await read()).code).toBe(0)
    const results = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as readonly (readonly [number, string, number])[]
    const lines = await trials()
    const last = [0, 1, 2, 3].map((member) => lines.findLast((one) => one.member === member))
    // A place that was given another checkpoint at the very end has no result of its own, and Ray shows that of the other one.
    const textOf = ({ parameters, metrics }: Line) =>
      JSON.stringify([Number(parameters.net_lr), parameters.opt, metrics.loss])
    const [told, here] = [results.map((one) => JSON.stringify(one)), lines.map(textOf)]
    for (const one of told) expect(here).toContain(one)
    for (const one of last) if (one?.metrics.loss !== undefined) expect(told).toContain(textOf(one))
    expect(last.every((one) => one?.state === 'done')).toBe(true)
    // The exchanges that Ray's own record has.
    const exchanges = (await host.exec('cat results/pbt/pbt_global.txt')).stdout.trim().split('\n')
    expect(exchanges.length).toBeGreaterThan(0)
    expect(lines).toHaveLength(4 + exchanges.length)
    expect(lines.filter(({ state }) => state === 'pruned')).toHaveLength(exchanges.length)
    for (const { trial, parent } of lines.slice(4)) expect(parent).toBeLessThan(trial)
    expect(lines[0]?.steps?.[0]?.[0]).toBe(1)
    const { stdout: shown } = await muster('study', 'show', 'pbt')
    expect(shown).toContain('member 0')
    expect(shown).toMatch(/net_lr/)
  })
})
