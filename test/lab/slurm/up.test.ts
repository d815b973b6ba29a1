/** `muster up slurm` on hosts without Slurm: installed, verified by a real srun, mended after each fault, and removed without a trace. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { signalProcess } from '../cluster/processes.ts'
import type { RunResult } from '../cluster/run.ts'
import { homesOfSlurm, SLURM_PROGRAMS, SLURM_SECTION, slurmLab } from '../cluster/slurm-lab.ts'
import { hostsFileOf, labQueue } from '../jobs/lab-queue.ts'
import { BareHosts } from './bare-hosts.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'ssh',
  'ip',
  'nsenter',
  'apt-get',
  'dpkg-deb',
  'python3',
  'ss',
  'iptables',
  ...SLURM_PROGRAMS,
)

const GPUS: Record<string, number> = { c1: 0, n1: 2, n2: 1 }
const NAMES = Object.keys(GPUS)
const DAEMONS = ['munged', 'slurmctld', 'slurmd', 'slurmstepd']
/** All that the area may leave. */
const TRACES = `for each in /etc/slurm/*.conf /etc/slurm/*.muster-before /etc/munge /var/lib/muster /var/lib/muster-slurm /run/munge /run/slurm*; do
  [ ! -e "$each" ] || ls -d "$each"
done
dpkg-query -W -f '\${db:Status-Status} \${Package}\\n' munge slurm-client slurmctld slurmd 2> /dev/null | grep '^installed' || :`

