/** However an MPI job ends, its reason names rank or launcher with its host, and no process of it is left on any host. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'mpirun.openmpi', 'python mpi4py')

/** From the end of the first process to that of the last one. */
const END_MS = 15_000

describe.skipIf(!canRun)('a job of mpirun that ends', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  const submit = async (how: string, ...options: readonly string[]) =>
    await queue.submit(
      ...['--launch', 'mpi', '--bundles', '3', '--slots', '1', ...options],
      ...['--', 'python3', '/srv/mpi_end.py', how],
    )
  /** Processes of jobs on all hosts, by the mark in their environment. */
  const marked = () =>
    lab.hosts.flatMap((host) =>
      host.processes().filter(({ pid, state }) => {
        if (state === 'Z') return false
        try {
          return readFileSync(`/proc/${pid}/environ`, 'utf8').includes('MUSTER_BUNDLE=')
        } catch {
          return false
        }
      }),
    )
  const nothingLeft = async () =>
    await waitUntil(() => marked().length === 0, 'the end of all processes', END_MS).catch((error: unknown) => {
      throw new Error(`${error}: ${marked().map(({ command }) => command)}`)
    })
  const isUp = async (id: string) =>
    await waitUntil(async () => (await queue.job('logs', id)).stdout === 'up\n', 'all ranks to be up')
  const kill = (host: string, name: string) => {
    const found = lab
      .host(host)
      .processes()
      .find((one) => one.name === name)
    if (found === undefined) throw new Error(`there is no ${name} on ${host}`)
    process.kill(found.pid, 'SIGKILL')
  }
  const left = /nothing left on m1 m2 m3/

  beforeAll(async () => {
    lab = await startLab({ count: 3, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    queue = labQueue(lab, hostsFileOf(lab, 'mpi-ends'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it.each([
    ['exit', /rank 1 on m2 failed first: exit 3/],
    ['raise', /rank 1 on m2 failed first: exit 1.*ValueError: bad batch/],
    ['kill', /rank 1 on m2 failed first: exit 137 .SIGKILL./],
  ])('by a rank with %s, the only one that failed', async (how, reason) => {
    const id = await submit(how)
    expect(await queue.work().ended).toEqual([0, null])
    expect(marked()).toEqual([])
    const shown = await queue.show(id)
    expect(shown).toMatch(reason)
    expect(shown).toMatch(left)
    expect((await queue.job('ranks', id, '--failed')).stdout).toMatch(/^RANK.*\n1\tm2\tfailed, exit \d+\t.*\n$/)
  })

  it.each([
    ['mpirun', 'm1'],
    ['orted', 'm3'],
  ])('by %s, killed on %s', async (name, host) => {
    const id = await submit('stay')
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    await isUp(id)
    kill(host, name)
    await nothingLeft()
    expect(await ended).toEqual([0, null])
    const shown = await queue.show(id)
    expect(shown).toMatch(new RegExp(`the mpi launcher on ${host} failed first: exit 137`))
    expect(shown).toMatch(left)
    expect((await queue.job('ranks', id)).stdout).not.toContain('\tfailed')
  })

  it('by a rank that is killed with the program that would tell its end', async () => {
    const id = await submit('stay')
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    await isUp(id)
    const own = lab
      .host('m2')
      .processes()
      .filter(({ command }) => command.includes('mpi_end.py'))
    // All at once: none sees that another one was killed.
    for (const signal of ['SIGSTOP', 'SIGKILL'] as const) for (const { pid } of own) process.kill(pid, signal)
    await nothingLeft()
    expect(await ended).toEqual([0, null])
    const shown = await queue.show(id)
    expect(shown).toContain(
      'the mpi launcher on m1 failed: exit 137 (SIGKILL); lost: rank 1 on m2 (SIGKILL, says mpirun)\n',
    )
    expect(shown).toMatch(left)
    expect((await queue.job('ranks', id, '--failed')).stdout).toMatch(/^RANK.*\n1\tm2\tlost\t.*\n$/)
    expect((await queue.job('logs', id, '--failed')).stdout).toBe('==> rank 1 on m2: lost <==\n')
  })

  it('by cancel', async () => {
    const id = await submit('stay')
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    await isUp(id)
    expect((await queue.job('cancel', id)).code).toBe(0)
    await nothingLeft()
    expect(await ended).toEqual([0, null])
    expect((await queue.find(id)).state).toBe('cancelled')
    expect(await queue.show(id)).toMatch(left)
  })

  it('by another scheduler, where the first one was killed before it started what mpirun asked for', async () => {
    const slow =
      '#!/bin/sh\\ncase $1 in --version) ;; *) touch /root/began; while [ -e /root/waits ]; do sleep 0.1; done;; esac\\nexec /usr/bin/mpirun "$@"\\n'
    const prepare = `mkdir -p /root/slow && printf '${slow}' >/root/slow/mpirun && chmod 755 /root/slow/mpirun && touch /root/waits`
    expect((await lab.host('m1').exec(prepare)).code).toBe(0)
    const id = await submit('exit', '--env', 'PATH=/root/slow:/usr/bin:/bin')
    const { child } = queue.work()
    await waitUntil(async () => (await lab.host('m1').exec('test -e began')).code === 0, 'mpirun to begin')
    child.kill('SIGSTOP')
    await lab.host('m1').exec('rm waits')
    const said = 'grep -q "^agent " /root/.local/state/muster/jobs/*/said'
    await waitUntil(async () => (await lab.host('m1').exec(said)).code === 0, 'mpirun to ask for orted')
    expect(
      lab
        .host('m2')
        .processes()
        .some(({ name }) => name === 'orted'),
    ).toBe(false)
    child.kill('SIGKILL')
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/rank 1 on m2 failed first: exit 3/)
    await nothingLeft()
  })
})
