/** Missing packages, and the commands for each service manager. */
import { describe, expect, it } from 'vitest'
import { missingPackages } from '../../../../src/ops/kernel/packages.ts'
import { serviceScript } from '../../../../src/ops/kernel/services.ts'

const names = { apt: ['a', 'b'], dnf: ['c'], zypper: [], pacman: [], apk: [] }

describe('packages', () => {
  it('that are missing are found with the installed package manager', () => {
    expect(missingPackages(names, { manager: 'apt', installed: new Map([['b', '1']]), own: [] })).toEqual(['a'])
    expect(missingPackages(names, { manager: 'apk', installed: new Map(), own: [] })).toEqual([])
  })
})

describe('a service', () => {
  const service = { systemd: 'nfs-server', openrc: 'nfs', sysv: 'nfs-kernel-server' }
  const byHand = { isRunning: 'pgrep nfsd', start: 'rpc.nfsd 8', stop: 'rpc.nfsd 0' }

  it.each([
    ['systemd', 'enable', 'systemctl enable nfs-server'],
    ['systemd', 'disable', 'systemctl disable nfs-server'],
    ['openrc', 'start', 'rc-service nfs start'],
    ['openrc', 'enable', 'rc-update add nfs default'],
    ['openrc', 'disable', 'rc-update del nfs default || ! rc-update show default | grep -q -w nfs'],
    ['sysv', 'stop', 'service nfs-kernel-server stop < /dev/null'],
    ['sysv', 'enable', 'update-rc.d nfs-kernel-server defaults && update-rc.d nfs-kernel-server enable'],
    ['by-hand', 'start', undefined],
  ] as const)('of %s: %s', (manager, action, script) => {
    expect(serviceScript(service, manager, action)).toBe(script)
  })

  it('is started and stopped by its own scripts without a service manager', () => {
    const own = { ...service, byHand }
    const scripts = (['start', 'stop', 'enable'] as const).map((action) => serviceScript(own, 'by-hand', action))
    expect(scripts).toEqual(['rpc.nfsd 8', 'rpc.nfsd 0', undefined])
  })
})
