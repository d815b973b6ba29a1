/** `muster launch`: one command from a fresh cluster to the end of all ranks, without a scheduler that somebody started before. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'mpirun.openmpi', 'python mpi4py')

const SUM = `
from mpi4py import MPI
world = MPI.COMM_WORLD
print("sum", world.allreduce(world.rank + 1), "on rank", world.rank, flush=True)
`
const RAISE = `
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 1: sys.exit(7)
world.Barrier()
`
const STEPS = `
import os, time
from mpi4py import MPI
world = MPI.COMM_WORLD
print("step", 11 + world.rank, flush=True)
while not os.path.exists(os.path.expanduser("~/go")): time.sleep(0.05)
world.Barrier()
`
const WAIT = `
import signal
from mpi4py import MPI
print("begun", MPI.COMM_WORLD.rank, flush=True)
signal.pause()
`

describe.skipIf(!canRun)('muster launch', { timeout: 120_000 }, () => {
  let lab: Lab
  let hostsFile: string
  let argv: (...args: readonly string[]) => readonly string[]

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    hostsFile = hostsFileOf(lab, 'launch')
    argv = (...args) => [...PROGRAM, '--hosts', hostsFile, ...args]
  })
  afterAll(async () => await lab?.stop())

  const launch = async (program: string, ...options: readonly string[]) =>
    await lab.run(argv('launch', 'mpi', '--bundles', '2', '--slots', '1', ...options, '--', 'python3', '-c', program))

  it('runs the queue itself, prints what rank 0 prints, and ends with it', async () => {
    const { code, stdout, stderr } = await launch(SUM)
    expect(stdout).toBe('sum 3 on rank 0\n')
    expect(stderr).toMatch(/^muster: job \d+: running on m\[1-2\]$/m)
    expect(stderr).toMatch(/^muster: job \d+: done$/m)
    expect(code).toBe(0)
  })

  it('prints the output of another rank on request', async () => {
    expect(await launch(SUM, '--follow', '1')).toMatchObject({ code: 0, stdout: 'sum 3 on rank 1\n' })
  })

  it('ends with the exit code of the rank that failed first, and names it, also with --quiet', async () => {
    const { code, stderr } = await launch(RAISE, '--quiet')
    expect(code).toBe(7)
    expect(stderr).not.toContain('running on')
    expect(stderr).toMatch(/^muster: rank 1 on m2 failed: exit 7/m)
    expect(stderr).toMatch(/^muster: job \d+: failed: rank 1 on m2 failed first: exit 7/m)
  })

  /** What it says until `isReached`, then Ctrl-C, then its end. */
  const interrupt = async (
    words: readonly string[],
    isReached: (text: Record<'stdout' | 'stderr', string>) => boolean,
  ) => {
    const [file = '', ...rest] = lab.command(words)
    const child = spawn(file, rest, { env: lab.environment, stdio: ['ignore', 'pipe', 'pipe'] })
    const ended = once(child, 'close')
    const text = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (piece: string) => {
        text[name] += piece
      })
    await waitUntil(() => isReached(text), `what ${words.join(' ')} says`)
    child.kill('SIGINT')
    expect(await ended).toEqual([130, null])
    return text
  }

  it('cancels the job at Ctrl-C, and waits until nothing of it is left', async () => {
    const words = argv('launch', 'mpi', '--bundles', '2', '--slots', '1', '--', 'python3', '-c', WAIT)
    const text = await interrupt(words, ({ stdout }) => stdout.includes('begun 0'))
    expect(text.stderr).toMatch(/^muster: cancelling job \d+: waiting until its processes have ended$/m)
    expect(text.stderr).toMatch(/^muster: job \d+: cancelled$/m)
    for (const host of lab.hosts)
      expect((await host.exec("pgrep -af '[t]ime.sleep' | grep -v pgrep; true")).stdout).toBe('')
  })

  it('redraws a table of ranks below their output on a terminal, and leaves none behind', async () => {
    await using console = await openConsole({
      until: false,
      in: lab,
      args: [
        ...argv('launch', 'mpi', '--bundles', '2', '--slots', '1', '--', 'python3', '-c', STEPS).slice(PROGRAM.length),
      ],
      size: [100, 20],
    })
    const table = /^RANK +HOST +STATE +STEP +QUIET +LAST LINE$/
    await waitUntil(
      () =>
        console.screen().some((line) => table.test(line)) &&
        console.screen().some((line) => /^1 +m2 +running +12 /.test(line)),
      'the table of ranks',
    )
    for (const host of lab.hosts) await host.exec('touch go')
    await waitUntil(() => console.ending !== undefined, 'its end')
    expect(console.ending).toEqual({ code: 0 })
    expect(console.screen().some((line) => table.test(line))).toBe(false)
    expect(console.screen().join('\n')).toMatch(/step 11\n(.*\n)*muster: job \d+: done/)
  })

  it('says why a job waits, and takes it back at Ctrl-C', async () => {
    const words = argv('launch', 'mpi', '--bundles', '3', '--cpu', '8', '--', 'true')
    const { stderr } = await interrupt(words, (text) => /^muster: job \d+ waits: /m.test(text.stderr))
    expect(stderr).toMatch(/^muster: job \d+ waits: .*(Too large|fits)/m)
  })

  it('says where a service answers, and stops it at Ctrl-C', async () => {
    const file = hostsFileOf(lab, 'serve', 'cpu: 8, gpu: 4, memory: 1GiB')
    const words = [...PROGRAM, '--hosts', file, 'launch', 'vllm', '--vllm', '/srv/vllm', '--tp', '2', '--', 'a/model']
    const { stderr } = await interrupt(words, (text) => text.stderr.includes('ready at'))
    expect(stderr).toMatch(/^muster: job \d+: ready at http:\/\/10\.81\.0\.[12]:46\d{3}\/v1$/m)
    expect(stderr).toMatch(/^muster: nothing left on m[12]$/m)
  })

  it('only submits the job with --detach, and says that no scheduler runs', async () => {
    const { code, stdout, stderr } = await launch(SUM, '--detach')
    const advice = `muster: no scheduler running. Run: muster job work --hosts ${hostsFile}\n`
    expect({ code, stderr }).toEqual({ code: 0, stderr: advice })
    expect(stdout).toMatch(/^\d+\n$/)
  })
})
