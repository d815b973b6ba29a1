/** Nodes of Ray that something else keeps: a real systemd, and a container of a real Docker. One head each. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../cluster/ray-environment.ts'
import type { RunResult } from '../cluster/run.ts'
import { startDocker } from '../env/docker-host.ts'
import { removeCgroup, startSystemd } from './systemd.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'ssh',
  'ip',
  'flock',
  'ss',
  'systemctl',
  'dockerd',
  'python environments',
)

/** The container sees the programs of its host: there is no registry that an image with Python could come from. */
const SEEN = ['/usr', '/lib', '/lib64', '/bin', '/sbin', '/etc/alternatives', RAY_PLACE]
  .map((path) => `-v ${path}:${path}:ro`)
  .join(' ')
const OPTIONS = `--network host --shm-size 200m --tmpfs /tmp:exec --tmpfs /root ${SEEN}`
const DOCKERFILE = `FROM scratch
COPY etc /etc
ENV PATH=${RAY_VENV}/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
CMD ["sleep", "infinity"]
`
/** What means something to systemd, to a shell, or ends a word. */
const WORD = 'a "b" $HOME %h \\n `c`'

describe.skipIf(!canRun)('nodes that are kept', { timeout: 600_000 }, () => {
  let lab: Lab
  let cgroup = ''

  const muster = async (host: string, ...args: readonly string[]): Promise<RunResult> =>
    await lab.run(
      [...PROGRAM, '--hosts', join(lab.directory, host, 'hosts.yaml'), '--connect-timeout', '40', ...args],
      { timeoutMs: 400_000 },
    )
  const on = async (host: string, command: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(host).exec(command)
    if (code !== 0) throw new Error(`${command} on ${host}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  /** The host's own view, which has the processes of its containers, too; without those that nobody has reaped there. */
  const pidsOf = async (host: string, name: string): Promise<readonly string[]> => {
    const { stdout } = await lab.host(host).exec(`ps -C ${name} -o pid=,stat=`)
    return [...stdout.matchAll(/(\d+) +[^Z\s]/g)].flatMap(([, pid]) => pid ?? [])
  }

  beforeAll(async () => {
    lab = await startLab({ names: ['s1', 'c1'], mounts: { [RAY_PLACE]: await rayEnvironment() } })
    cgroup = basename(lab.directory)
    for (const [index, { name, address }] of lab.hosts.entries()) {
      const directory = join(lab.directory, name)
      mkdirSync(join(directory, 'etc'), { recursive: true })
      writeFileSync(join(directory, 'etc', 'passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
      writeFileSync(join(directory, 'Dockerfile'), DOCKERFILE)
      const environment =
        index === 0
          ? `venv: { path: ${RAY_VENV} }`
          : `docker: { image: "lab/ray:1", file: Dockerfile, name: node, options: "${OPTIONS}" }`
      writeFileSync(
        join(directory, 'hosts.yaml'),
        `defaults: { user: root }
hosts: { ${name}: { address: ${address}, resources: { cpu: 2, gpu: 0 } } }
environment: { ${environment} }
ray:
  head: ${name}
  object_store: 100MB
  env: { RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0, WORD: ${JSON.stringify(WORD)} }
  ${index === 0 ? 'supervise: systemd' : 'auth: token'}
`,
      )
    }
  }, 1_500_000)
  afterAll(async () => {
    await lab?.stop()
    if (cgroup !== '') await removeCgroup(cgroup)
  })

  it('are told where nothing can keep them', async () => {
    const { code, stdout } = await muster('s1', 'ray', 'up', '--yes')
    expect(stdout).toContain('! no systemd manages services for this login')
    expect(code).toBe(5)
  })

  it('are started again by systemd, and leave nothing', async () => {
    await startSystemd(lab.host('s1'), cgroup)
    const up = await muster('s1', 'ray', 'up', '--yes')
    expect(up.stdout).toContain('+ muster-ray-s1-6379.service')
    expect(up.stdout).toContain('ray · s1: 1 nodes are alive')
    expect(up.code).toBe(0)
    await on('s1', 'systemd-analyze verify /etc/systemd/system/muster-ray-s1-6379.service')
    const status = await muster('s1', 'ray', 'status')
    expect(status.stdout).toContain('ray · s1: systemd keeps it [active, enabled]')
    const before = await pidsOf('s1', 'raylet')
    expect(before).toHaveLength(1)
    const environment = await on('s1', `tr '\\000' '\\001' < /proc/${before[0]}/environ`)
    expect(environment.split('\u0001')).toContain(`WORD=${WORD}`)

    await on('s1', 'pkill -9 -x gcs_server')
    await waitUntil(
      async () => {
        const again = await pidsOf('s1', 'raylet')
        if (again.length !== 1 || again[0] === before[0]) return false
        return (await muster('s1', 'ray', 'status')).code === 0
      },
      'the node to be back',
      200_000,
    )
    const down = await muster('s1', 'ray', 'down', '--yes')
    expect(down.stdout).toContain('- muster-ray-s1-6379.service')
    expect(down.code).toBe(0)
    expect(await on('s1', 'ls /etc/systemd/system; pgrep -x "raylet|gcs_server|monitor.py" || :')).toBe('')
    const units = await lab.run(['ssh', 's1', 'systemctl list-units --all --no-legend "muster-*"'])
    expect(units).toMatchObject({ code: 0, stdout: '' })
    expect((await muster('s1', 'ray', 'down', '--yes')).stdout).toContain('no change: it is as wanted')
  })

  it('are started inside a container, with jobs, and leave the container', async () => {
    await startDocker(lab.host('c1'))
    const up = await muster('c1', 'up', 'env', 'ray', '--yes')
    expect(up.stdout).toContain('ray · c1: 1 nodes are alive')
    expect(up.code).toBe(0)
    expect((await muster('c1', 'status', 'ray')).code).toBe(0)
    expect(await on('c1', 'docker exec node pgrep -x raylet | wc -l')).toBe('1\n')
    const job = await muster('c1', 'ray', 'submit', '--', 'printenv', 'WORD')
    expect(job).toMatchObject({ code: 0, stdout: expect.stringContaining(`${WORD}\n`) })
    expect((await muster('c1', 'ray', 'watch', '--once')).stdout).toMatch(/^c1 \(head\) +0\/2 /m)
    // Whoever stops to look leaves nothing there: Docker would.
    const looks = async () => await lab.host('c1').exec('docker exec node pgrep -f view=summary')
    const watch = muster('c1', 'ray', 'watch', '--interval', '1')
    await waitUntil(async () => (await looks()).code === 0, 'a look')
    await on('c1', 'pkill -9 -f "[d]ocker exec --interactive"')
    expect((await watch).code).toBe(4)
    await waitUntil(async () => (await looks()).code === 1, 'the end of the look')
    const down = await muster('c1', 'down', 'ray', '--yes')
    expect(down.code).toBe(0)
    expect(await pidsOf('c1', 'raylet')).toEqual([])
    expect(await pidsOf('c1', 'gcs_server')).toEqual([])
    expect(await on('c1', "docker container inspect --format '{{.State.Running}}' node")).toBe('true\n')
    expect((await muster('c1', 'down', 'env', '--yes')).code).toBe(0)
  })
})
