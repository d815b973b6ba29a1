/** A Slurm whose controller is kept by a real systemd, whose login host is neither controller nor node, and whose login is not root. */
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { SLURM_PROGRAMS } from '../cluster/slurm-lab.ts'
import { removeCgroup, startSystemd } from '../ray/systemd.ts'
import { BareHosts } from './bare-hosts.ts'

/** The login has sudo, and may see neither the munge key nor what root runs. */
const LOGIN = `echo 'pat:x:1556:1556::/run/pat:/bin/bash' >> /etc/passwd
echo 'pat:*:19000:0:99999:7:::' >> /etc/shadow
printf '%s ALL=(ALL:ALL) NOPASSWD: ALL\\n' root pat > /etc/sudoers && chmod 440 /etc/sudoers
mkdir -p /run/pat/.ssh && cp /root/.ssh/authorized_keys /run/pat/.ssh && chown -R 1556:1556 /run/pat && chmod 700 /run/pat/.ssh`

const canRun = requirement(
  ...[
    'root',
    'namespaces',
    'ssh',
    'ip',
    'nsenter',
    'sudo',
    'apt-get',
    'dpkg-deb',
    'systemctl',
    'flock',
    ...SLURM_PROGRAMS,
  ],
)

describe.skipIf(!canRun)('services of Slurm', { timeout: 600_000 }, () => {
  let lab: Lab
  let bare: BareHosts
  let cgroup = ''

  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', join(lab.directory, 'slurm.yaml'), '--connect-timeout', '30', ...args], {
      timeoutMs: 400_000,
    })
  /** As people see the host: inside the namespaces of its systemd. */
  const on = async (name: string, command: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.run(['ssh', `root@${lab.host(name).address}`, command])
    return code === 0 ? stdout : `exit ${code}: ${stdout}${stderr}`
  }

  beforeAll(async () => {
    lab = await startLab({ names: ['c1', 'n1', 'l1'] })
    bare = new BareHosts(lab)
    for (const name of lab.names) {
      await bare.prepare(name, 0)
      await bare.exec(name, LOGIN)
    }
    const hosts = lab.hosts.map(
      ({ name, address }) => `  ${name}: { address: ${address}, resources: { cpu: 2, memory: 1GiB } }\n`,
    )
    const section = 'slurm: { controller: c1, nodes: n1, login: l1, partition: work }\n'
    writeFileSync(
      join(lab.directory, 'slurm.yaml'),
      `cluster: lab\ndefaults: { user: pat }\nhosts:\n${hosts.join('')}${section}`,
    )
    cgroup = basename(lab.directory)
    await bare.exec(
      'c1',
      'echo c1 > /etc/hostname; mount -o remount,ro /usr; mkdir -p /run/units; cp /mnt/units/* /run/units',
    )
    await startSystemd(lab.host('c1'), cgroup)
    expect(await on('c1', 'mount -o remount,rw /usr && systemctl is-system-running')).toMatch(/^(running|degraded)/)
  }, 300_000)
  afterAll(async () => {
    bare?.[Symbol.dispose]()
    await lab?.stop()
    if (cgroup !== '') await removeCgroup(cgroup)
  })

  it('are started, enabled and restarted by systemd, and jobs are submitted from the login host', async () => {
    const { code, stdout } = await muster('up', 'slurm', '--yes')
    expect(stdout).toContain('note  slurm · l1: srun ran a command on n1')
    expect(code).toBe(0)
    expect(await on('c1', 'systemctl is-active munge slurmctld; systemctl is-enabled munge slurmctld')).toBe(
      'active\nactive\nenabled\nenabled\n',
    )
    expect(await bare.exec('l1', "sinfo -h -o '%P %T'")).toBe('work* idle\n')
    expect((await muster('up', 'slurm', '--yes')).stdout).toContain('nothing to do')
    await on('c1', 'systemctl disable --quiet slurmctld; systemctl stop munge')
    const status = (await muster('status', 'slurm')).stdout
    expect(status).toContain('c1: munge: munged is not running')
    expect(status).toContain('slurmctld: slurmctld does not start at boot')
    expect((await muster('up', 'slurm', '--yes')).code).toBe(0)
    expect((await muster('status', 'slurm')).stdout).toContain('3 good')
  })

  it('show another key of munge to a login that may not read it', async () => {
    await on('n1', "printf '%0128d' 7 > /etc/munge/munge.key; kill $(pidof munged)")
    await on('n1', 'setpriv --reuid=munge --regid=munge --clear-groups munged')
    const { stdout } = await muster('status', 'slurm')
    expect(stdout).toMatch(/failed +slurm · n1: its munge key is not the one of c1/)
    const [, command = ''] = /(sudo rm \S+ \S+) on this host, then muster up slurm/.exec(stdout) ?? []
    expect(command && (await on('n1', command))).toBe('')
    const { code, stdout: said } = await muster('up', 'slurm', '--yes')
    expect(said).toContain('bring the munge key from c1')
    expect(code).toBe(0)
  })

  it('are stopped by down', async () => {
    const { code, stdout, stderr } = await muster('down', 'slurm', '--yes')
    expect(code === 0 ? '' : stdout + stderr).toBe('')
    expect(await on('c1', 'systemctl is-active munge slurmctld || :')).toBe('inactive\ninactive\n')
    expect(await on('c1', 'ls -d /etc/munge /var/lib/muster* /etc/slurm/slurm.conf 2> /dev/null || echo none')).toBe(
      'none\n',
    )
  })
})
