/** TensorFlow itself through the queue: parameter servers, a ring of workers, and a program of TensorFlow 1. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../../lab/cluster/python-environment.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../../lab/jobs/lab-queue.ts'
import { requirement } from '../../support/requirements.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'environment tensorflow')

describe.skipIf(!canRun)('a job launched by tf', { timeout: 300_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    const mounts = {
      [ENVIRONMENT_PLACE]: await pythonEnvironment('tensorflow'),
      '/srv': join(packageRoot(), 'test', 'fixtures', 'launch'),
    }
    lab = await startLab({ count: 3, mounts })
    queue = labQueue(lab, hostsFileOf(lab, 'tf', 'cpu: 1, gpu: 0, memory: 4GiB'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it.each([
    [
      'tf_train.py',
      ['chief=1', 'worker=1', 'ps=1'],
      'v on /job:ps/replica:0/task:0/device:CPU:0 = [1.0, 2.0, 3.0, 4.0, 5.0]',
    ],
    ['tf_train.py', ['worker=2'], 'replicas 2 sum [3.0, 3.0, 3.0, 3.0]'],
    ['tf1_train.py', ['worker=1', 'ps=1'], 'w on /job:ps/task:0 results [7.0, 10.0, 0.4]'],
  ])('runs %s as %j, done when its chief or its workers are', async (program, roles, line) => {
    const options = ['--launch', 'tf', '--from-env', `venv:${ENVIRONMENT}`, '--strategy', 'STRICT_SPREAD'] as const
    const id = await queue.submit(...options, ...roles.flatMap((role) => ['--role', role]), '--', `/srv/${program}`)
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.find(id)).toMatchObject({ state: 'done' })
    expect((await queue.job('logs', id)).stdout).toBe(`${line}\n`)
    expect(await queue.show(id)).toMatch(/nothing left on m1 m2/)
  })
})
