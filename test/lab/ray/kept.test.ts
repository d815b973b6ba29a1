/** Nodes of Ray that something else keeps: a real systemd, also one of a login's own, and containers of real Dockers on two hosts. */
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
import { LOGIN, LOGIN_HOME, removeCgroup, startLoginSystemd, startSystemd } from './systemd.ts'

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

describe.skipIf(!canRun)('supervised nodes', { timeout: 600_000 }, () => {
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
    lab = await startLab({ names: ['s1', 'u1', 'c1', 'c2'], mounts: { [RAY_PLACE]: await rayEnvironment() } })
    cgroup = basename(lab.directory)
    const [s1, u1, c1, c2] = lab.hosts.map(({ address }) => address)
    const clusters = [
      { name: 's1', hosts: `s1: { address: ${s1}, resources: { cpu: 2, gpu: 0 } }` },
      { name: 'u1', hosts: `u1: { address: ${u1}, user: ${LOGIN}, resources: { cpu: 2, gpu: 0 } }` },
      {
        name: 'c1',
        hosts: `c1: { address: ${c1}, resources: { cpu: 2, gpu: 0 } }, c2: { address: ${c2}, resources: { cpu: 3, gpu: 0 } }`,
      },
    ]
    for (const { name, hosts } of clusters) {
      const directory = join(lab.directory, name)
      mkdirSync(join(directory, 'etc'), { recursive: true })
      writeFileSync(join(directory, 'etc', 'passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
      writeFileSync(join(directory, 'Dockerfile'), DOCKERFILE)
      const environment =
        name !== 'c1'
          ? `venv: { path: ${RAY_VENV} }`
          : `docker: { image: "lab/ray:1", file: Dockerfile, name: node, options: "${OPTIONS}" }`
      writeFileSync(
        join(directory, 'hosts.yaml'),
        `defaults: { user: root }
hosts: { ${hosts} }
environment: { ${environment} }
ray:
  head: ${name}
  object_store: 100MB
  env: { RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0, WORD: ${JSON.stringify(WORD)} }
  ${name !== 'c1' ? 'supervise: systemd' : 'workers: c2\n  auth: token'}
`,
      )
    }
  }, 1_500_000)
  afterAll(async () => {
    await lab?.stop()
    if (cgroup !== '') for (const host of ['s1', 'u1']) await removeCgroup(`${cgroup}-${host}`)
  })

  it('are reported where nothing can supervise them', async () => {
    const { code, stdout } = await muster('s1', 'ray', 'up', '--yes')
    expect(stdout).toContain('! systemd does not manage services for this login')
    expect(code).toBe(5)
  })

  it.each([
    { host: 's1', begin: startSystemd, login: 'root', units: '/etc/systemd/system', ctl: 'systemctl' },
    {
      host: 'u1',
      begin: startLoginSystemd,
      login: LOGIN,
      units: `${LOGIN_HOME}/.config/systemd/user`,
      ctl: 'XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user',
    },
  ])('are restarted by the systemd of $login, and leave nothing behind', async ({ host, begin, login, units, ctl }) => {
    await begin(lab.host(host), `${cgroup}-${host}`)
    const unit = `muster-ray-${host}-6379.service`
    const up = await muster(host, 'ray', 'up', '--yes')
    expect(up.stdout).toContain(`+ ${unit}`)
    expect(up.stdout).toContain(`ray · ${host}: 1 node is alive`)
    expect(up.code).toBe(0)
    if (login === 'root') await on(host, `systemd-analyze verify ${units}/${unit}`)
    const status = await muster(host, 'ray', 'status')
    expect(status.stdout).toContain(`ray · ${host}: systemd keeps it [active, enabled]`)
    const before = await pidsOf(host, 'raylet')
    expect(before).toHaveLength(1)
    expect(await on(host, `stat -c %U /proc/${before[0]}`)).toBe(`${login}\n`)
    const environment = await on(host, `tr '\\000' '\\001' < /proc/${before[0]}/environ`)
    expect(environment.split('\u0001')).toContain(`WORD=${WORD}`)

    await on(host, 'pkill -9 -x gcs_server')
    await waitUntil(
      async () => {
        const again = await pidsOf(host, 'raylet')
        if (again.length !== 1 || again[0] === before[0]) return false
        return (await muster(host, 'ray', 'status')).code === 0
      },
      'the node to be back',
      200_000,
    )
    const down = await muster(host, 'ray', 'down', '--yes')
    expect(down.stdout).toContain(`- ${unit}`)
    expect(down.code).toBe(0)
    expect(await on(host, `ls ${units}; pgrep -x "raylet|gcs_server|monitor.py" || :`)).toBe('')
    const listed = await lab.run(['ssh', `${login}@${host}`, `${ctl} list-units --all --no-legend "muster-*"`])
    expect(listed).toMatchObject({ code: 0, stdout: '' })
    expect((await muster(host, 'ray', 'down', '--yes')).stdout).toContain('no change: nothing to do')
  })

  it('are started inside containers of two hosts, run jobs, and leave the containers running', async () => {
    await Promise.all(['c1', 'c2'].map(async (name) => await startDocker(lab.host(name))))
    const early = await muster('c1', 'ray', 'up', '--yes')
    expect(early.stdout).toContain(
      '! there is no ray in the container node. Create the environment first: muster up env.',
    )
    expect(early.code).toBe(5)
    const up = await muster('c1', 'up', 'env', 'ray', '--yes')
    expect(up.stdout).toContain('ray · c1: 2 nodes are alive')
    expect(up.stdout).toContain('[5 CPU')
    expect(up.code).toBe(0)
    expect((await muster('c1', 'status', 'ray')).code).toBe(0)
    for (const name of ['c1', 'c2']) expect(await on(name, 'docker exec node pgrep -x raylet | wc -l')).toBe('1\n')
    const there = await muster('c1', 'ray', 'submit', '--cpus', '3', '--', 'hostname')
    expect(there).toMatchObject({ code: 0, stdout: expect.stringMatching(/^c2$/m) })
    const job = await muster('c1', 'ray', 'submit', '--', 'printenv', 'WORD')
    expect(job).toMatchObject({ code: 0, stdout: expect.stringContaining(`${WORD}\n`) })
    await waitUntil(async () => {
      const { stdout } = await muster('c1', 'ray', 'watch', '--once')
      return /^c1 \(head\)\t0\/2\t/m.test(stdout) && /^c2\t0\/3\t/m.test(stdout)
    }, 'the nodes to be free again')
    // Whoever stops to look leaves nothing there: Docker would.
    const looks = async () => await lab.host('c1').exec('docker exec node pgrep -f view=summary')
    const watch = muster('c1', 'ray', 'watch', '--interval', '1')
    await waitUntil(async () => (await looks()).code === 0, 'a look')
    await on('c1', 'pkill -9 -f "[d]ocker exec --interactive"')
    expect((await watch).code).toBe(4)
    await waitUntil(async () => (await looks()).code === 1, 'the end of the look')
    const down = await muster('c1', 'down', 'ray', '--yes')
    expect(down.code).toBe(0)
    for (const name of ['c1', 'c2']) {
      expect(await pidsOf(name, 'raylet')).toEqual([])
      expect(await pidsOf(name, 'gcs_server')).toEqual([])
      expect(await on(name, "docker container inspect --format '{{.State.Running}}' node")).toBe('true\n')
    }
    expect((await muster('c1', 'down', 'env', '--yes')).code).toBe(0)
  })
})
