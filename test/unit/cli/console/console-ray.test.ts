import { expect, it, vi } from 'vitest'
import { type ConsoleConnections, createConsoleRay } from '../../../../src/cli/console/console-ops.ts'
import type { RayJobOptions } from '../../../../src/ops/ray/jobs.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'

vi.mock('../../../../src/ops/ray/jobs.ts', async (original) => ({
  ...(await original<object>()),
  askForJobs: async (_wanted: unknown, _order: unknown, { onEvent }: RayJobOptions) => {
    const job = { status: 'RUNNING', entrypoint: 'python train.py', message: '' }
    onEvent({ type: 'job', job: { ...job, id: 'a' } })
    onEvent({ type: 'job', job: { ...job, id: 'longer' } })
    return { kind: 'done' }
  },
}))

it('lists the jobs of Ray with aligned columns', async () => {
  const ray = createConsoleRay({
    fleet: {},
    wires: {},
    inventory: readInventory('hosts: { m1: {} }\nray: { head: m1 }\n'),
    endpoints: async () => [{ host: 'm1', address: '10.0.0.1' }],
    context: { now: () => 0 },
  } as unknown as ConsoleConnections)
  const ended = Promise.withResolvers<string>()
  let shown = ''
  ray.start(
    { do: 'list' },
    {
      onBegin() {},
      onStdout: (bytes) => {
        shown += Buffer.from(bytes)
      },
      onStderr: (bytes) => ended.reject(new Error(String(Buffer.from(bytes)))),
      onEnd: () => ended.resolve(shown),
    },
  )
  expect(await ended.promise).toMatch(/^JOB {5}STATE {4}COMMAND\na {7}RUNNING {2}python train\.py\nlonger {2}RUNNING/)
})
