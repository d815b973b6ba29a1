/**
 * What goes wrong on the way, on two kernel hosts that serve each other, one with scripts in /etc/init.d and one with systemd:
 * `muster nfs` killed in the middle of each kind of step, a package manager in use, a stale handle.
 */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { kernelImage } from '../cluster/kernel-image.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { HALF, type Hold, holdOn } from './held.ts'
import { type LabNfs, labNfs } from './lab-nfs.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'kernel hosts')

const PATIENCE_MS = 300_000
/** Holds apt's lock (fcntl(2), struct flock of 64 bits) until it is killed, and prints its process id. */
const LOCK_APT = `perl -MFcntl -e '
open F, ">>", "/var/lib/dpkg/lock-frontend" or die; my $l = pack("s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0); fcntl(F, F_SETLK, $l) or die;
$| = 1; print "$$\n"; close STDOUT; sleep 3600' 2> /dev/null < /dev/null &`

const STATE = `find /etc /srv /mnt ! -name '.*.lock' ! -path /etc/ld.so.cache -printf '%p %y %m %l\\n' | sort
find /etc -type f ! -name '.*.lock' ! -path /etc/ld.so.cache -exec cksum {} + | sort
cut -d ' ' -f 1-3 /proc/mounts | grep ' nfs4\\?$'; cat /proc/fs/nfsd/threads || echo 0; dpkg -l; ls -A /var/lib/muster || echo none`
/** Each serves the other, so that two kinds of steps are held in one run. NFSv4 one way, NFSv3 the other. */
const SHARES = `  - { server: m10, path: /srv/a, clients: m9, mount: /mnt/a, mode: "1777" }
  - { server: m9, path: /srv/b, clients: m10, mount: /mnt/b, mode: "1777", mount_options: "vers=3,nolock" }
`

type Holds = { readonly m10: Hold; readonly m9: Hold }

/** The steps in which it is killed, in their order: each run carries on where the one before was killed. */
const UP: readonly Holds[] = [
  // apt gives dpkg a session of its own: it goes on, and the next run waits for its lock.
  { m10: { program: 'dpkg', pattern: '*--unpack*', isLeft: true }, m9: { program: 'chmod', pattern: '*/srv/b*' } },
  {
    m10: { program: 'dd', pattern: '*exports*', begin: HALF },
    m9: { program: 'exportfs', pattern: '*-ra*', when: '[ -e /etc/exports.d/muster-nfs.exports ]' },
  },
  { m10: { program: 'update-rc.d', pattern: '*enable*' }, m9: { program: 'systemctl', pattern: 'enable*nfs-server*' } },
  { m10: { program: 'rpc.nfsd' }, m9: { program: 'systemctl', pattern: 'start*nfs-server*' } },
  { m10: { program: 'dd', pattern: '*fstab*', begin: HALF }, m9: { program: 'systemctl', pattern: 'daemon-reload*' } },
  { m10: { program: 'mount.nfs' }, m9: { program: 'mount.nfs', isLeft: true } },
]
const DOWN: readonly Holds[] = [
  { m10: { program: 'umount', pattern: '*/mnt/b*' }, m9: { program: 'umount', pattern: '*/mnt/a*' } },
  { m10: { program: 'mv', pattern: '*fstab*' }, m9: { program: 'systemctl', pattern: 'disable*mnt*' } },
  { m10: { program: 'rpc.nfsd', pattern: '*0*' }, m9: { program: 'systemctl', pattern: 'disable*nfs-server*' } },
  {
    m10: { program: 'dpkg', pattern: '*--remove* | *--purge*', isLeft: true },
    m9: { program: 'exportfs', pattern: '*-ra*', when: '[ ! -e /etc/exports.d/muster-nfs.exports ]' },
  },
]

