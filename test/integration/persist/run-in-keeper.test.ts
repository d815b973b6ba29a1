/** `muster run` as a process of its own, whose work the keeper does over its connections. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { buildName } from '../../../src/cli/command-line/build-name.ts'
import { runForProgram } from '../../../src/cli/keep-connections.ts'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { runKeeper } from '../../../src/ssh/persist/keeper.ts'
import { createPrivateDirectory } from '../../../src/ssh/private-directory.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { ROOT } from '../../support/console-options.ts'
import { writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PROGRAM = ['--import', join(ROOT, 'node_modules', 'tsx', 'dist', 'esm', 'index.mjs'), join(ROOT, 'src', 'run.ts')]

describe.skipIf(!requirement('ssh'))('a run whose hosts are all warm', () => {
  let hosts: EmbeddedHosts
  beforeAll(async () => {
    hosts = await startEmbeddedHosts({ count: 3, spawnPty: spawnLocalPty })
  })
  afterAll(() => hosts.close())

  /** A keeper in this process, and how often it was asked to do a run, and did. */
  async function setUp({ build = buildName() } = {}) {
    const runtime = await createPrivateDirectory('muster-keeper-')
    const inventory = writeEmbeddedInventory(hosts, [])
    const home = dirname(inventory.file)
    const abort = new AbortController()
    const work = { asked: 0, done: 0 }
    const keeper = runKeeper({
      directory: join(runtime.path, 'muster'),
      createTransport: () => createSsh2Transport(),
      clock: systemClock,
      signal: abort.signal,
      lingerMs: 60_000,
      doWork(warm, request, streams) {
        work.asked += 1
        const accept = () => {
          work.done += 1
          streams.accept()
        }
        return runForProgram(build, warm, request, { ...streams, accept })
      },
    })
    await waitUntil(() => existsSync(join(runtime.path, 'muster')), 'the keeper to listen')
    const children: ChildProcess[] = []
    const start = (...args: readonly string[]) => {
      const child = spawn(
        process.execPath,
        [...PROGRAM, 'run', '--hosts', inventory.file, '--persist', '60', ...args],
        {
          cwd: home,
          env: { ...inventory.environment, MUSTER_RUNTIME_DIR: runtime.path, XDG_STATE_HOME: join(home, 'state') },
          stdio: ['pipe', 'pipe', 'pipe'],
        },
      )
      children.push(child)
      return child
    }
    const muster = async (args: readonly string[], stdin = '') => {
      const child = start(...args)
      child.stdin.end(stdin)
      return { ...(await outputOf(child)), code: child.exitCode }
    }
    return {
      ...{ work, start, muster, home, stopKeeper: () => abort.abort() },
      async [Symbol.asyncDispose]() {
        for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
        abort.abort()
        await keeper
        inventory[Symbol.dispose]()
        runtime[Symbol.dispose]()
      },
    }
  }

  it('is done by the keeper, as the process itself does it the first time', async () => {
    await using setup = await setUp()
    const args = ['m[1-3]', '--json', '--', 'echo %h; printf "a\\377" >&2; exit %n']
    const [first, second] = [await setup.muster(args), await setup.muster(args)]
    expect(setup.work).toEqual({ asked: 2, done: 1 })
    const lines = ({ stdout }: { stdout: string }) =>
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => ({ ...JSON.parse(line), durationMs: 0 }))
        .sort((one, other) => String(one.host).localeCompare(String(other.host)))
    expect(lines(second)).toEqual(lines(first))
    expect(lines(second)).toHaveLength(4)
    expect([first.code, second.code]).toEqual([1, 1])
    // What it kept for the next run is the user's, wherever it was written.
    expect(JSON.parse(readFileSync(join(setup.home, 'state/muster/last-run.json'), 'utf8'))).toMatchObject({
      directory: setup.home,
      failed: ['m1', 'm2', 'm3'],
    })
  })

  it('has its words, directory and environment, and fails in the same words', async () => {
    await using setup = await setUp()
    await setup.muster(['all', '--', 'true'])
    const { stdout } = await setup.muster(['m1', '--env', 'V=é', '--fold', '--', 'echo "$V"'])
    expect(stdout).toContain('é')
    const bad = await setup.muster(['m1', '--timeout', '0', '--', 'true'])
    expect(bad.code).toBe(2)
    expect(bad.stderr).toMatch(/--timeout/)
    const unknown = await setup.muster(['@nobody', '--', 'true'])
    expect([unknown.code, unknown.stdout]).toEqual([2, ''])
    expect(unknown.stderr).toContain('nobody')
    expect(setup.work).toEqual({ asked: 4, done: 1 })
  })

  it('is left to the process where it needs its stdin, its files or a question', async () => {
    await using setup = await setUp()
    await setup.muster(['all', '--', 'true'])
    writeFileSync(join(setup.home, 'script'), '#!/bin/sh\necho from a script; exit 1\n')
    expect((await setup.muster(['m1', '--stdin', '-', '--', 'cat'], 'given')).stdout).toBe('m1: given\n')
    expect((await setup.muster(['-', '--', 'echo %h'], 'm2\nm3\n')).stdout.split('\n').sort()).toEqual([
      ...['', 'm2: m2', 'm3: m3'],
    ])
    expect((await setup.muster(['m1', '--script', 'script'])).stdout).toBe('m1: from a script\n')
    // The record of the run has the script, not the options of this one.
    expect((await setup.muster(['--retry-failed'])).stdout).toBe('m1: from a script\n')
    expect(setup.work).toEqual({ asked: 5, done: 0 })
  })

  it('is left to a process of another build', async () => {
    await using setup = await setUp({ build: 'another' })
    for (const word of ['one', 'two'])
      expect((await setup.muster(['m1', '--', 'echo', word])).stdout).toBe(`m1: ${word}\n`)
    expect(setup.work).toEqual({ asked: 2, done: 0 })
  })

  it('prints everything, however slowly it is read', async () => {
    await using setup = await setUp()
    await setup.muster(['all', '--', 'true'])
    const child = setup.start('m1', '--', 'seq 400000')
    await once(child.stdout, 'readable')
    const reading = outputOf(child)
    child.stdout.resume()
    const { stdout } = await reading
    const lines = stdout.trimEnd().split('\n')
    expect([lines.length, lines.at(-1)]).toEqual([400_000, 'm1: 400000'])
    expect(setup.work).toEqual({ asked: 2, done: 1 })
  })

  it('ends when nobody reads any more', async () => {
    await using setup = await setUp()
    await setup.muster(['all', '--', 'true'])
    const child = setup.start('m1', '--', 'yes')
    await once(child.stdout, 'data')
    child.stdout.destroy()
    const { stderr } = await outputOf(child)
    expect(stderr).toBe('')
    expect(setup.work).toEqual({ asked: 2, done: 1 })
  })

  it.each([
    ['SIGINT', 130, 'stopping the command'],
    ['SIGKILL', null, ''],
  ] as const)('stops the command when its process gets %s', async (signal, code, said) => {
    await using setup = await setUp()
    await setup.muster(['all', '--', 'true'])
    const child = setup.start('m1', '--', 'echo $$; exec sleep 1000')
    const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
    const pid = Number(/\d+$/.exec(line.trim())?.[0])
    expect(existsSync(`/proc/${pid}`)).toBe(true)
    child.kill(signal)
    const { stderr } = await outputOf(child)
    expect(child.exitCode).toBe(code)
    expect(stderr).toContain(said)
    await waitUntil(() => !existsSync(`/proc/${pid}`), 'the command to end')
  })

  it('says so when the keeper ends while it works', async () => {
    await using setup = await setUp()
    await setup.muster(['all', '--', 'true'])
    const child = setup.start('m1', '--', 'echo begun; exec sleep 1000')
    await once(child.stdout, 'data')
    setup.stopKeeper()
    const { stderr } = await outputOf(child)
    expect(child.exitCode).toBe(4)
    expect(stderr).toContain('the process that keeps connections has ended')
  })
})

async function outputOf(child: ChildProcess): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text) => {
      texts[name] += text
    })
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  return texts
}
