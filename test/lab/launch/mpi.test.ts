/** Real Open MPI on hosts that have no keys for each other: Muster is the launch agent (docs/launch.md). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ip',
  'nsenter',
  'setsid',
  'nft',
  'mpirun.openmpi',
  'python mpi4py',
)

const THREE = ['--launch', 'mpi', '--bundles', '3'] as const

describe.skipIf(!canRun)('a job launched by mpirun', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 3, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    queue = labQueue(lab, hostsFileOf(lab, 'mpi'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it('has its ranks on all hosts, and no host has a key for another one', async () => {
    const id = await queue.submit(...THREE, '--slots', '2', '--', 'python3 /srv/mpi_all_reduce.py')
    const { ended } = queue.work()
    expect(await ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/state: +done/)
    expect((await queue.job('logs', id)).stdout).toContain('rank 0/6 on m1 sum 21')
  })

  it('starts the same by the line that it prints for a person', async () => {
    const text = 'x=$FROM && test "$x" = job && echo "$x on $(hostname)" | tr a-z A-Z; exit 0'
    const options = ['--launch', 'mpi', '--slots', '2', '--on', 'm1', '--env', 'FROM=job', '--', text]
    const { stdout } = await queue.job('submit', '--dry-run', ...options)
    const line = /^by hand on m1: (.*)$/m.exec(stdout)?.[1] ?? 'false'
    const root = 'export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; cd /tmp;'
    expect(await lab.host('m1').exec(`${root} ${line}`)).toMatchObject({ code: 0, stdout: 'JOB ON M1\nJOB ON M1\n' })
    const id = await queue.submit(...options)
    expect(await queue.work().ended).toEqual([0, null])
    for (const rank of ['0', '1']) expect((await queue.job('logs', id, '--rank', rank)).stdout).toBe('JOB ON M1\n')
  })

  it('fails by the rank that raised, named with its host and its words', async () => {
    const program = 'from mpi4py import MPI; r=MPI.COMM_WORLD.rank; r == 1 and [][0]; MPI.COMM_WORLD.Barrier()'
    const id = await queue.submit(...THREE, '--slots', '1', '--', 'python3', '-c', program)
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(
      /ended: .*, rank 1 on m2 failed first: exit 1, .*: IndexError: list index out of range/,
    )
  })

  it('takes as many hosts as its ranks need, uses the network of a card and exports a variable of the first host', async () => {
    const ranks = ['--ranks', '5', '--per-host', '2', '--interface', 'eth0', '--export', 'FROM_M1']
    const program =
      'import os;from mpi4py import MPI;w=MPI.COMM_WORLD;o=w.gather((os.uname().nodename,os.environ.get("FROM_M1"),os.environ.get("OMPI_MCA_btl_tcp_if_include")));w.rank or print(o)'
    // Each host has a value of its own.
    for (const { name } of lab.hosts)
      await lab.host(name).exec(`mkdir -p e/bin && echo 'export FROM_M1=${name}' >e/bin/activate`)
    const id = await queue.submit('--launch', 'mpi', ...ranks, '--from-env', 'venv:~/e', '--', 'python3', '-c', program)
    expect(await queue.work().ended).toEqual([0, null])
    const told = (host: string) => `('${host}', 'm1', '10.81.0.0/16')`
    expect((await queue.job('logs', id)).stdout).toBe(`[${['m1', 'm1', 'm2', 'm2', 'm3'].map(told).join(', ')}]\n`)
  })

  it('uses the prefix, the network and the variables that hosts.yaml declares', async () => {
    const file = hostsFileOf(lab, 'mpi-prefix')
    const launch = 'launch: { mpi: { prefix: /root/mpi, transport: tcp }, network: 10.81.0.0/16, env: { SOME: thing } }'
    writeFileSync(file, `${readFileSync(file, 'utf8')}${launch}\n`)
    // Programs of a prefix come before those of PATH, on each host.
    const fill =
      'mkdir -p mpi/bin && for p in mpirun orted ompi_info; do printf \'#!/bin/sh\necho "$0" >>/root/used\nexec /usr/bin/%s "$@"\n\' $p >mpi/bin/$p; done; chmod 755 mpi/bin/*'
    for (const { name } of lab.hosts) expect((await lab.host(name).exec(fill)).code).toBe(0)
    const prefixed = labQueue(lab, file)
    const id = await prefixed.submit(...THREE, '--slots', '1', '--', 'echo $SOME $LD_LIBRARY_PATH')
    expect(await prefixed.work().ended).toEqual([0, null])
    expect((await prefixed.job('logs', id)).stdout).toMatch(/^thing (.*:)?\/root\/mpi\/lib\n$/)
    expect((await lab.host('m2').exec('cat used')).stdout).toContain('/root/mpi/bin/orted')
  })

  describe('is refused in a sentence, and no rank begins', () => {
    const refused = async (...options: readonly string[]) => {
      const id = await queue.submit(...THREE, '--slots', '1', ...options, '--', 'touch /root/rank')
      expect(await queue.work().ended).toEqual([0, null])
      for (const host of lab.hosts) expect((await host.exec('test -e rank')).code).toBe(1)
      const { state, reason } = await queue.find(id)
      expect(state).toBe('failed')
      return reason
    }

    it.each([
      [
        'a card that is not there',
        ['--interface', 'ib9'],
        /m\d: the network card ib9 does not exist, is down or has no IPv4 address/,
      ],
      [
        'a network of none',
        ['--network', '10.9.0.0/16'],
        /m\d: no network card that is up has an address in 10\.9\.0\.0\/16/,
      ],
      ['RDMA without a card', ['--transport', 'rdma'], /m\d: no active InfiniBand or RoCE port/],
    ])('for %s', async (_, options, reason) => {
      expect(await refused(...options)).toMatch(reason)
    })

    it('for another Open MPI on one host, and a missing program', async () => {
      const fake =
        "mkdir -p fake && printf '#!/bin/sh\\necho Open MPI v5.0.1\\n' >fake/ompi_info && chmod 755 fake/ompi_info"
      expect((await lab.host('m2').exec(fake)).code).toBe(0)
      const path = '/root/fake:/usr/sbin:/usr/bin:/sbin:/bin'
      // Programs of the questions are looked for in the environment of the job.
      for (const { name } of lab.hosts)
        await lab.host(name).exec(`mkdir -p p/bin && echo 'PATH=${path}' >p/bin/activate`)
      const inPath = ['--from-env', 'venv:~/p']
      expect(await refused(...inPath)).toBe(
        'the version of MPI differs: Open MPI v4.1.4 on m1 m3, Open MPI v5.0.1 on m2',
      )
      const none = 'mkdir -p none && for p in /usr/bin/*; do case $p in *orted) ;; *) ln -sf $p none/;; esac; done'
      await lab.host('m3').exec(`${none}; echo 'PATH=/root/none' >p/bin/activate`)
      expect(await refused(...inPath)).toBe('m3: orted is not in PATH')
    })

    it('for a firewall on the first host', async () => {
      const drop = 'nft add table inet f && nft "add chain inet f i { type filter hook input priority 0; }"'
      const rule = 'nft add rule inet f i tcp dport 46000-46999 drop'
      expect((await lab.host('m1').exec(`${drop} && ${rule}`)).code).toBe(0)
      const reason = await refused()
      expect((await lab.host('m1').exec('nft delete table inet f')).code).toBe(0)
      expect(reason).toMatch(/^m[23]: cannot reach m1 at 10\.81\.0\.1 port 46\d\d\d: timed out$/)
    })
  })
})
