/** `muster up trust env nfs` as one change on twelve hosts, three with kernels of their own: from nothing to good, nothing the second time, back without a trace. */
import { appendFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { kernelImage } from '../cluster/kernel-image.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement('root', 'namespaces', 'ip', 'nsenter', 'ssh', 'kernel hosts')

const ENVIRONMENT = '~/miniforge3/envs/lab'
const AREAS = ['trust', 'env', 'nfs']
const DECLARED = `trust: { mesh: "@all" }
environment: { conda: { name: lab, from: k1 } }
nfs:
  - { server: k1, path: /srv/share, options: "rw,sync,no_root_squash,no_subtree_check", clients: "k[2-3]", mount: /mnt/share }
`
/** There is no NFS server; a conda prefix has an interpreter that only prints its version, because the guests have no Python. */
const PREPARE = `apt-get -q -y purge nfs-kernel-server > /dev/null 2>&1 || exit 1
mkdir -p ${ENVIRONMENT}/conda-meta ${ENVIRONMENT}/bin && cd ${ENVIRONMENT} && : > conda-meta/history
echo '{}' > conda-meta/python-3.11.7-h955ad1f_0.json; echo '{}' > conda-meta/numpy-1.26.4-py311h64a7726_0.json
printf '#!/bin/sh\\necho python 3.11.7\\n' > bin/python; chmod 755 bin/python`
/** Files with their modes and contents, except lock files and those that are recreated each time. */
const filesBelow = (...roots: readonly string[]) => {
  const those = `${roots.join(' ')} ! -name '.*.lock' ! -path /etc/ld.so.cache`
  return `find ${those} -printf '%p %y %m %l\\n' | sort; find ${those} -type f -exec cksum {} + | sort`
}
/** The rest of what was there before; the kernel keeps its module. */
const STATE = `${filesBelow('/etc', '/opt', '/srv', '/mnt', '/root')}
cut -d ' ' -f 1-3 /proc/mounts | grep ' nfs4\\?$'; dpkg -l; cat /proc/fs/nfsd/threads || echo 0
ls -A /var/lib/muster || echo none; pidof rpc.mountd || :`

type Event = Readonly<Record<string, unknown>>

const eventsOf = ({ stdout }: RunResult, type: string): Event[] =>
  stdout.split('\n').flatMap((line) => {
    const event = line === '' ? {} : (JSON.parse(line) as Event)
    return event.type === type ? [event] : []
  })

describe.skipIf(!canRun)('the whole bring-up', { timeout: 1_200_000 }, () => {
  let lab: Lab
  let before: string[]

  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--connect-timeout', '60', ...args], { timeoutMs: 600_000 })
  const states = async () =>
    await Promise.all([
      ...lab.kernelHosts.map(async (host) => await host.mustExec(STATE)),
      ...lab.hosts.map(async (host) => (await host.exec(filesBelow('/root'))).stdout),
    ])

  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({ count: 9, kernelHosts: { k1: 'service', k2: 'service', k3: 'systemd' } })
    appendFileSync(lab.hostsFile, DECLARED)
    await lab.kernelHost('k1').mustExec(PREPARE)
    before = await states()
  }, 600_000)
  afterAll(async () => await lab?.stop())

  it('sets up untouched hosts in one run', async () => {
    const up = await muster('up', ...AREAS, '--yes')
    expect([up.code, up.stderr], up.stdout).toEqual([0, ''])
    const [k1, k3] = [lab.kernelHost('k1'), lab.kernelHost('k3')]
    expect(await k3.mustExec('ssh -o BatchMode=yes m9 hostname; ssh -o BatchMode=yes k2 hostname')).toBe('m9\nk2\n')
    const looked = `ls ${ENVIRONMENT}/conda-meta | head -n 2; ${ENVIRONMENT}/bin/python`
    const said = 'history\nnumpy-1.26.4-py311h64a7726_0.json\npython 3.11.7\n'
    expect(await k3.mustExec(looked)).toBe(said)
    expect((await lab.host('m5').exec(looked)).stdout).toBe(said)
    await k3.mustExec('echo from k3 > /mnt/share/file')
    expect(await k1.mustExec('cat /srv/share/file; rm /srv/share/file')).toBe('from k3\n')
  })

  it('finds nothing to do the second time, and reports everything as good', async () => {
    const again = await muster('up', ...AREAS)
    expect([again.code, again.stderr], again.stdout).toEqual([0, ''])
    expect(again.stdout).toContain('12 hosts: no change: nothing to do')
    const status = await muster('status', ...AREAS, '--json')
    expect([status.code, status.stderr], status.stdout).toEqual([0, ''])
    const statuses = eventsOf(status, 'status').map(({ area, host, status }) => `${area} ${host} ${status}`)
    const guests = lab.kernelHosts.map(({ name }) => name)
    const expected = (area: string, hosts: readonly string[]) => hosts.map((host) => `${area} ${host} good`)
    const all = [...lab.names, ...guests]
    expect(statuses.toSorted()).toEqual(
      [...expected('trust', all), ...expected('env', all), ...expected('nfs', guests)].toSorted(),
    )
  })

  it('restores the hosts, except for the shared directory', async () => {
    const down = await muster('down', ...AREAS, '--yes')
    expect([down.code, down.stderr], down.stdout).toEqual([0, ''])
    await lab.kernelHost('k1').mustExec('rmdir /srv/share')
    // The directory that the environment lies in stays.
    const stays = /^\/root\/miniforge3(?:\/envs)? d .*\n/gm
    const compared = (all: readonly string[]) => all.map((each) => each.replace(stays, ''))
    expect(compared(await states())).toEqual(compared(before))
  })
})
