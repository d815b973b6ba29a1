/** `muster ray` with Ray from PyPI: a head and two workers, what keeps them from starting, and what goes wrong later. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { signalProcess } from '../cluster/processes.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../cluster/ray-environment.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'flock', 'ss', 'nft', 'python environments')

const PACKAGES = `${RAY_VENV}/lib/python3.*/site-packages`
const PORTS = '{ node_manager: 6700, object_manager: 6701, workers: 20000-20099 }'
/** Python runs its lines before any program. */
const STARTUP_FILE = `${PACKAGES}/distutils-precedence.pth`
/** A process a processor, started for the first job, would be thirty-six here. */
const VARIABLES = ['RAY_enable_worker_prestart: 0', 'RAY_prestart_worker_first_driver: 0']
/** Instead of five times the ten seconds after which a heartbeat has failed. */
const QUICK_DEATH = 'RAY_health_check_failure_threshold: 2'
/** Runs until it is killed, and has words in its command line that `ray stop` looks for. */
const BYSTANDER = 'gpu_monitor.py --like raylet --gcs-address=10.81.0.1:6333'

const JOB = `import os, ray, sys, helper
ray.init(log_to_driver=False)
@ray.remote(num_cpus=10)
def where(): return ray.util.get_node_ip_address()
print("ran on", ray.get(where.remote()), "with", ", ".join([str(helper.ANSWER), os.environ["WORD"], sys.argv[1]]))
sys.exit(3)
`

describe.skipIf(!canRun)('muster ray', { timeout: 600_000 }, () => {
  let lab: Lab

  const muster = async (hostsFile: string, ...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', join(lab.directory, hostsFile), '--connect-timeout', '40', ...args], {
      timeoutMs: 400_000,
    })
  const ray = async (...args: readonly string[]) => await muster('ray.yaml', 'ray', ...args)
  const on = async (host: string, command: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(host).exec(command)
    if (code !== 0) throw new Error(`${command} on ${host}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  /** Ids on this machine of the host's processes with this name. */
  const pidsOf = (host: string, name: string): readonly number[] =>
    lab
      .host(host)
      .processes()
      .flatMap((process) => (process.name === name && process.state !== 'Z' ? [process.pid] : []))
  const kill = async (host: string, name: string): Promise<void> => {
    for (const pid of pidsOf(host, name)) signalProcess(pid, 'SIGKILL')
    await waitUntil(() => pidsOf(host, name).length === 0, `the end of ${name} on ${host}`)
  }

  beforeAll(async () => {
    lab = await startLab({
      names: ['m10', 'm8', 'm9'],
      mounts: { [RAY_PLACE]: await rayEnvironment() },
      // The lock, and who watches, keep the one session of their connections.
      perHost: (name) => (name === 'm10' ? { sshdOptions: { MaxSessions: '1' } } : {}),
    })
    const [m10, m8, m9] = lab.hosts.map(({ address }) => address)
    const yaml = (workers: string, ray: string, variables = VARIABLES) => `cluster: lab
defaults: { user: root }
hosts:
  m10: { address: ${m10}, resources: { cpu: 4, gpu: 0 } }
  m8: { address: ${m8}, resources: { cpu: 16, custom: { scratch: 2 } }, labels: { rack: 3 } }
  m9: { address: ${m9}, resources: { cpu: 16 } }
environment: { venv: { path: ${RAY_VENV} } }
ray: { head: m10, workers: "${workers}", port: 6333, object_store: 100MB, labels: rack, env: { ${variables.join(', ')} }${ray} }
`
    writeFileSync(join(lab.directory, 'ray.yaml'), yaml('m[8-9]', ''))
    writeFileSync(
      join(lab.directory, 'token.yaml'),
      yaml('m[8-9]', `, auth: token, ports: ${PORTS}`, [...VARIABLES, QUICK_DEATH]),
    )
    writeFileSync(join(lab.directory, 'loopback.yaml'), yaml('m8', ', node_ips: { m8: 127.0.0.1 }'))
  }, 1_500_000)
  afterAll(async () => await lab?.stop())

  it('reports what would fail before anything starts', async () => {
    await on(
      'm10',
      `mkdir -p /run/empty && for d in ${PACKAGES}/aiohttp_cors; do mount --bind /run/empty $d; done
      setsid python3 -c 'import socket, time; s = [socket.create_server(("", port)) for port in (6333, 8265)]; time.sleep(1e6)' < /dev/null > /dev/null 2>&1 &
      until ss -H -l -t -n | grep -q :8265; do :; done
      nft 'add table ip muster; add chain ip muster in { type filter hook input priority 0 ; }'
      nft 'add rule ip muster in ip saddr 10.81.0.3 tcp dport 10002 drop'`,
    )
    await on(
      'm9',
      `for f in ${PACKAGES}/ray-*.dist-info/METADATA ${PACKAGES}/ray/_version.py; do
        sed -E 's/^(Version: |version = ")[0-9.]+/\\12.9.3/' $f > /run/other; cp /run/other /run/\${f##*/}; mount --bind /run/\${f##*/} $f
      done
      mkdir -p /tmp/ray && mount -t tmpfs -o size=1m tmpfs /tmp/ray && { head -c 2000000 /dev/zero > /tmp/ray/full 2> /dev/null || :; }
      mount -t tmpfs -o size=32m tmpfs /dev/shm
      cp /usr/bin/date /run/date && printf '%s\\n' '#!/bin/sh' 'exec /run/date -d +300seconds "$@"' > /run/later && chmod +x /run/later
      mount --bind /run/later /usr/bin/date`,
    )
    // An interpreter of a later patch version, as far as programs that ask it can see.
    await on(
      'm8',
      `echo 'import sys; sys.version_info = (*sys.version_info[:2], 77, *sys.version_info[3:])' > /run/later.pth
      mount --bind /run/later.pth ${STARTUP_FILE}
      ip route add unreachable 10.81.0.1`,
    )
    const { code, stdout } = await ray('up', '--yes')
    expect(stdout).toContain('! port 6333 for the head is in use by python3 (process ')
    expect(stdout).toContain('! port 8265 for the dashboard is in use by python3 (process ')
    expect(stdout).toMatch(
      /! the Python version differs from the one on m10, .* \[3\.\d+\.77, m10 has 3\.\d+\.\d+\].*VERSION_MATCH_LEVEL: minor/s,
    )
    expect(stdout).toContain('! Ray is installed without [default]: no dashboard, no jobs [aiohttp_cors missing]')
    expect(stdout).toContain('! cannot connect to m10: 10.81.0.1, ports 6333, 10002: a router or firewall answers')
    expect(stdout).toMatch(
      /! the Ray version differs from the one on m10, .* \[2\.9\.3, m10 has 2\.\d+\.\d+\].*\/mnt\/venv\/bin\/python -m pip/,
    )
    // Each with its fix.
    expect(stdout).toMatch(/! cannot connect to m10: 10\.81\.0\.1, port 10002: a firewall drops .*Let m9 reach/)
    expect(stdout).toMatch(/! the clock is ahead of that of m10 \[more than 60 s\] \(there: timedatectl set-ntp true\)/)
    expect(stdout).toMatch(/! the disk of \/tmp\/ray is full: .*\[100 %\]/)
    expect(stdout).toMatch(
      /! \/dev\/shm is smaller than the object store.*\[32\.0 MiB, object_store is 95\.4 MiB\] \(there: mount -o remount,size=\d+ /,
    )
    expect(code).toBe(5)
    // It is what Ray itself would have said.
    const refused = await lab.host('m9').exec(`${RAY_VENV}/bin/python -c 'import ray; print(ray.__version__)'`)
    expect(refused.stdout).toBe('2.9.3\n')
    const loopback = await muster('loopback.yaml', 'ray', 'up', '--yes', '--on', 'm8')
    expect(loopback.stdout).toContain(
      '! it would announce 127.0.0.1, a loopback address, at which other nodes reach themselves',
    )
    expect(['raylet', 'gcs_server'].flatMap((name) => lab.names.flatMap((host) => pidsOf(host, name)))).toEqual([])

    await on('m8', `ip route del unreachable 10.81.0.1; umount ${STARTUP_FILE}`)
    await on(
      'm9',
      `for f in ${PACKAGES}/ray-*.dist-info/METADATA ${PACKAGES}/ray/_version.py /tmp/ray /dev/shm /usr/bin/date; do umount $f; done`,
    )
    await on('m10', `nft delete table ip muster; umount ${PACKAGES}/aiohttp_cors`)
    await kill('m10', 'python3')
  })

  it('reports what a killed start left behind, and removes it', async () => {
    await on(
      'm10',
      `setsid ${RAY_VENV}/bin/ray start --head --port=6333 --node-ip-address=10.81.0.1 --object-store-memory=100000000 \
        < /dev/null > /dev/null 2>&1 &
      echo $! > /run/start`,
    )
    await waitUntil(() => pidsOf('m10', 'gcs_server').length > 0, 'a GCS')
    await on('m10', 'kill -9 "$(cat /run/start)"')
    const { code, stdout } = await ray('status')
    expect(stdout).toMatch(/^differs {2}ray · m10: head node: it has no raylet/m)
    expect(code).toBe(1)
    expect((await ray('down', '--yes')).code).toBe(0)
    expect(pidsOf('m10', 'gcs_server')).toEqual([])
    // Of a session that nothing remembers.
    await on('m10', 'ln -sfn session_gone /tmp/ray/session_latest; echo 10.81.0.1:6333 > /tmp/ray/ray_current_cluster')
  })

  it('starts the cluster on untouched hosts', async () => {
    const { code, stdout } = await ray('up', '--yes')
    expect(stdout).toContain('ray · m10: 3 nodes are alive')
    expect(stdout).toContain('[36 CPU')
    expect(code).toBe(0)
    // It is some seconds behind.
    await waitUntil(async () => {
      const status = await on('m10', `${RAY_VENV}/bin/ray status --address=10.81.0.1:6333`)
      return status.includes(' 0.0/36.0 CPU\n') && status.includes(' 0.0/2.0 scratch\n')
    }, 'ray status to agree')
  })

  it('runs a job with a local directory on a worker, returns its exit code, and shows the nodes', async () => {
    const directory = join(lab.directory, 'job')
    mkdirSync(directory)
    writeFileSync(join(directory, 'helper.py'), 'ANSWER = 42\n')
    writeFileSync(join(directory, 'job.py'), JOB)
    // Ten processors: no head has so many.
    const job = await ray(
      'submit',
      '--working-dir',
      directory,
      '--env',
      'WORD=a b',
      '--id',
      'one',
      '--',
      'python',
      'job.py',
      'c d',
    )
    expect(job.stdout).toMatch(/^ran on 10\.81\.0\.[23] with 42, a b, c d$/m)
    expect(job.stderr).toContain('muster: job one: Job entrypoint command failed with exit code 3\n')
    expect(job.code).toBe(3)
    const jobs = await ray('jobs')
    expect(jobs.stdout).toMatch(/^one\tFAILED\t.*\tpython job\.py 'c d'$/m)
    expect((await ray('logs', 'one')).stdout).toBe(job.stdout)
    await waitUntil(async () => {
      const { stdout } = await ray('watch', '--once')
      return /^m10 \(head\)\t0\/4\t/m.test(stdout) && /^m8\t0\/16\t.*\t0\/2\t/m.test(stdout)
    }, 'the nodes to be free again')
  })

  it('stops a job that runs in the background', async () => {
    const job = await ray('submit', '--no-wait', '--id', 'two', '--', 'sleep', 'infinity')
    expect(job).toMatchObject({ code: 0, stderr: 'muster: job two\n' })
    expect(await ray('stop', 'two')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^two: (stopped|still pending.*)\n$/),
    })
    await waitUntil(async () => /^two\tSTOPPED\t/m.test((await ray('jobs')).stdout), 'the end of the job')
  })

  it('restarts a worker, and leaves the others alone', async () => {
    const before = { m8: pidsOf('m8', 'raylet'), m9: pidsOf('m9', 'raylet') }
    const { code, stdout } = await ray('restart', 'm8', '--yes')
    expect(stdout).toContain('- raylet (process ')
    expect(code).toBe(0)
    expect(pidsOf('m8', 'raylet')).toHaveLength(1)
    expect(pidsOf('m8', 'raylet')).not.toEqual(before.m8)
    expect(pidsOf('m9', 'raylet')).toEqual(before.m9)
  })

  it('changes nothing the second time', async () => {
    const { code, stdout } = await ray('up', '--yes')
    expect(stdout).toContain('no change: nothing to do')
    expect(code).toBe(0)
  })

  it('reports a doubled node and a dead raylet, and up repairs both', async () => {
    await on(
      'm8',
      `timeout 120 ${RAY_VENV}/bin/ray start --address=10.81.0.1:6333 --node-ip-address=10.81.0.2 --num-cpus=16 --object-store-memory=100000000`,
    )
    expect(pidsOf('m8', 'raylet')).toHaveLength(2)
    await kill('m9', 'raylet')
    const status = await ray('status')
    expect(status.stdout).toMatch(/^good {5}ray · m10/m)
    expect(status.stdout).toMatch(/^(missing|differs) {2}ray · m9/m)
    const { code, stdout } = await ray('up', '--yes')
    expect(stdout).toContain('~ 2 raylets serve this cluster, and its resources count 2 times')
    expect(code).toBe(0)
    expect(pidsOf('m8', 'raylet')).toHaveLength(1)
  })

  it('reports a killed head in a line, and recovers it with its workers, now with a token', async () => {
    await kill('m10', 'gcs_server')
    expect((await ray('status')).stdout).toMatch(/^differs {2}ray · m10: head node: its GCS is gone/m)
    const look = await ray('watch', '--once')
    expect(look.stderr).toContain('Ray: the head on m10 does not answer: its GCS does not answer at 10.81.0.1:6333')
    expect(look.code).toBe(1)
    const { code, stdout } = await muster('token.yaml', 'ray', 'up', '--yes')
    expect(stdout).toContain('~ its GCS is gone, and these processes are left')
    expect(stdout).toContain('ray · m10: 3 nodes are alive')
    expect(stdout).toContain('[36 CPU')
    expect(code).toBe(0)
    expect((await ray('status')).stdout).toContain('gives no answer: it asks for a token that this login has not')
    const job = await muster('token.yaml', 'ray', 'submit', '--', 'echo', 'let in')
    expect(job).toMatchObject({ code: 0, stdout: expect.stringContaining('let in\n') })
    expect(await on('m9', 'ss -H -l -t -n -p')).toMatch(/:6700 .*raylet/)
    const token = await on('m10', 'stat -c %a ~/.ray/muster/m10-6333/auth_token; cat ~/.ray/muster/*/auth_token')
    expect(token).toMatch(/^600\n[0-9a-f]{64}$/)
    for (const host of ['m8', 'm9']) {
      expect(await on(host, 'stat -c %a ~/.ray/muster/*/auth_token; cat ~/.ray/muster/*/auth_token')).toBe(token)
    }
  })

  it('reports a worker whose link is cut when its heartbeat fails, and restores it', async () => {
    const untilWatchShows = async (pattern: RegExp) => {
      let watch = { code: 0, stdout: '', stderr: '' }
      await waitUntil(
        async () => {
          watch = await muster('token.yaml', 'ray', 'watch', '--once')
          return pattern.test(watch.stdout)
        },
        () => `${pattern} in ${watch.stdout}${watch.stderr}exit ${watch.code}`,
        120_000,
      )
    }
    await lab.host('m9').linkDown()
    await untilWatchShows(/^dead: m9: /m)
    await lab.host('m9').linkUp()
    expect(await muster('token.yaml', 'ray', 'up', '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ray · m10: 3 nodes are alive'),
    })
    // Its summary of nodes is some seconds behind.
    await untilWatchShows(/^m9\t0\/16\t/m)
    const { stdout } = await muster('token.yaml', 'ray', 'watch', '--once', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ type: 'usage', groups: [], demands: [] })
  })

  it('stops every process of the cluster and no other', async () => {
    await on('m8', `setsid sh -c 'sleep infinity; : ${BYSTANDER}' < /dev/null > /dev/null 2>&1 &`)
    const { code } = await ray('down', '--yes')
    expect(code).toBe(0)
    for (const host of lab.names) {
      const lines = await on(host, 'for f in /proc/[0-9]*/cmdline; do tr "\\000" " " < $f | cut -c 1-300; echo; done')
      expect(
        lines
          .split('\n')
          .filter(
            (line) => /raylet|gcs_server|ray::|-packages\/ray\/|forkserver/.test(line) && !line.includes('/proc/'),
          ),
      ).toEqual(host === 'm8' ? [expect.stringContaining(BYSTANDER)] : [])
    }
    expect((await ray('down', '--yes')).stdout).toContain('no change: nothing to do')
  })
})
