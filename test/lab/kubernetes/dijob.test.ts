/** DIJobs, as `muster import dijob` reads and writes them, on a real API server with the schema of DI-engine's operator. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { KUBERNETES_PARTS, type KubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import type { LabQueue } from '../jobs/lab-queue.ts'
import { kubernetesQueue } from './kubernetes-queue.ts'

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'dijob')
const fixture = (name: string): string => join(FIXTURES, name)

describe.skipIf(!requirement(...KUBERNETES_PARTS))('a DIJob', { timeout: 240_000 }, () => {
  let lab: Lab
  let kubernetes: KubernetesLab
  let queue: LabQueue

  const kubectl = async (...args: readonly string[]) => await lab.run(['kubectl', ...args])
  const imported = async (...args: readonly string[]) => await queue.muster('import', 'dijob', ...args)

  const written = async (...more: readonly string[]) =>
    await queue.job(
      ...['submit', '--engine', 'k8s', '--launch', 'ditask', '--as', 'dijob', '--dry-run', '--name', 'written'],
      ...[
        '--from-env',
        'image:opendilab/ding:latest',
        '--role',
        'learner=1',
        '--role',
        'collector=2',
        '--memory',
        '1GiB',
      ],
      ...['--env', 'SEED=$(X)', '--dir', '/srv', '--limit', '60', '--priority', '1', ...more],
      ...['--', '--package . --main main.main'],
    )

  beforeAll(async () => {
    ;({ lab, kubernetes, queue } = await kubernetesQueue())
    // Before the cluster knows DIJobs.
    const { code, stdout, stderr } = await written()
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "muster: the cluster does not know DIJobs: the CRD of DI-engine's operator is not installed\n",
    })
    expect(stdout).toContain('kind: DIJob')
    expect(await kubectl('apply', '--server-side', '-f', fixture('crd.json'))).toMatchObject({ code: 0 })
    const path = '/apis/diengine.opendilab.org/v2alpha1/namespaces/default/dijobs'
    await waitUntil(async () => (await kubernetes.request('GET', path)).status === 200, 'DIJobs to be known', 120_000)
  })
  afterAll(async () => {
    await lab?.stop()
  })

  it.each(['older', 'current'])('of the %s schema becomes one that the API server accepts', async (name) => {
    const { code, stdout } = await imported(fixture(`${name}.yaml`), '--as', 'dijob')
    expect(code).toBe(0)
    expect(await kubernetes.kubectl('create --validate=strict --dry-run=server -f -', stdout)).toMatch(
      /^dijob\.diengine\.opendilab\.org\/\S+ created \(server dry run\)\n$/,
    )
  })

  it('of the older schema is refused by the API server, and each field that it refuses is explained', async () => {
    const refused = await kubectl('create', '--validate=strict', '-f', fixture('older.yaml'))
    const fields = [...refused.stderr.matchAll(/unknown field "([^"]+)"/g)].map(([, field]) => field)
    expect(fields.toSorted()).toEqual(['spec.maxReplicas', 'spec.minReplicas', 'spec.template'])
    const { stderr } = await imported(fixture('older.yaml'))
    const explained = stderr
      .split('\n')
      .flatMap((line) => /older\.yaml:\d+: (\S+) (?:is now|was removed)/.exec(line)?.[1] ?? [])
    expect(explained.toSorted()).toEqual(fields.toSorted())
  })

  it.each(['older', 'current'])('of the %s schema becomes a job that the API server accepts, too', async (name) => {
    const { stdout } = await imported(fixture(`${name}.yaml`))
    const [program, job, submit, ...words] = (await lab.run(['sh', '-c', `printf '%s\\n' ${stdout}`])).stdout
      .trimEnd()
      .split('\n')
    expect([program, job, submit]).toEqual(['muster', 'job', 'submit'])
    const trial = await queue.job('submit', '--dry-run', ...words)
    expect(trial).toMatchObject({ code: 0, stderr: '' })
    expect(trial.stdout).toContain('Kubernetes accepts it')
    expect(trial.stdout).toContain('image: opendilab/ding:latest')
  })

  it('written from a Muster job is accepted by the API server, once', async () => {
    const { code, stdout, stderr } = await written()
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'muster: Kubernetes accepts it\n' })
    expect(stdout).toContain(
      'ditask --platform k8s --topology star --parallel-workers 1 --labels collector --package .',
    )
    await kubernetes.kubectl('apply --validate=strict -f -', stdout)
    const again = await written()
    expect(again).toMatchObject({ code: 1, stdout })
    expect(again.stderr).toContain('already has a DIJob written')
    expect(await kubectl('delete', 'dijob', 'written')).toMatchObject({ code: 0 })
    const refused = await written('--strategy', 'SPREAD')
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('a DIJob cannot say how its pods are placed')
    const submitted = await queue.job('submit', '--engine', 'k8s', '--as', 'dijob', 'true')
    expect(submitted).toMatchObject({ code: 2, stdout: '' })
    expect(submitted.stderr).toContain('--as dijob can only be used with --engine k8s --launch ditask --dry-run')
  })

  it('with a type that the operator does not know is refused with the types that it knows', async () => {
    const text = readFileSync(fixture('current.yaml'), 'utf8').replace('type: learner', 'type: boss')
    await expect(kubernetes.kubectl('create --dry-run=server -f -', text)).rejects.toThrow(
      'supported values: "learner", "collector", "evaluator", "none"',
    )
  })
})
