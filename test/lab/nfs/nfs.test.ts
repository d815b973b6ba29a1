/** `muster nfs` on a real server and real mounts: two hosts with scripts in /etc/init.d, one with systemd. */
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { kernelImage } from '../cluster/kernel-image.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { type LabNfs, labNfs } from './lab-nfs.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'kernel hosts')

const OPTIONS = 'rw,sync,no_root_squash,no_subtree_check'
const FSTAB = '# a line of somebody else\nnone /mnt tmpfs noauto 0 0\n'
const EXPORTS = '# /srv m8(rw) is somebody else’s\n'
/** Everything under /etc, what is mounted, and whether the server runs. */
const STATE = `find /etc ! -name '.*.lock' -printf '%p %y %m %l\\n' | sort; find /etc -type f -exec md5sum {} + | sort
cut -d ' ' -f 1-3 /proc/mounts | grep ' nfs4\\?$'; ls -d /nfsroot; cat /proc/fs/nfsd/threads || echo 0`

describe.skipIf(!canRun)('muster nfs', { timeout: 1_200_000 }, () => {
  let lab: Lab
  let nfs: LabNfs
  let before: string[]

  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({ count: 0, kernelHosts: { m10: 'service', m8: 'service', m9: 'systemd' } })
    const share = `{ server: m10, path: /nfsroot, options: "${OPTIONS}", export_to: "*", clients: "m[8-9]", mount_options: nolock }`
    nfs = labNfs(lab, `  - ${share}\n`, 20)
    await lab.kernelHost('m8').mustExec(`printf '${FSTAB}' > /etc/fstab`)
    await lab.kernelHost('m10').mustExec(`printf '${EXPORTS}' > /etc/exports`)
    before = await nfs.states(STATE)
  }, 600_000)
  afterAll(async () => await lab?.stop())

  it('shows the plan and changes nothing', async () => {
    const { code, stdout } = await nfs.run('up', '--dry-run')
    expect(stdout).toContain(`+ /nfsroot *(${OPTIONS})`)
    expect(stdout).toContain('3 hosts: 8 steps would be done')
    expect(code).toBe(0)
    expect(await nfs.states(STATE)).toEqual(before)
  })

  it('continues after a kill, and then each host reads what the others write', async () => {
    const child = nfs.start('up', '--yes')
    let output = ''
    const ended = once(child, 'close')
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('reload the exports: done')) child.kill('SIGKILL')
    })
    await ended
    expect(output).toContain('reload the exports: done')
    expect(output).not.toContain('8 done')

    const again = await nfs.run('up', '--yes')
    expect(again.stdout).not.toMatch(/^blocker/m)
    expect(again.stdout).toMatch(/m8: writes to \/nfsroot, and the others read it \[.*\/s, .* for a small file\]/)
    expect(again.stdout).toMatch(/nolock does nothing at \/nfsroot: NFS 4\.2/)
    expect(again.stdout).toContain('as declared: no_root_squash: root of any machine is root in /nfsroot')
    expect(again.code).toBe(0)
  })

  it('does the same as the manual commands', async () => {
    const [m8, m9, m10] = [lab.kernelHost('m8'), lab.kernelHost('m9'), lab.kernelHost('m10')]
    expect(await m8.mustExec('showmount -e m10')).toBe('Export list for m10:\n/nfsroot *\n')
    expect(await m8.mustExec('df -h /nfsroot | tail -n 1')).toMatch(/^10\.81\.0\.1:\/nfsroot .* \/nfsroot\n$/)
    await m8.mustExec('echo from m8 > /nfsroot/file')
    expect(await m9.mustExec('cat /nfsroot/file; systemctl is-enabled nfsroot.mount')).toBe('from m8\nenabled\n')
    expect(await m10.mustExec('ls -A /nfsroot; cat /etc/exports')).toBe(`file\n${EXPORTS}`)
    expect(await m8.mustExec('head -n 2 /etc/fstab')).toBe(FSTAB)
  })

  it('measures a mount from its client, as a verb and in the console, and leaves nothing there', async () => {
    const file = join(lab.directory, 'nfs.yaml')
    const { code, stdout } = await lab.run([...PROGRAM, '--hosts', file, 'net', 'nfs', 'm8', '--time', '1'])
    expect(stdout).toMatch(/^m8:\/nfsroot is 10\.81\.0\.1:\/nfsroot \(NFS 4\.2\)\n/)
    expect(stdout).toMatch(/^write: median .*\/s\nread: median .*\/s.*\nsmall file: median .* ms/m)
    expect(code).toBe(0)
    await using console = await openConsole({ in: lab, args: ['--hosts', file, 'm8,m10'], size: [120, 40] })
    await console.expectAllOpen()
    await console.leader('3')
    await console.expectScreen(/HOST.*CPU/)
    await console.key('n')
    await console.expectScreen(/Measure an NFS mount from its client/)
    await console.key('Ctrl-u')
    await console.type('m8 --time 1')
    await console.expectScreen(/m8, its first NFS mount: writes for 1 s, then reads for 1 s/)
    await console.key('Enter')
    await console.expectScreen(/m8:\/nfsroot is 10\.81\.0\.1:\/nfsroot \(NFS 4\.2\)/)
    await console.expectScreen(/write: median .*\/s[\s\S]*read: median .*\/s[\s\S]*small file: median .* ms/)
    await console.expectScreen(/(slower|faster|as fast) (than|as) at \d\d:\d\d/)
    await console.key('v')
    await console.expectScreen(/NFS +m8 [\s\S]*NFS +m8 .*write .*\/s, read .*\/s/)
    expect(await nfs.states('find /nfsroot -name ".muster-nfs-*"')).toEqual(['', '', ''])
  })

  it('finds what a killed measurement left, on client and server, and removes it when it is no longer in use', async () => {
    const [m8, m9, m10] = [lab.kernelHost('m8'), lab.kernelHost('m9'), lab.kernelHost('m10')]
    const muster = (...args: string[]) => [...PROGRAM, '--hosts', join(lab.directory, 'nfs.yaml'), ...args]
    const timeoutMs = 300_000
    const measuring = lab.run(muster('net', 'nfs', 'm8', '--time', '600'), { timeoutMs })
    const place = async () => (await m10.mustExec('cd /nfsroot; ls -d .muster-nfs-*/data 2> /dev/null || :')).trim()
    await waitUntil(async () => (await place()) !== '', 'the measurement to write', 60_000)
    const name = (await place()).replace('/data', '')
    const listed = async () => (await lab.run(muster('left', '--area', 'nfs'), { timeoutMs })).stdout
    expect(await listed()).toMatch(new RegExp(`^m9\tnfs\tused\t.*${name} \\(it changed less than 3 minutes ago`, 'm'))
    // Kills the script and its programs.
    await m8.mustExec(
      'until p=$(pgrep -x dd | head -n 1) && s=$(ps -o sid= -p "$p"); do :; done; pkill -9 -s $s || kill -9 $p',
    )
    expect((await measuring).code).toBe(1)
    await m8.mustExec(`cd /nfsroot && touch -d '5 minutes ago' ${name}`)
    await m9.mustExec('cd /nfsroot && mkdir .muster-nfs-aaaaaaaa && echo mine > .muster-nfs-aaaaaaaa/thesis')
    // Clients cache the attributes of files for up to a minute.
    await waitUntil(
      async () => !(await listed()).includes('minutes ago, so'),
      'every client to see the change',
      240_000,
    )
    const text = await listed()
    for (const host of ['m8', 'm9', 'm10']) {
      expect(text).toMatch(new RegExp(`^${host}\\tnfs\\tleft\\t.*\\tfiles of a measurement: /nfsroot/${name}$`, 'm'))
      expect(text).toMatch(
        new RegExp(`^${host}\\tnfs\\tkept\\t.*aaaaaaaa \\(it also holds files that Muster did not write`, 'm'),
      )
    }
    const removal = await lab.run(muster('left', '--area', 'nfs', '--remove', '--yes'), { timeoutMs })
    expect(removal.code, removal.stdout + removal.stderr).toBe(0)
    expect(await m10.mustExec('cd /nfsroot; ls -d .muster-nfs-*; cat .muster-nfs-aaaaaaaa/thesis')).toBe(
      '.muster-nfs-aaaaaaaa\nmine\n',
    )
    await m9.mustExec('rm -r /nfsroot/.muster-nfs-aaaaaaaa')
  })

  it('lets a directory of results be proved: the mounted one is one, a directory of each host is not', async () => {
    expect(await nfs.checkDirectory('/nfsroot')).toBe('')
    expect(await nfs.checkDirectory('/nfsroot/new')).toBe('')
    await lab.kernelHost('m9').mustExec('mkdir /nfsroot/results')
    expect(await nfs.checkDirectory('/nfsroot/results')).toBe('')
    await lab.kernelHost('m9').mustExec('mount -t tmpfs tmpfs /nfsroot/results')
    expect(await nfs.checkDirectory('/nfsroot/results')).toBe(
      'm9: /nfsroot/results is not the directory that m10 has. hosts.yaml declares 10.81.0.1:/nfsroot at /nfsroot: run: muster up nfs\n',
    )
    await lab.kernelHost('m9').mustExec('umount /nfsroot/results; rmdir /nfsroot/results')
    expect((await nfs.checkDirectory('/var/tmp')).split('\n')).toHaveLength(3)
    expect(await nfs.states('find /nfsroot /var/tmp -name ".muster-proof-*"')).toEqual(['', '', ''])
  })

  it('finds nothing to do the second time', async () => {
    const { code, stdout } = await nfs.run('up', '--yes')
    expect(stdout).toContain('no change: nothing to do')
    expect(code).toBe(0)
  })

  it("does nothing while the machine's exports have an error, and says where", async () => {
    const m10 = lab.kernelHost('m10')
    await m10.mustExec(`printf '/srv m8(rw,bogus)\\n' >> /etc/exports`)
    const { code, stdout } = await nfs.run('up', '--yes')
    expect(stdout).toContain('/etc/exports:2:6: unknown keyword "bogus"')
    expect(code).toBe(5)
    expect(await m10.mustExec(`exportfs -s | grep -c nfsroot; printf '${EXPORTS}' > /etc/exports`)).toBe('1\n')
  })

  it('reports that a mounted server is gone, and that it is back', async () => {
    // A crash loses what was not written to the disk.
    await lab.kernelHost('m10').mustExec('sync')
    await lab.kernelHost('m10').crash()
    const { code, stdout } = await nfs.run('status')
    expect(stdout).toMatch(/^no answer nfs · m10/m)
    expect(stdout).toMatch(/^failed +nfs · m\[8-9\]: \/nfsroot hangs: its server m10 does not answer/m)
    expect(code).toBe(4)
    expect(await nfs.checkDirectory('/nfsroot')).toMatch(
      /^m10: cannot check \/nfsroot: .*\nm8: cannot check \/nfsroot: no answer in time\. .*\nm9: cannot check \/nfsroot: no answer in time\. .*\n$/,
    )
    await lab.kernelHost('m10').boot()
    const back = await nfs.run('check')
    expect(back.stdout).toContain('3 good')
    expect(back.code).toBe(0)
  })

  it('names the processes that use a mount, and removes nothing', async () => {
    const m8 = lab.kernelHost('m8')
    const pid = (await m8.mustExec('cd /nfsroot; sleep infinity > /dev/null 2>&1 < /dev/null & echo $!')).trim()
    const { code, stdout } = await nfs.run('down', '--yes')
    expect(stdout).toContain(`/nfsroot is in use by process ${pid} (sleep infinity )`)
    expect(code).toBe(5)
    expect(await m8.mustExec(`cat /nfsroot/file; kill ${pid}`)).toBe('from m8\n')
  })

  it('restores the hosts, except for the shared files', async () => {
    const done = await nfs.run('down', '--yes')
    expect(done, done.stdout + done.stderr).toMatchObject({ code: 0 })
    await lab.kernelHost('m10').mustExec('cat /nfsroot/file; rm -r /nfsroot')
    expect(await nfs.states(STATE)).toEqual(before)
  })
})
