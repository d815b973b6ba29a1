/** However a run ends, no process of it stays on the hosts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { signalProcess } from '../cluster/processes.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

/** Children that ignore TERM, that are in groups of their own, that have closed their output. */
const STUBBORN = `sleep 4321 & (trap '' TERM; sleep 4322; sleep 4323) & bash -mc 'sleep 4324 >/dev/null 2>&1 & sleep 4325'`

describe.skipIf(!canRun)('after muster run', () => {
  let lab: Lab
  let muster: ChildProcess | undefined
  let files: string

  /** Processes of commands, by what they run. */
  const left = (): string[] =>
    lab.hosts.flatMap((host) =>
      host
        .processes()
        .filter(({ command, state }) => state !== 'Z' && /432[0-9]|kill -0|timeout/.test(command))
        .map(({ command }) => `${host.name}: ${command.slice(0, 40)}`),
    )
  const runs = (host: string, count = 1): boolean =>
    lab
      .host(host)
      .processes()
      .filter(({ command }) => /^sleep 432/.test(command)).length >= count
  const start = (...args: readonly string[]): ChildProcess => {
    const [file = '', ...argv] = lab.command([...PROGRAM, '--hosts', lab.hostsFile, 'run', ...args])
    muster = spawn(file, argv, { env: lab.environment, stdio: ['ignore', 'pipe', 'pipe'] })
    muster.stdout?.resume()
    muster.stderr?.resume()
    return muster
  }
  const nothingLeft = () => waitUntil(() => left().length === 0, `the end of ${left().join(', ')}`)
  const ended = async (child: ChildProcess): Promise<number | null> =>
    child.exitCode ?? ((await once(child, 'exit')) as [number | null])[0]

  beforeEach(async () => {
    lab = await startLab({ count: 2 })
    for (const host of lab.hosts) await host.exec('mount -t tmpfs none /tmp')
    files = mkdtempSync(join(tmpdir(), 'left-behind-'))
    writeFileSync(join(files, 'script'), `#!/bin/bash\n${STUBBORN}\n`)
    writeFileSync(join(files, 'input'), Buffer.alloc(30_000_000, 'input\n'))
  })

  afterEach(async () => {
    muster?.kill('SIGKILL')
    await lab?.stop()
    rmSync(files, { recursive: true })
  })

  it('that exceeded its time limit, nothing is left, and the exit code is 1', async () => {
    expect(await ended(start('all', '--timeout', '1', '--', STUBBORN))).toBe(1)
    await nothingLeft()
  })

  it('that was interrupted, nothing is left when it has ended, and the exit code is 130', async () => {
    const child = start('all', '--', STUBBORN)
    await waitUntil(() => runs('m1', 4) && runs('m2', 4), 'the command to run')
    child.kill('SIGINT')
    expect(await ended(child)).toBe(130)
    await nothingLeft()
  })

  it('that was interrupted twice, it exits at once, and nothing is left', async () => {
    const child = start('all', '--', `trap '' TERM; ${STUBBORN}`)
    await waitUntil(() => runs('m1', 4) && runs('m2', 4), 'the command to run')
    child.kill('SIGINT')
    await once(child.stderr as NodeJS.EventEmitter, 'data')
    child.kill('SIGINT')
    await ended(child)
    await nothingLeft()
  })

  it('whose link was cut, nothing is left, although the host was not notified', async () => {
    start('m1', '--', STUBBORN)
    // Three beats of 15 s may be missed before the host acts by itself.
    const watchers = () =>
      lab
        .host('m1')
        .processes()
        .filter(({ command }) => command.startsWith('timeout 45 '))
    await waitUntil(() => runs('m1', 4) && watchers().length > 0, 'the command to run')
    await lab.host('m1').linkDown()
    // As timeout(1) does itself when its time is up.
    await waitUntil(() => {
      for (const { pid } of watchers()) signalProcess(pid, 'SIGALRM')
      return left().length === 0
    }, 'the end of the command')
  })

  it('that succeeded, what the command itself put into the background stays', async () => {
    const child = start('m1', '--', 'nohup sleep 4321 >/dev/null 2>&1 &')
    expect(await ended(child)).toBe(0)
    await waitUntil(() => left().every((process) => /sleep 4321/.test(process)), 'the end of the wrapper')
    expect(runs('m1')).toBe(true)
  })
})