describe.skipIf(!canRun)('muster nfs on two hosts that serve each other', { timeout: 1_200_000 }, () => {
  let lab: Lab
  let nfs: LabNfs
  let before: string[]

  const killIn = async (
    direction: 'up' | 'down',
    holds: Holds,
    meanwhile?: (output: () => string) => Promise<void>,
  ): Promise<void> => {
    const held = await Promise.all((['m10', 'm9'] as const).map((name) => holdOn(lab.kernelHost(name), holds[name])))
    const muster = nfs.start(direction, '--yes', '-v')
    let said = ''
    muster.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const ended = once(muster, 'close')
    await Promise.race([
      Promise.all([...held.map((each) => each.reached()), meanwhile?.(() => said)]),
      ended.then(([code]) => Promise.reject(new Error(`it ended with ${code} before it was in the middle\n${said}`))),
    ])
    muster.kill('SIGKILL')
    await ended
    await Promise.all(held.map((each) => each.release()))
  }
  const nameOf = ({ m10, m9 }: Holds) => `${m10.program} ${m10.pattern ?? ''} and ${m9.program} ${m9.pattern ?? ''}`

  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({ count: 0, kernelHosts: { m10: 'service', m9: 'systemd' } })
    nfs = labNfs(lab, SHARES, 60)
    await lab.kernelHost('m10').mustExec('apt-get -q -y purge nfs-kernel-server')
    before = await nfs.states(STATE)
  }, 600_000)
  afterAll(async () => await lab?.stop())

  it.each(UP.map((holds) => [nameOf(holds), holds] as const))('is killed in %s', async (_, holds) => {
    const m10 = lab.kernelHost('m10')
    if (holds === UP[0]) {
      const pid = (await m10.mustExec(LOCK_APT)).trim()
      await killIn('up', holds, async (output) => {
        const isWaiting = () => output().includes('m10: waiting: another process uses the package manager')
        await waitUntil(isWaiting, 'apt to be waited for', PATIENCE_MS)
        await m10.mustExec(`kill ${pid}`)
      })
    } else await killIn('up', holds)
    // The package switches its server on at boot; here it is Muster that does.
    if (holds === UP[1]) await m10.mustExec('update-rc.d nfs-kernel-server disable')
  })

  it('is completed after an interruption', async () => {
    const { code, stdout, stderr } = await nfs.run('up', '--yes')
    expect([code, stderr], stdout).toEqual([0, ''])
    expect(stdout).toMatch(/m10: writes to \/mnt\/b, and the others read it/)
    expect(await lab.kernelHost('m10').mustExec("sed -n '/ nfs /p' /proc/mounts")).toMatch(
      /^10\.81\.0\.2:\/srv\/b \/mnt\/b nfs .*\bvers=3\b.*\bnolock\b/,
    )
  })

  it('reports a stale handle, and repairs it', async () => {
    await lab.kernelHost('m9').mustExec('mkdir -m 1777 /srv/new && rm -r /srv/b && mv /srv/new /srv/b && exportfs -ra')
    const status = await nfs.run('status')
    expect([status.code, status.stdout]).toEqual([1, expect.stringMatching(/^differs .*m10: .*stale/m)])
    const { code, stdout, stderr } = await nfs.run('up', '--yes')
    expect([code, stderr], stdout).toEqual([0, ''])
    expect(stdout).toContain('unmount /mnt/b: its handle is stale')
    expect(stdout).toMatch(/m10: writes to \/mnt\/b, and the others read it/)
  })

  it.each(DOWN.map((holds) => [nameOf(holds), holds] as const))('taken back, is killed in %s', async (_, holds) => {
    await killIn('down', holds)
  })

  it('is undone completely, except for the shared directories', async () => {
    const { code, stdout, stderr } = await nfs.run('down', '--yes')
    expect([code, stderr], stdout).toEqual([0, ''])
    await lab.kernelHost('m10').mustExec('rmdir /srv/a')
    await lab.kernelHost('m9').mustExec('rmdir /srv/b')
    expect(await nfs.states(STATE)).toEqual(before)
  })
})
