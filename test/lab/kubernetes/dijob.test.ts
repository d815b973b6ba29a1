/** DIJobs, as `muster import dijob` reads and writes them, on a real API server with the schema of DI-engine's operator. */
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { KUBERNETES_PARTS, KUBERNETES_SECTION, type KubernetesLab, kubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'dijob')
const fixture = (name: string): string => join(FIXTURES, name)

describe.skipIf(!requirement(...KUBERNETES_PARTS))('a DIJob', { timeout: 240_000 }, () => {
  let lab: Lab
  let kubernetes: KubernetesLab
  let queue: LabQueue

  const kubectl = async (...args: readonly string[]) => await lab.run(['kubectl', ...args])
  const imported = async (...args: readonly string[]) => await queue.muster('import', 'dijob', ...args)

  beforeAll(async () => {
    ;({ lab, kubernetes } = await kubernetesLab())
    const file = hostsFileOf(lab, 'dijob')
    appendFileSync(file, KUBERNETES_SECTION)
    queue = labQueue(lab, file)
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
      .flatMap((line) => /older\.yaml:\d+: (\S+) is (?:now|gone)/.exec(line)?.[1] ?? [])
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

  it('with a type that the operator does not know is refused with the types that it knows', async () => {
    const text = readFileSync(fixture('current.yaml'), 'utf8').replace('type: learner', 'type: boss')
    await expect(kubernetes.kubectl('create --dry-run=server -f -', text)).rejects.toThrow(
      'supported values: "learner", "collector", "evaluator", "none"',
    )
  })
})
