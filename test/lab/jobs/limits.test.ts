/** Memory that jobs are held to, on hosts with a kernel of their own: one with cgroups, one without. */
import { appendFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { kernelImage } from '../cluster/kernel-image.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'kernel hosts')

/** Takes 40 MB; one after the other, as guests have little themselves. */
const TAKES = 'perl -e \'$x = "a" x 20_000_000; print length $x\''

/** The cgroup of a job; its processes are in a group below. */
const GROUP = 'g=/sys/fs/cgroup$(sed "s/^0:://; s|/main$||" /proc/self/cgroup)'

const ALONE = ['--on', 'k1', '--cpu', '8']

describe.skipIf(!canRun)('the memory of jobs', { timeout: 900_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  const cgroups = async () =>
    (await lab.kernelHost('k1').mustExec('ls -d /sys/fs/cgroup/muster/*/ 2>/dev/null || :')).trim()

  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({ count: 0, kernelHosts: { k1: 'service', k2: 'service', k3: 'systemd' } })
    await lab.kernelHost('k1').mustExec('mount -t cgroup2 none /sys/fs/cgroup')
    const file = hostsFileOf(lab, 'limits')
    appendFileSync(file, 'launchers: { alone: { ports: 0 } }\n')
    queue = labQueue(lab, file)
  }, 600_000)
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it('the kernel kills a job that uses more than it asked for, which is reported, and no other job', async () => {
    const more = await queue.submit(...ALONE, '--memory', '15MiB', '--', TAKES)
    const child = await queue.submit(...ALONE, '--memory', '15MiB', '--', `(${TAKES}); exit 0`)
    const less = await queue.submit(...ALONE, '--memory', '100MiB', '--', TAKES)
    const none = await queue.submit(...ALONE, '--', TAKES)
    const promise = await queue.submit(...ALONE, '--memory', '15MiB', '--no-limits', '--', TAKES)
    expect(await queue.work().ended).toEqual([0, null])
    for (const id of [more, child])
      expect(await queue.find(id)).toMatchObject({
        state: 'failed',
        reason: 'killed by the kernel: more memory than it asked for (15.0 MiB)',
      })
    for (const id of [less, none, promise]) {
      expect((await queue.find(id)).state).toBe('done')
      expect((await queue.job('logs', id)).stdout).toBe('20000000')
    }
    expect(await cgroups()).toBe('')
  })

  it('processes that left the group end with the job or when it is cancelled', async () => {
    const leaves = 'setsid sleep 3000 & setsid sleep 3001 & wait'
    const ends = await queue.submit(
      '--on',
      'k1',
      '--memory',
      '30MiB',
      '--cpu',
      '2',
      '--',
      `setsid sleep 3000 & ${GROUP}; cat $g/cpu.weight`,
    )
    const stays = await queue.submit('--on', 'k1', '--memory', '30MiB', '--', `trap "" TERM; ${leaves}`)
    const { seen, ended } = queue.work()
    await seen(isJob(ends, 'done'))
    expect((await queue.job('logs', ends)).stdout).toBe('200\n')
    await seen(isJob(stays, 'running'))
    expect((await queue.job('cancel', stays)).code).toBe(0)
    expect(await ended).toEqual([0, null])
    expect((await queue.find(stays)).state).toBe('cancelled')
    const left = await lab.kernelHost('k1').mustExec("pgrep -f '^sleep 300' || :")
    expect([left, await cgroups()]).toEqual(['', ''])
  })

  it('a job may create cgroups with controllers, and nothing of them is left', async () => {
    const inner =
      'echo +memory >$g/cgroup.subtree_control && mkdir -p $g/inner/more && echo 0 >$g/inner/more/cgroup.procs'
    const makes = await queue.submit(
      '--on',
      'k1',
      '--memory',
      '30MiB',
      '--',
      `${GROUP}; ${inner} && cat $g/inner/memory.max`,
    )
    const saves = `trap 'echo saved >>/root/saved; exit' TERM; while :; do sleep 0.1; done`
    const moves = `sh -c 'echo 0 >/sys/fs/cgroup/cgroup.procs; trap "" TERM; while :; do sleep 0.1; done # moved' & `
    const daemon = `(setsid sh -c '${saves.replaceAll("'", `'"'"'`)}' &); `
    const stays = await queue.submit('--on', 'k1', '--memory', '30MiB', '--', `${daemon}${moves}echo up; wait`)
    const { seen, ended } = queue.work()
    await seen(isJob(makes, 'done'))
    expect((await queue.job('logs', makes)).stdout).toBe('max\n')
    await seen(isJob(stays, 'running'))
    await waitUntil(async () => (await queue.job('logs', stays)).stdout === 'up\n', 'all of it to run')
    expect((await queue.job('cancel', stays)).code).toBe(0)
    expect(await ended).toEqual([0, null])
    expect((await queue.find(stays)).state).toBe('cancelled')
    const left = await lab.kernelHost('k1').mustExec("cat /root/saved; pgrep -f '^(sh -c echo 0|sleep 0.1)' || :")
    expect([left, await cgroups()]).toEqual(['saved\n', ''])
  })

  it('a launched job has a cgroup without limits, and leaves nothing where it has none', async () => {
    const spread = '(setsid sleep 3000 &); (env -i "PATH=$PATH" setsid sleep 3001 &); sleep 1'
    const launched = (host: string, command: string) => queue.submit('--on', host, '--launch', 'alone', '--', command)
    const unlimited = 'case $g in */muster/*) grep -q -s -v max $g/memory.max || echo unlimited;; esac'
    const grouped = await launched('k1', `${spread}; ${GROUP}; ${unlimited}`)
    const killed = await launched('k1', `${spread}; trap "" TERM; sleep 3000`)
    const beside = await launched('k3', `${spread}; ${GROUP}; ${unlimited}`)
    const swept = await launched('k2', spread)
    const { seen, ended } = queue.work()
    await seen(isJob(killed, 'running'))
    const on = async (host: string) =>
      (await lab.kernelHost(host).mustExec("pgrep -a -f '^sleep 300' || :")).trim().replace(/^\d+ /, '')
    await waitUntil(async () => (await on('k1')).includes('sleep 3001'), 'all of it to run')
    expect((await queue.job('cancel', killed)).code).toBe(0)
    expect(await ended).toEqual([0, null])
    expect(await Promise.all([grouped, beside].map(async (id) => (await queue.job('logs', id)).stdout))).toEqual([
      'unlimited\n',
      'unlimited\n',
    ])
    // What hides its environment and its parents is found by its cgroup alone.
    expect([await on('k1'), await on('k3'), await on('k2'), await cgroups()]).toEqual(['', '', 'sleep 3001', ''])
    for (const [id, host] of [
      [grouped, 'k1'],
      [killed, 'k1'],
      [beside, 'k3'],
      [swept, 'k2'],
    ] as const)
      expect(await queue.show(id)).toMatch(new RegExp(`processes: +nothing left on ${host}\n`))
    await lab.kernelHost('k2').mustExec('pkill -x -f "sleep 3001"')
  })

  it('works beside systemd, which has cgroups of its own', async () => {
    const more = await queue.submit('--on', 'k3', '--memory', '15MiB', '--', TAKES)
    const less = await queue.submit(
      '--on',
      'k3',
      '--memory',
      '100MiB',
      '--',
      `grep -q ^0::/muster/ /proc/self/cgroup && ${TAKES}`,
    )
    expect(await queue.work().ended).toEqual([0, null])
    expect((await queue.find(more)).reason).toMatch(/^killed by the kernel/)
    expect((await queue.find(less)).state).toBe('done')
  })

  it('without cgroups a job runs as before, and `show` says that its memory is not limited', async () => {
    const id = await queue.submit('--on', 'k2', '--memory', '15MiB', '--', TAKES)
    expect(await queue.work().ended).toEqual([0, null])
    expect((await queue.find(id)).state).toBe('done')
    expect(await queue.show(id)).toContain('exit 0; its memory is not limited there (needs root and cgroup v2)')
  })
})