describe.skipIf(!canRun)('muster up slurm', { timeout: 900_000 }, () => {
  let lab: Lab
  let bare: BareHosts

  const declare = (section: string) => {
    const hosts = lab.hosts.map(
      ({ name, address }) =>
        `  ${name}: { address: ${address}, resources: { cpu: 2, memory: 1GiB, gpu: ${GPUS[name]} } }\n`,
    )
    const text = `cluster: lab\ndefaults: { user: root }\nhosts:\n${hosts.join('')}${section}`
    writeFileSync(join(lab.directory, 'slurm.yaml'), text)
  }
  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', join(lab.directory, 'slurm.yaml'), '--connect-timeout', '30', ...args], {
      timeoutMs: 400_000,
    })
  const status = async () => (await muster('status', 'slurm')).stdout
  const pidsOf = (host: string, daemon: string) =>
    lab
      .host(host)
      .processes()
      .filter(({ name, state }) => name === daemon && state !== 'Z')
      .map(({ pid }) => pid)
  const kill = async (host: string, daemon: string, signal: NodeJS.Signals = 'SIGKILL') => {
    for (const pid of pidsOf(host, daemon)) signalProcess(pid, signal)
    await waitUntil(() => pidsOf(host, daemon).length === 0, `the end of ${daemon} on ${host}`)
  }
  const up = async () => {
    const { code, stdout, stderr } = await muster('up', 'slurm', '--yes')
    expect(code === 0 ? '' : stdout + stderr).toBe('')
    return { code, stdout }
  }
  const traces = async () => await Promise.all(NAMES.map(async (name) => await bare.exec(name, TRACES)))
  const nodes = async () => (await bare.exec('c1', "sinfo -h -N -o '%N %T'")).trim().split('\n')

  beforeAll(async () => {
    lab = await startLab({ names: NAMES, perHost: homesOfSlurm(['n1', 'n2']) })
    bare = new BareHosts(lab)
    for (const name of NAMES) await bare.prepare(name, GPUS[name] ?? 0)
    declare('slurm: { controller: c1, nodes: "n[1-2]" }\n')
  }, 300_000)
  afterAll(async () => {
    bare?.[Symbol.dispose]()
    await lab?.stop()
  })

  it('sets up the cluster from bare hosts, and runs a command on each node and on a GPU', async () => {
    expect(await traces()).toEqual(['', '', ''])
    expect(await status()).toMatch(/missing +slurm · c1/)
    const { code, stdout } = await muster('up', 'slurm', '--yes', '-v')
    expect(code).toBe(0)
    expect(stdout).toContain('srun ran a command on n[1-2]')
    expect(stdout).toMatch(/srun gave a command GPU \d of n[12]/)
    expect((await nodes()).sort()).toEqual(['n1 idle', 'n2 idle'])
    expect(
      await bare.exec('c1', 'sbatch --wait --parsable -o /tmp/out --mem=10 -w n1 --gres=gpu:2 --wrap true; echo $?'),
    ).toMatch(/^\d+\n0\n$/)
    expect(await bare.exec('c1', 'cat /var/lib/muster-slurm/log/jobs.log')).toContain('JobState=COMPLETED')
  })

  it('runs a gang of the queue', async () => {
    const queue = labQueue(lab, join(lab.directory, 'slurm.yaml'))
    try {
      const id = await queue.submit(
        ...['--engine', 'slurm', '--bundles', '2', '--gpu', '1', '--strategy', 'STRICT_SPREAD', '--', 'hostname'],
      )
      queue.work()
      await waitUntil(async () => (await queue.find(id)).state === 'done', 'the job to end', 60_000)
      const output = await bare.exec('c1', `cat .local/state/muster/jobs/*-${id}-1-0-*/out.*`)
      expect(output.trim().split('\n').sort()).toEqual(['n1', 'n2'])
    } finally {
      await queue.stop()
    }
  })

  it('has one key on all hosts, which is shown and written nowhere else', async () => {
    const keys = await Promise.all(NAMES.map(async (name) => await bare.exec(name, 'cat /etc/munge/munge.key')))
    const [key = ''] = keys
    expect(key).toMatch(/^[0-9a-f]{128}$/)
    expect(new Set(keys).size).toBe(1)
    const modes = await bare.exec('n1', 'stat -c "%a %U" /etc/munge/munge.key /etc/munge')
    expect(modes).toBe('400 munge\n700 munge\n')
    const again = await muster('up', 'slurm', '--yes', '--json')
    const kept = await lab.run(['grep', '-r', '-l', key.slice(0, 40), join(lab.directory, 'home')])
    expect([again.stdout.includes(key.slice(0, 40)), kept.stdout]).toEqual([false, ''])
  })

  it('has nothing to do the second time', async () => {
    const { code, stdout } = await muster('up', 'slurm', '--yes')
    expect([code, stdout]).toEqual([0, expect.stringContaining('nothing to do')])
    expect(await status()).toMatch(/3 good/)
  })

  it('gives a host the key of the cluster again, and shows no key in the output of the steps', async () => {
    const key = await bare.exec('c1', 'cat /etc/munge/munge.key')
    await bare.exec('n2', `printf '%0128d' 7 > /etc/munge/munge.key`)
    await kill('n2', 'munged')
    await bare.exec('n2', 'setpriv --reuid=munge --regid=munge --clear-groups munged')
    expect(await status()).toContain('n2: munge: its munge key is not the one of c1')
    const { code, stdout } = await muster('up', 'slurm', '--yes', '-v', '--json')
    expect(code).toBe(0)
    expect(stdout).toContain('bring the munge key from c1')
    expect(stdout).not.toContain(key.slice(0, 40))
    expect(await bare.exec('n2', 'cat /etc/munge/munge.key')).toBe(key)
    expect(await status()).toMatch(/3 good/)
  })

  it('finds munged with another key than the file, by a credential of each host on each other one', async () => {
    await kill('n1', 'munged')
    await bare.exec(
      'n1',
      `cp -p /etc/munge/munge.key /etc/munge/kept && printf '%0128d' 7 > /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups munged; munge -n > /dev/null; mv /etc/munge/kept /etc/munge/munge.key`,
    )
    const text = await status()
    expect(text).toMatch(
      /failed +slurm · n1: its munge key is not the one of c1: credentials of the one are invalid on the other/,
    )
    expect(text).toMatch(/good +slurm · c1,n2/)
    await kill('n1', 'munged')
    expect(await status()).toContain('n1: munge: munged is not running')
    expect((await up()).code).toBe(0)
  })

  it('writes slurm.conf again where it was changed', async () => {
    await bare.exec('n1', 'echo "# mine" >> /etc/slurm/slurm.conf')
    expect(await status()).toContain('n1: configuration: /etc/slurm/slurm.conf differs from hosts.yaml')
    expect((await up()).stdout).toContain('- # mine')
    expect(
      await bare.exec('n1', 'cmp /etc/slurm/slurm.conf - < /etc/slurm/slurm.conf; tail -n 1 /etc/slurm/slurm.conf'),
    ).toMatch(/^PartitionName=main/)
    await bare.exec('n2', 'rm /etc/slurm/slurm.conf')
    expect(await status()).toContain('n2: configuration: /etc/slurm/slurm.conf differs from hosts.yaml')
    expect((await up()).code).toBe(0)
  })

  it('refuses a host whose name is not that of its node', async () => {
    await bare.exec('n2', 'hostname other')
    const text = await status()
    expect(text).toMatch(/blocked +slurm · n2: its host name is other, so slurmd would not find n2 in slurm.conf/)
    expect(text).toContain('sudo hostnamectl set-hostname n2')
    await bare.exec('n2', 'hostname n2')
  })

  it('starts what was killed, and the job of a node goes on', async () => {
    const job = (
      await bare.exec(
        'c1',
        "sbatch --parsable -D /tmp -o /tmp/out --mem=10 -w n1 --wrap 'touch /tmp/began; while [ ! -e /tmp/stop ]; do sleep 0.2; done'",
      )
    ).trim()
    const stateOf = async () => (await bare.exec('c1', `squeue -h -t all -j ${job} -o %T`)).trim()
    // It is RUNNING before slurmd has started it, and without that it would be queued again.
    const hasBegun = async () => (await bare.exec('n1', 'ls /tmp')).includes('began')
    await waitUntil(hasBegun, 'the job to run', 60_000)
    await kill('n1', 'slurmd')
    // It saves its state first: a job that has just started would be lost.
    await kill('c1', 'slurmctld', 'SIGTERM')
    const text = await status()
    expect(text).toContain('n1: slurmd: slurmd is not running')
    expect(text).toContain('c1: slurmctld: slurmctld is not running')
    expect((await up()).code).toBe(0)
    // The step of the last check may still be ending.
    await waitUntil(() => pidsOf('n1', 'slurmstepd').length === 1, 'one step on n1, that of the job', 60_000)
    expect(await stateOf()).toBe('RUNNING')
    await bare.exec('n1', 'touch /tmp/stop')
    await waitUntil(async () => (await stateOf()) === 'COMPLETED', 'the job to end', 60_000)
  })

  it('does nothing that would lose a job, and what else changes, changes beside it', async () => {
    const sbatch = async (options: string) =>
      (await bare.exec('c1', `sbatch --parsable -D /tmp -o /dev/null --mem=10 ${options} --wrap 'sleep 600'`)).trim()
    const stateOf = async (job: string) => (await bare.exec('c1', `squeue -h -t all -j ${job} -o %T`)).trim()
    const job = await sbatch('-w n1 -J train --gpus=1')
    const waiting = await sbatch('--hold -J eval')
    await waitUntil(async () => (await stateOf(job)) === 'RUNNING', 'the job to run', 60_000)
    const refused = async (section: string, ...causes: readonly string[]) => {
      declare(section)
      const { code, stdout } = await muster('up', 'slurm', '--yes')
      expect(code).not.toBe(0)
      for (const cause of causes) expect(stdout).toContain(cause)
      expect(stdout).not.toContain('jobs go on')
    }
    const fix = `(there: sudo scancel ${job}`
    await refused(
      'slurm: { controller: c1, nodes: "n[1-2]", partition: other }\n',
      `2 jobs would be lost: the partition main goes [${job} (train, of root), ${waiting} (eval, of root)]`,
      `${fix} ${waiting})`,
    )
    const without = await sbatch('--hold --exclude=n1 -J rest')
    await refused(
      'slurm: { controller: c1, nodes: n2 }\n',
      `2 jobs would be lost: n1 leaves the cluster [${job} (train, of root), ${without} (rest, of root)]`,
    )
    await bare.exec('c1', `scancel ${without}`)
    GPUS.n1 = 1
    await refused(
      'slurm: { controller: c1, nodes: "n[1-2]" }\n',
      `1 job would be lost: n1 gets another number of GPUs [${job} (`,
    )
    GPUS.n1 = 2
    const onGpu = await sbatch('--hold -J gpu --gpus-per-node=1')
    GPUS.n1 = GPUS.n2 = 0
    await refused('slurm: { controller: c1, nodes: "n[1-2]" }\n', 'no node has GPUs any more', onGpu)
    GPUS.n1 = 2
    GPUS.n2 = 1
    await bare.exec('c1', `scancel ${onGpu}`)
    await refused(
      'slurm: { controller: n2, nodes: "n[1-2]" }\n',
      '2 jobs would be lost: n2, the new controller, does not know what c1 runs',
    )
    // Nobody declares the cluster any more, and it still runs jobs.
    declare('')
    const { stdout: left } = await muster('left', '--area', 'slurm', 'all')
    expect(left).toContain('its slurmctld has 2 jobs: ')
    expect(left).not.toMatch(/^c1 .* left$/m)
    // A slurmctld without its state would kill them.
    await kill('c1', 'slurmctld', 'SIGTERM')
    await bare.exec('c1', 'mv /var/lib/muster-slurm /var/lib/away')
    await refused(
      'slurm: { controller: c1, nodes: "n[1-2]" }\n',
      '1 step of jobs would be killed: c1 has no state of them',
    )
    await bare.exec('c1', 'mv /var/lib/away /var/lib/muster-slurm && slurmctld')
    await waitUntil(async () => (await stateOf(job)) === 'RUNNING', 'slurmctld to know the job again', 60_000)
    declare('slurm: { controller: c1, nodes: "n[1-2]", shards_per_gpu: 4 }\n')
    expect((await up()).stdout).toContain('restart slurmctld (jobs go on)')
    expect([await stateOf(job), await stateOf(waiting)]).toEqual(['RUNNING', 'PENDING'])
    await bare.exec('c1', `scancel ${job} ${waiting}`)
    await waitUntil(() => pidsOf('n1', 'slurmstepd').length === 0, 'the job to end', 60_000)
    declare('slurm: { controller: c1, nodes: "n[1-2]", partition: other }\n')
    await up()
    expect(await bare.exec('c1', 'sinfo -h -o %R')).toBe('other\n')
    declare('slurm: { controller: c1, nodes: "n[1-2]" }\n')
    await up()
  })

  it('says why a daemon does not start, as soon as it has ended', async () => {
    await kill('n1', 'slurmd')
    await bare.exec('n1', '(exec python3 -m http.server 6818 > /dev/null 2>&1 < /dev/null &)')
    await waitUntil(async () => (await bare.exec('n1', 'ss -H -l -t -n sport = 6818')) !== '', 'the port to be taken')
    const { code, stdout } = await muster('up', 'slurm', '--yes')
    expect(stdout).toMatch(/^n1: start slurmd: FAILED: .*Unable to bind listen port \(6818\): Address already in use/m)
    expect(code).toBe(5)
    await kill('n1', 'python3')
    expect((await up()).code).toBe(0)
  })

  it('sets up a node again that comes back empty, and leaves the others as they are', async () => {
    await lab.host('n2').crash()
    expect((await muster('status', 'slurm', '--connect-timeout', '3')).stdout).toMatch(
      /good +slurm · c1,n1\nno answer slurm · n2: /,
    )
    await lab.host('n2').boot()
    await bare.prepare('n2', GPUS.n2 ?? 0)
    const { code, stdout } = await up()
    expect(code).toBe(0)
    expect(stdout).toMatch(/^n2: start slurmd: done/m)
    expect(stdout).not.toMatch(/^n1: |^c1: (?!read the munge key)/m)
    expect(stdout).toContain('srun ran a command on n[1-2]')
  })

  it('names a GPU without its device file, and resumes the node that Slurm has drained for it', async () => {
    await bare.exec('n1', 'rm /dev/nvidia1')
    const text = await status()
    expect(text).toMatch(/blocked +slurm · n1: hosts.yaml declares 2 GPUs, and there is no \/dev\/nvidia1/)
    expect(text).toContain('set resources: { gpu: 1 } in hosts.yaml')
    await kill('n1', 'slurmd')
    await bare.exec(
      'n1',
      'slurmd -N n1 || :; mv /etc/slurm/gres.conf /tmp; sed s/0-1/0/ /tmp/gres.conf > /etc/slurm/gres.conf; slurmd',
    )
    await waitUntil(async () => /n1 (inval|drain)/.test((await nodes()).join('\n')), 'the node to be drained', 60_000)
    expect(await status()).toContain('no /dev/nvidia1')
    await bare.exec('n1', 'mknod -m 666 /dev/nvidia1 c 1 3; cp /tmp/gres.conf /etc/slurm/gres.conf')
    const { code, stdout } = await up()
    expect(stdout).toMatch(/resume n1\n +~ Slurm drained it: gres\/gpu count/)
    expect(code).toBe(0)
    expect(await nodes()).toContain('n1 idle')
  })

  it('leaves a node drained that somebody has drained, and says how to resume it', async () => {
    await bare.exec('c1', 'scontrol update nodename=n2 state=drain reason="new fan"')
    const text = await status()
    expect(text).toMatch(/failed +slurm · n2: n2 is drained and takes no new jobs/)
    expect(text).toContain('new fan')
    expect(text).toContain('sudo scontrol update nodename=n2 state=resume')
    expect((await muster('up', 'slurm', '--yes')).stdout).toContain(
      'nothing to do (muster status tests whether it works)',
    )
    await bare.exec('c1', 'scontrol update nodename=n2 state=resume')
  })

  it('names a node that srun cannot reach', async () => {
    // Until a resumed node has answered, nothing is tried.
    const states = async () => (await bare.exec('c1', "sinfo -h -N -O 'StateLong:.24'")).split('\n')
    await waitUntil(
      async () => (await states()).every((state) => ['', 'idle'].includes(state.trim())),
      'idle nodes',
      90_000,
    )
    await bare.exec('n1', 'iptables -A INPUT -p tcp --dport 6818 -j REJECT')
    const { code, stdout } = await muster('slurm', 'check')
    await bare.exec('n1', 'iptables -F INPUT')
    expect(stdout).toMatch(/^failed +slurm · c1: srun does not run a command on n[^ ]/m)
    expect(stdout).toContain('Port 6818 of each node has to be open for c1')
    expect(code).toBe(1)
  })

  it('removes what it made, with running jobs, and leaves nothing', async () => {
    await bare.exec('c1', "sbatch -D /tmp -o /dev/null --mem=10 -w n2 --wrap 'tail -f /dev/null'")
    await waitUntil(() => pidsOf('n2', 'slurmstepd').length > 0, 'the job to run', 60_000)
    const { code, stdout } = await muster('down', 'slurm', '--yes')
    expect(stdout).toContain('end its jobs, and stop slurmd')
    expect(code).toBe(0)
    const left = NAMES.flatMap((name) => [...DAEMONS, 'tail'].filter((program) => pidsOf(name, program).length > 0))
    expect(left).toEqual([])
    expect(await traces()).toEqual(['', '', ''])
    expect((await muster('down', 'slurm', '--yes')).stdout).toContain('nothing to do')
  })

  it('does not touch a cluster of somebody else, and reads it where only its login host is declared', async () => {
    await bare.exec(
      'c1',
      'mkdir -p /etc/slurm /etc/munge; echo ClusterName=site > /etc/slurm/slurm.conf; echo secret > /etc/munge/munge.key',
    )
    const before = await bare.exec('c1', 'cksum /etc/slurm/slurm.conf /etc/munge/munge.key')
    const { code, stdout } = await muster('up', 'slurm', '--yes')
    expect(stdout).toContain("/etc/slurm/slurm.conf is not Muster's, and Muster does not change it")
    expect(stdout).toContain("/etc/munge/munge.key is not Muster's")
    expect(stdout).toContain('c1, the controller, cannot be set up now')
    expect(code).toBe(5)
    await muster('down', 'slurm', '--yes')
    expect(await bare.exec('c1', 'cksum /etc/slurm/slurm.conf /etc/munge/munge.key')).toBe(before)
    expect(await traces()).toEqual([expect.stringContaining('/etc/slurm/slurm.conf'), '', ''])
    declare('slurm: { login: c1 }\n')
    expect(await status()).toMatch(/failed +slurm · c1: Slurm does not answer here/)
    expect((await muster('up', 'slurm', '--yes')).stdout).toContain("a cluster that is not Muster's: it is only used")
  })
})

