/** `muster up trust env nfs` as one change on two hosts: from nothing to good, nothing the second time, back without a trace. */
import { appendFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { kernelImage } from '../cluster/kernel-image.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement('root', 'namespaces', 'ip', 'nsenter', 'ssh', 'kernel hosts')

const PREFIX = '/opt/lab'
const AREAS = ['trust', 'env', 'nfs']
const DECLARED = `trust: { mesh: "@all" }
environment: { conda: { name: lab, prefix: ${PREFIX}, from: m10 } }
nfs:
  - { server: m10, path: /srv/share, clients: m9, mount: /mnt/share, mode: "1777" }
`
/** What conda leaves, with an interpreter that tells its version: the guests have no Python. */
const ENVIRONMENT = `mkdir -p ${PREFIX}/conda-meta ${PREFIX}/bin && cd ${PREFIX} && : > conda-meta/history
echo '{}' > conda-meta/python-3.11.7-h955ad1f_0.json; echo '{}' > conda-meta/numpy-1.26.4-py311h64a7726_0.json
printf '#!/bin/sh\\necho python 3.11.7\\n' > bin/python; chmod 755 bin/python`
/** Files with their modes and contents, but for those that somebody locks. */
const filesBelow = (...roots: readonly string[]) =>
  `find ${roots.join(' ')} ! -name '.*.lock' -printf '%p %y %m %l\\n' | sort
find ${roots.join(' ')} -type f ! -name '.*.lock' -exec cksum {} + | sort`
/** The rest of what was there before; the kernel keeps its module. */
const STATE = `${filesBelow('/etc', '/opt', '/srv', '/mnt', '/root')}
cut -d ' ' -f 1-3 /proc/mounts | grep ' nfs4\\?$'; cksum /var/lib/dpkg/status; cat /proc/fs/nfsd/threads || echo 0
ls -A /var/lib/muster || echo none`

type Event = Readonly<Record<string, unknown>>

const eventsOf = ({ stdout }: RunResult, type: string): Event[] =>
  stdout.split('\n').flatMap((line) => {
    const event = line === '' ? {} : (JSON.parse(line) as Event)
    return event.type === type ? [event] : []
  })

describe.skipIf(!canRun)('the whole bring-up', { timeout: 600_000 }, () => {
  let lab: Lab
  let before: string[]

  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--connect-timeout', '60', ...args], { timeoutMs: 300_000 })
  const states = async () => await Promise.all(lab.kernelHosts.map(async (host) => await host.mustExec(STATE)))

  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({ count: 0, kernelHosts: { m10: 'service', m9: 'service' } })
    appendFileSync(lab.hostsFile, DECLARED)
    await lab.kernelHost('m10').mustExec(ENVIRONMENT)
    before = await states()
  }, 600_000)
  afterAll(async () => await lab?.stop())

  it('goes from nothing to good in one run', async () => {
    const up = await muster('up', ...AREAS, '--yes')
    expect(up.stdout).not.toMatch(/FAILED|^blocker/m)
    expect([up.code, up.stderr]).toEqual([0, ''])
    const [m9, m10] = [lab.kernelHost('m9'), lab.kernelHost('m10')]
    expect(await m9.mustExec('ssh -o BatchMode=yes m10 hostname')).toBe('m10\n')
    expect(await m9.mustExec(`ls ${PREFIX}/conda-meta | head -n 2; ${PREFIX}/bin/python`)).toBe(
      'history\nnumpy-1.26.4-py311h64a7726_0.json\npython 3.11.7\n',
    )
    await m9.mustExec('echo from m9 > /mnt/share/file')
    expect(await m10.mustExec('cat /srv/share/file; rm /srv/share/file')).toBe('from m9\n')
  })

  it('finds nothing to do the second time, and says that all is good', async () => {
    const again = await muster('up', ...AREAS)
    expect(again.stdout).toContain('no change: it is as wanted')
    expect([again.code, again.stderr]).toEqual([0, ''])
    const status = await muster('status', ...AREAS, '--json')
    expect(status.code).toBe(0)
    const standings = eventsOf(status, 'standing').map(({ area, host, standing }) => `${area} ${host} ${standing}`)
    expect(standings.toSorted()).toEqual(
      ['env', 'nfs', 'trust'].flatMap((area) => [`${area} m10 good`, `${area} m9 good`]),
    )
  })

  it('leaves the hosts as they were, but for the directory that was shared', async () => {
    const down = await muster('down', ...AREAS, '--yes')
    expect(down.stdout).not.toMatch(/FAILED|^blocker/m)
    expect([down.code, down.stderr]).toEqual([0, ''])
    await lab.kernelHost('m10').mustExec('rmdir /srv/share')
    expect(await states()).toEqual(before)
  })
})
