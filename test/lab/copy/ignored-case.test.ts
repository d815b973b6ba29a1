/** Files to and from a file system that ignores case in names, as on a Mac or a USB disk: here exFAT. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canMount = existsSync('/dev/fuse') && existsSync('/dev/loop-control')
const canRun =
  canMount && requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'losetup', 'mkfs.exfat', 'mount.exfat-fuse')

/** In the place of an empty directory; the device goes with the mount. */
const mountExfat = (image: string, place: string) =>
  `mkdir ${place} && truncate --size=16M ${image} && mkfs.exfat ${image} && device=$(losetup --find --show ${image}) &&
  mount.exfat-fuse $device ${place}; code=$?; losetup --detach $device; exit $code`

describe.skipIf(!canRun)('copying where case is ignored', () => {
  let lab: Lab
  let home: string
  const muster = (...args: readonly string[]) => lab.run([...PROGRAM, '--hosts', lab.hostsFile, ...args])
  beforeEach(async () => {
    lab = await startLab({ count: 1 })
    home = join(lab.directory, 'home')
  })
  afterEach(async () => {
    await lab?.stop()
  })

  it.each([
    'Read',
    'many',
  ])('refuses files that would overwrite each other on the host, and writes nothing (%s)', async (first) => {
    const source = join(home, 'source', 'below')
    mkdirSync(source, { recursive: true })
    for (const name of ['Read', 'READ']) writeFileSync(join(source, name), name)
    if (first === 'many') for (let index = 0; index < 20; index += 1) writeFileSync(join(source, `${index}`), 'x')
    const host = lab.host('m1')
    const mounted = await host.exec(mountExfat('image', 'disk'))
    expect(mounted.code, mounted.stderr).toBe(0)
    const copied = await muster('copy', 'm1', join(home, 'source'), 'disk/')
    expect(copied.stdout).toMatch(
      /^m1: failed: \S+\/READ and \S+\/Read would become the same file, because the file system there ignores case/,
    )
    expect(copied.code).toBe(1)
    expect((await host.exec('ls -A disk')).stdout).toBe('')
    // Elsewhere on the same host they are two.
    expect((await muster('copy', 'm1', join(home, 'source'), 'kept')).code).toBe(0)
    expect((await host.exec('cat kept/below/Read kept/below/READ')).stdout).toBe('ReadREAD')
    expect((await host.exec('umount disk')).code).toBe(0)
  })

  it('refuses to fetch them and writes nothing', async () => {
    await lab.host('m1').exec('mkdir -p source/below && cd source/below && echo one > Read && echo two > READ')
    const disk = join(home, 'disk')
    const mounted = await lab.run(['sh', '-c', mountExfat(join(home, 'image'), disk)])
    expect(mounted.code, mounted.stderr).toBe(0)
    const fetched = await muster('fetch', 'm1', 'source', disk)
    expect(fetched.stdout).toMatch(
      /^m1: failed: \S+\/READ and \S+\/Read|\S+\/Read and \S+\/READ would become the same file/,
    )
    expect(fetched.code).toBe(1)
    expect((await lab.run(['ls', '-A', disk])).stdout).toBe('')
    expect((await muster('fetch', 'm1', 'source', join(home, 'out'))).code).toBe(0)
    expect(readdirSync(join(home, 'out', 'm1', 'source', 'below')).sort()).toEqual(['READ', 'Read'])
    expect((await lab.run(['umount', disk])).code).toBe(0)
  })
})