describe.skipIf(!canRun)('muster status slurm in a running cluster of somebody else', { timeout: 240_000 }, () => {
  it('shows its nodes and changes nothing', async () => {
    const { lab, slurm } = await slurmLab()
    await using _ = lab
    const file = hostsFileOf(lab, 'slurm')
    appendFileSync(file, SLURM_SECTION)
    const muster = async (...args: readonly string[]) => (await lab.run([...PROGRAM, '--hosts', file, ...args])).stdout
    await slurm.run('scontrol update nodename=n3 state=drain reason="new fan"')
    const sums = async () => await slurm.run('cksum /etc/slurm/*.conf /run/munge/key')
    const before = await sums()
    const status = await muster('status', 'slurm')
    expect(status).toMatch(/^good +slurm · c1/m)
    expect(status).toMatch(/^risk +slurm · c1: n3 is drained and takes no new jobs \[new fan\]/m)
    expect(status).toMatch(/^note +slurm · c1: it has no DefMemPerCPU/m)
    expect(await muster('up', 'slurm', '--yes')).toContain("a cluster that is not Muster's: it is only used")
    expect(await muster('down', 'slurm', '--yes')).toContain("a cluster that is not Muster's: it is only used")
    expect(await sums()).toBe(before)
    expect(await slurm.run('sinfo -h -o %D')).toMatch(/\d/)

    await slurm.run('scontrol update partitionname=main state=drain; mount --bind /dev/null /usr/bin/flock')
    const refusing = await muster('status', 'slurm')
    expect(refusing).toMatch(/slurm · c1: jobs cannot start in partition main \[its state is drain\]/)
    expect(refusing).toMatch(/slurm · c1: it has no flock, which jobs need/)
    writeFileSync(file, readFileSync(file, 'utf8').replace('partition: main', 'partition: gpu'))
    expect(await muster('status', 'slurm')).toMatch(/slurm · c1: Slurm has no partition gpu \[it has main\]/)
    await slurm.run('kill $(cat /run/munge/munged.pid)')
    expect(await muster('status', 'slurm')).toContain('munged is not running on the login host')
  })
})
