/** What goes wrong on the way: Muster killed in the middle of a step, two of them at once, a full disk. */
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { signalProcess } from '../cluster/processes.ts'
import { kill, type Mesh, startMesh } from './mesh.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'ssh-keygen', 'flock')

/** A file is half written before the program waits. */
const HALF = 'for word; do case $word in of=*) echo half > "$(echo "$word" | cut -c 4-)";; esac; done'

describe.skipIf(!canRun)('bring-up on three hosts', { timeout: 400_000 }, () => {
  let mesh: Mesh

  beforeEach(async () => {
    mesh = await startMesh({ count: 3 })
  })
  afterEach(async () => await mesh?.lab.stop())

  const expectGood = async () => {
    const status = await mesh.muster('status')
    expect(status.stdout).toBe('good     trust · m[1-3]\n3 good\n')
  }

  it.each([
    ['making a key', 'ssh-keygen', '*-t*', ':'],
    ['writing a file', 'dd', '*of=*', HALF],
    ['putting it into its place', 'mv', '*.muster-new*', ':'],
  ])('that is killed while it is %s is completed by the next', async (_, program, pattern, begin) => {
    const before = await mesh.filesOf('m1')
    const held = await mesh.replace('m1', program, pattern, begin)
    await held.hold()
    const first = mesh.start('up', '--yes')
    await held.reached()
    await kill(first)
    await held.gone()
    await held.release()
    const second = await mesh.muster('up', '--yes')
    expect([second.code, second.stderr]).toEqual([0, ''])
    await expectGood()
    expect(await mesh.exec('m1', 'ls -A .ssh')).toBe(
      'authorized_keys\nauthorized_keys.muster-before\nconfig\nid_muster\nid_muster.pub\nknown_hosts\n',
    )
    const down = await mesh.muster('down', '--yes')
    expect([down.code, await mesh.filesOf('m1')]).toEqual([0, before])
  })

  it.each([
    ['writing a file', 'dd', '*of=*', HALF],
    ['removing the key', 'rm', '*id_muster*', ':'],
  ])('whose undo is killed while it is %s is undone by the next', async (_, program, pattern, begin) => {
    const before = await mesh.filesOf('m1')
    expect((await mesh.muster('up', '--yes')).code).toBe(0)
    const held = await mesh.replace('m1', program, pattern, begin)
    await held.hold()
    const first = mesh.start('down', '--yes')
    await held.reached()
    await kill(first)
    await held.gone()
    await held.release()
    const second = await mesh.muster('down', '--yes')
    expect([second.code, second.stderr, await mesh.filesOf('m1')]).toEqual([0, '', before])
  })

  it('blocks a second Muster, and says which user holds the lock', async () => {
    const held = await mesh.replace('m1', 'dd', '*of=*')
    await held.hold()
    const first = mesh.start('up', '--yes')
    const ended = once(first, 'exit')
    await held.reached()
    const second = await mesh.muster('up', '--yes')
    expect(second.code).toBe(5)
    expect(second.stderr).toContain(`m1 is being changed by another Muster (root@`)
    expect(second.stderr).toContain(`process ${first.pid},`)
    expect(second.stdout).not.toMatch(/done/)
    await held.release()
    expect((await ended)[0]).toBe(0)
    await expectGood()
  })

  const processesOf = (name: string) => mesh.lab.host(name).processes()
  const holdersOf = (name: string) => processesOf(name).filter(({ command }) => command.includes('muster-lock-holder'))

  it('stops everything when the lock of one host is gone', async () => {
    const held = await mesh.replace('m1', 'dd', '*of=*')
    await held.hold()
    const running = mesh.muster('up', '--yes')
    await held.reached()
    for (const { pid } of holdersOf('m2')) signalProcess(pid, 'SIGKILL')
    const { code, stderr } = await running
    expect([code, stderr]).toEqual([5, expect.stringMatching(/^muster: the lock of m2 is gone: /)])
    await held.gone()
    await held.release()
    expect((await mesh.muster('up', '--yes')).code).toBe(0)
    await expectGood()
  })

  it('starts nothing more when it wakes without its locks, as after a laptop slept', async () => {
    const held = await mesh.replace('m1', 'ssh-keygen', '*-t*')
    await held.hold()
    const first = mesh.start('up', '--yes')
    const ended = once(first, 'exit')
    await held.reached()
    await waitUntil(async () => (await mesh.exec('m2', 'ls .ssh')).includes('id_muster.pub'), 'the other keys', 60_000)
    first.kill('SIGSTOP')
    const before = await mesh.filesOf('m1')
    // The step ends well, and nobody is there to begin the next one.
    await held.release()
    const runsStep = () => processesOf('m1').some(({ command }) => command.startsWith('/bin/sh -c eval '))
    await waitUntil(() => !runsStep(), 'the end of the step')
    // As timeout(1) does itself when its time is up: five beats of 15 s may be missed.
    await waitUntil(() => {
      const watchers = mesh.lab.names.flatMap(processesOf).filter(({ command }) => command.startsWith('timeout 75 '))
      for (const { pid } of watchers) signalProcess(pid, 'SIGALRM')
      return mesh.lab.names.flatMap(holdersOf).length === 0
    }, 'the end of the locks')
    expect(await mesh.exec('m1', 'ls .ssh')).toContain('id_muster.pub')
    const made = await mesh.filesOf('m1')
    expect(made).not.toBe(before)
    first.kill('SIGCONT')
    expect((await ended)[0]).toBe(5)
    expect(await mesh.filesOf('m1')).toBe(made)
    expect((await mesh.muster('up', '--yes')).code).toBe(0)
    await expectGood()
  })

  it('leaves a file unchanged on a full disk, and continues when there is space', async () => {
    await mesh.exec(
      'm2',
      'mkdir small && mount -t tmpfs -o size=64k,mode=700 none small && cp -p .ssh/* small && mount --move small .ssh && rmdir small',
    )
    await mesh.exec('m2', 'dd if=/dev/zero of=.ssh/other bs=4k 2> /dev/null; ls .ssh/other')
    const before = await mesh.exec('m2', 'cat .ssh/authorized_keys')
    const first = await mesh.muster('up', '--yes')
    expect(first.code).toBe(5)
    expect(first.stdout).toMatch(/^m2: create a key.*: FAILED: .*; undone: remove the unfinished key$/m)
    expect(first.stdout).toMatch(/^m1: change ~\/\.ssh\/authorized_keys: not started: create a key.* failed on m2$/m)
    expect(await mesh.exec('m2', 'cat .ssh/authorized_keys; ls .ssh')).toBe(`${before}authorized_keys\nother\n`)
    // Room for the keys, and not for what comes after them.
    await mesh.exec('m2', 'truncate -s -8k .ssh/other')
    const second = await mesh.muster('up', '--yes')
    expect(second.code).toBe(5)
    expect(second.stdout).toMatch(/^m2: change ~\/\.ssh\/authorized_keys: FAILED: .*No space left/m)
    expect(await mesh.exec('m2', 'cat .ssh/authorized_keys')).toBe(before)
    await mesh.exec('m2', 'rm .ssh/other')
    const third = await mesh.muster('up', '--yes')
    expect([third.code, third.stderr]).toEqual([0, ''])
    await expectGood()
  })
})
