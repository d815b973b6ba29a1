/** Kernel hosts: three guests with a kernel and a disk of their own, a real NFS server among them. */
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { kernelImage } from './kernel-image.ts'
import { type Lab, startLab } from './lab.ts'
import { pidNamespaceOf, processesIn } from './processes.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'kernel hosts')

describe.skipIf(!canRun)('kernel hosts', { timeout: 600_000 }, () => {
  let lab: Lab

  // The disk is built here only where it was not before.
  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({ count: 1, kernelHosts: { k1: 'service', k2: 'service', k3: 'systemd' } })
  }, 400_000)
  afterAll(async () => await lab?.stop())

  it('are like other hosts of the lab, with their own kernel', async () => {
    const answers = await Promise.all(
      lab.kernelHosts.map(
        async (host) =>
          await host.mustExec('hostname; uname -r; cat /proc/1/comm; ping -c 1 -W 20 m1 > /dev/null && echo met'),
      ),
    )
    expect(answers[0]).toMatch(/^k1\n6\.1\..*\nlab-init\nmet\n$/)
    expect(answers[2]).toMatch(/^k3\n6\.1\..*\nsystemd\nmet\n$/)
  })

  it('serve and mount NFS by hand, and keep their disk over a reboot', async () => {
    const [server, client] = [lab.kernelHost('k1'), lab.kernelHost('k2')]
    await server.mustExec(`mkdir /nfsroot && chmod 777 /nfsroot && echo '/nfsroot *(rw,sync,no_root_squash,no_subtree_check)' > /etc/exports
      service nfs-kernel-server start && update-rc.d nfs-kernel-server enable`)
    expect(await client.mustExec('showmount -e k1')).toBe('Export list for k1:\n/nfsroot *\n')
    await client.mustExec('mkdir /nfsroot && mount -t nfs -o nolock k1:/nfsroot /nfsroot && echo one > /nfsroot/file')
    expect(await server.mustExec('cat /nfsroot/file')).toBe('one\n')
    expect(await client.mustExec('df -h /nfsroot | tail -1')).toMatch(/^k1:\/nfsroot .* \/nfsroot\n$/)

    await client.mustExec('umount /nfsroot')
    await server.reboot()
    expect(await server.mustExec('cat /proc/sys/kernel/hostname /nfsroot/file')).toBe('k1\none\n')
    await client.mustExec('mount -t nfs -o nolock k1:/nfsroot /nfsroot')
    expect(await client.mustExec('cat /nfsroot/file; umount /nfsroot')).toBe('one\n')
  })

  it('crash and boot again under the same address and key', async () => {
    const host = lab.kernelHost('k3')
    await host.mustExec('echo kept > /root/file; sync')
    await host.crash()
    expect(host.isUp).toBe(false)
    await host.boot()
    expect(await host.mustExec('cat /root/file')).toBe('kept\n')
  })

  it('lose their packets while the cable is cut', async () => {
    const host = lab.kernelHost('k3')
    const answer = async () => await lab.run(['ssh', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=2', 'k3', 'true'])
    await host.linkDown()
    expect((await answer()).code).toBe(255)
    await host.linkUp()
    expect(await host.mustExec('hostname')).toBe('k3\n')
  })

  it('end with the lab and leave nothing', async () => {
    const namespace = pidNamespaceOf(lab.pid) ?? ''
    expect(processesIn(namespace).some(({ name }) => name.startsWith('linux'))).toBe(true)
    await lab.stop()
    expect(processesIn(namespace)).toEqual([])
    expect(existsSync(lab.directory)).toBe(false)
  })
})
