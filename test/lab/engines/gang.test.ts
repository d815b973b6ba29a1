/** The same gang on each engine, in one lab: its ranks find the same variables, and each other. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { KUBERNETES_IMAGE, KUBERNETES_PARTS, KubernetesLab, kubernetesLabOptions } from '../cluster/kubernetes-lab.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../cluster/ray-environment.ts'
import { homesOfSlurm, nodesOf, SLURM_PROGRAMS, SLURM_SECTION, SlurmLab, slurmNames } from '../cluster/slurm-lab.ts'
import { type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement(
  ...['root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'busybox', 'python environments'],
  ...[...SLURM_PROGRAMS, ...KUBERNETES_PARTS, 'containers'],
)

const ENGINES = ['embedded', 'ray', 'slurm', 'k8s'] as const
const KUBERNETES_SECTION = `k8s: { context: lab, namespace: default, image: "${KUBERNETES_IMAGE}", container: { imagePullPolicy: Never } }\n`
/** A process a processor, started for the first job, would be eight here. */
const RAY_VARIABLES = 'RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0'

const TELL = `count() { echo "$1" | tr , '\\n' | grep -c .; }
[ "$MASTER_ADDR" = "\${MUSTER_ADDRESSES%%,*}" ] || echo "other master: $MASTER_ADDR, $MUSTER_ADDRESSES"
[ "\${CUDA_VISIBLE_DEVICES-unset}" = "" ] && [ "\${ROCR_VISIBLE_DEVICES-unset}" = "" ] || echo "devices: $CUDA_VISIBLE_DEVICES"
[ "$MASTER_PORT" -ge 20000 ] || echo "port $MASTER_PORT"
[ -n "$MUSTER_JOB" ] || echo "no job"
echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK"
echo "bundle $MUSTER_RANK of $MUSTER_WORLD_SIZE, attempt $MUSTER_ATTEMPT, $WORD"
echo "$(count "$MUSTER_HOSTS") hosts, $(count "$MUSTER_ADDRESSES") addresses"
`
/** Rank 0 prints what the other one sends it. With a pipe, nc may see the end of its peer's output first, and end without sending. */
const TALK = `if [ "$RANK" = 0 ]; then exec busybox nc -l -p "$MASTER_PORT"; fi
until busybox nc "$MASTER_ADDR" "$MASTER_PORT" 2>/dev/null <<END
hello from $RANK
END
do sleep 0.2; done
`

describe.skipIf(!canRun)('a gang on each engine', { timeout: 900_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    const kubernetes = await kubernetesLabOptions(['real1', 'real2'])
    lab = await startLab({
      names: [...slurmNames(2), ...kubernetes.names],
      perHost: homesOfSlurm(slurmNames(2)),
      mounts: { ...kubernetes.mounts, [RAY_PLACE]: await rayEnvironment() },
    })
    await new SlurmLab(lab, { nodes: nodesOf(2) }).start()
    await new KubernetesLab(lab, { nodes: [] }).start(['real1', 'real2'])
    const [c1, n1, n2] = lab.hosts.map(({ address }) => address)
    const resources = 'resources: { cpu: 4, gpu: 0, memory: 1GiB }'
    const file = join(lab.directory, 'engines.yaml')
    writeFileSync(
      file,
      `cluster: engines
defaults: { user: root }
hosts:
  c1: { address: ${c1} }
  n1: { address: ${n1}, ${resources} }
  n2: { address: ${n2}, ${resources} }
environment: { venv: { path: ${RAY_VENV} } }
ray: { head: n1, workers: n2, port: 6333, object_store: 100MB, env: { ${RAY_VARIABLES} } }
${SLURM_SECTION}${KUBERNETES_SECTION}`,
    )
    queue = labQueue(lab, file)
    const up = await queue.muster('ray', 'up', '--yes')
    expect(up.code, up.stdout + up.stderr).toBe(0)
  }, 1_500_000)
  afterEach(async () => await queue?.stop())
  afterAll(async () => await lab?.stop())

  it('prints the same ranks', async () => {
    const options = ['--cpu', '0.5', '--env', 'WORD=a b', '--bundles']
    const jobs = new Map<string, { one: string; apart: string; tight: string }>()
    for (const engine of ENGINES) {
      const submit = async (...args: readonly string[]) => await queue.submit('--engine', engine, ...args)
      jobs.set(engine, {
        one: await submit(...options, '1', '--', TELL),
        apart: await submit(...options, '2', '--strategy', 'STRICT_SPREAD', '--', TELL + TALK),
        tight: await submit(...options, '2', '--strategy', 'STRICT_PACK', '--', TELL),
      })
    }
    expect(await queue.work().ended).toEqual([0, null])
    const ended = (await queue.list()).map(({ job, state, reason }) => ({ job, state, reason }))
    expect(ended.filter(({ state }) => state !== 'done')).toEqual([])
    const logOf = async (job: string, rank: number) => (await queue.job('logs', job, '--rank', String(rank))).stdout
    const printed = (rank: number, size: number, local = 0) =>
      `rank ${rank} of ${size}, local ${local}\nbundle ${rank} of ${size}, attempt 1, a b\n${size} hosts, ${size} addresses\n`
    for (const [engine, { one, apart, tight }] of jobs) {
      const logs = [
        await logOf(one, 0),
        ...(await Promise.all([0, 1].map((rank) => logOf(apart, rank)))),
        ...(await Promise.all([0, 1].map((rank) => logOf(tight, rank)))),
      ]
      expect(logs, engine).toEqual([
        printed(0, 1),
        `${printed(0, 2)}hello from 1\n`,
        printed(1, 2),
        printed(0, 2),
        // A pod is a host of its own.
        printed(1, 2, engine === 'k8s' ? 0 : 1),
      ])
    }
  })
})
