import { describe, expect, it } from 'vitest'
import { fstabLine, isMountOf, missingOptions, mountAt, parseMounts, unitName } from '../../../../src/ops/nfs/mounts.ts'

const MOUNTS = `/dev/ubda / ext4 rw,relatime 0 0
m10:/nfsroot /nfsroot nfs4 rw,relatime,vers=4.2,rsize=262144,hard,proto=tcp,timeo=600,sec=sys,clientaddr=10.81.0.2,addr=10.81.0.1 0 0
10.81.0.1:/a\\040b /mnt/a\\040b nfs rw,vers=3,nolock,addr=10.81.0.1 0 0`

describe('what is mounted', () => {
  const mounts = parseMounts(MOUNTS)

  it('is found at its directory, under any name of its server', () => {
    const mount = mountAt(mounts, '/nfsroot')!
    expect(isMountOf(mount, '10.81.0.1', '/nfsroot/')).toBe(true)
    expect(isMountOf(mount, 'm10', '/nfsroot')).toBe(true)
    expect(isMountOf(mount, '10.81.0.9', '/nfsroot')).toBe(false)
    expect(isMountOf(mount, 'm10', '/other')).toBe(false)
    expect(isMountOf(mountAt(mounts, '/mnt/a b')!, '10.81.0.1', '/a b')).toBe(true)
    expect(isMountOf(mountAt(mounts, '/')!, 'm10', '/')).toBe(false)
  })

  it('lacks options that it was not mounted with', () => {
    const mount = mountAt(mounts, '/nfsroot')!
    expect(missingOptions(mount, ['vers=4'])).toEqual([])
    expect(missingOptions(mount, ['vers=4.2', 'rw'])).toEqual([])
    expect(missingOptions(mount, ['nfsvers=3', 'ro'])).toEqual(['vers=3', 'ro'])
  })
})

describe('declarations of mounts', () => {
  // As `systemd-escape --path --suffix=mount` of systemd 252 prints them.
  it.each([
    ['/nfsroot', 'nfsroot.mount'],
    ['/srv/my-data/', 'srv-my\\x2ddata.mount'],
    ['//mnt//a b', 'mnt-a\\x20b.mount'],
    ['/.hidden', '\\x2ehidden.mount'],
    ['/ä', '\\xc3\\xa4.mount'],
    ['/', '-.mount'],
  ])('the unit of %s is %s', (point, name) => expect(unitName(point)).toBe(name))

  it('escape separators of fstab', () => {
    expect(fstabLine('m10:/a b', '/mnt/c#', 'vers=4.2')).toBe(
      'm10:/a\\040b /mnt/c\\043 nfs vers=4.2,_netdev,nofail 0 0',
    )
  })
})
