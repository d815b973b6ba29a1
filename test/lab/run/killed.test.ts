/**
 * Muster is killed at a random moment between its start and its end: no process of it stays on the hosts, and no file has its
 * final name before it is whole. A few rounds each; MUSTER_ROUNDS sets how many.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { writeProgram } from '../../support/program.ts'
import { requirement } from '../../support/requirements.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')
const ROUNDS = Number(process.env.MUSTER_ROUNDS ?? 2)

const HOSTS = ['m1', 'm2']
const SIZE_BYTES = 8_000_000
let letters = 0
/** What files hold: one letter, another each time, so that a mixture shows. */
const newContent = (): Buffer => Buffer.alloc(SIZE_BYTES, 97 + (letters++ % 26))
const isWhole = (bytes: Buffer): boolean =>
  bytes.length === SIZE_BYTES && bytes.equals(Buffer.alloc(SIZE_BYTES, bytes[0]))

/** Children that ignore TERM, that are in groups of their own, that have closed their output. */
const STUBBORN = `sleep 4321 & (trap '' TERM; sleep 4322; sleep 4323) & bash -mc 'sleep 4324 >/dev/null 2>&1 & sleep 4325'`

type Scenario = {
  readonly args: readonly string[]
  /** Makes what a round reads. */
  prepare?(): void
  /** Paths of files by their final names that hold something else than one round's content. */
  halves?(): readonly string[]
}

describe.skipIf(!canRun)('killed at any moment', () => {
  let lab: Lab
  let files: string
  let atRest: ReadonlySet<number>
  let muster: ChildProcess | undefined

  const strangers = (isWarm: boolean): readonly string[] =>
    lab.hosts.flatMap((host) =>
      host
        .processes()
        .filter(({ pid, state, name }) => !atRest.has(pid) && state !== 'Z' && !(isWarm && name === 'sshd'))
        .map(({ command }) => `${host.name}: ${command.slice(0, 60)}`),
    )
  const start = (args: readonly string[]): Promise<unknown> => {
    const [file = '', ...argv] = lab.command([...PROGRAM, '--hosts', lab.hostsFile, ...args])
    muster = spawn(file, argv, { env: lab.environment, stdio: 'ignore' })
    return once(muster, 'exit')
  }
  /** Resolves at the first sign on a host, or at the end. */
  const begun = async (ended: Promise<unknown>, isWarm: boolean) => {
    let isOver = false
    void ended.then(() => {
      isOver = true
    })
    await waitUntil(() => isOver || strangers(isWarm).length > 0, 'a host to hear of it', 60_000)
  }
  const homeOf = (name: string): string => join(lab.directory, 'hosts', name, 'home')
  const halvesIn = (directory: string): readonly string[] =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/^\.muster-|\.part$|\.err$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !isWhole(readFileSync(path)))
  const putOnHosts = () => {
    for (const name of HOSTS) writeFileSync(join(homeOf(name), 'source'), newContent())
  }

  const scenarios: Record<string, () => Scenario> = {
    run: () => ({ args: ['run', 'all', '--timeout', '3', '--', STUBBORN] }),
    'run --out': () => ({
      args: ['run', 'all', '--yes', '--out', join(files, 'out'), '--', 'cat source'],
      prepare: putOnHosts,
      halves: () => halvesIn(join(files, 'out')),
    }),
    copy: () => ({
      args: ['copy', 'all', join(files, 'copied'), 'copies/'],
      prepare: () => writeFileSync(join(files, 'copied'), newContent()),
      halves: () => HOSTS.flatMap((name) => halvesIn(join(homeOf(name), 'copies'))),
    }),
    fetch: () => ({
      args: ['fetch', 'all', 'source', join(files, 'fetched')],
      prepare: putOnHosts,
      halves: () => halvesIn(join(files, 'fetched')),
    }),
  }

  beforeAll(async () => {
    lab = await startLab({ count: HOSTS.length })
    files = mkdtempSync(join(tmpdir(), 'killed-'))
    for (const name of ['out', 'fetched']) mkdirSync(join(files, name))
    for (const name of HOSTS) mkdirSync(join(homeOf(name), 'copies'))
    atRest = new Set(lab.hosts.flatMap((host) => host.processes().map(({ pid }) => pid)))
  })

  afterEach(() => {
    muster?.kill('SIGKILL')
  })
  afterAll(async () => {
    await lab?.run([...PROGRAM, 'hosts', '--stop'])
    await lab?.stop()
    if (files !== undefined) rmSync(files, { recursive: true })
  })

  // Cold ones first: later the background process holds connections.
  const cases = [[], ['--persist', '300']].flatMap((options) =>
    Object.keys(scenarios).map((name) => ({ name, options })),
  )
  it.each(cases)(
    `muster $options $name leaves nothing behind (${ROUNDS} rounds)`,
    async ({ name, options }) => {
      const { args, prepare, halves } = (scenarios[name] as () => Scenario)()
      const isWarm = options.length > 0
      const random = seededRandom()
      const nothingLeft = () =>
        waitUntil(() => strangers(isWarm).length === 0, `the end of ${strangers(isWarm).join(', ')}`, 60_000)
      prepare?.()
      const whole = start([...options, ...args])
      await begun(whole, isWarm)
      const begunAtMs = Date.now()
      expect(await whole).toEqual([name === 'run' ? 1 : 0, null])
      const busyMs = Date.now() - begunAtMs
      await nothingLeft()
      for (let round = 1; round <= ROUNDS; round += 1) {
        prepare?.()
        const ended = start([...options, ...args])
        await begun(ended, isWarm)
        await Promise.race([delay(random() * busyMs), ended])
        muster?.kill('SIGKILL')
        await ended
        await nothingLeft()
        expect(halves?.() ?? []).toEqual([])
      }
    },
    Math.max(600_000, ROUNDS * 60_000),
  )

  // Neither the end of the channel nor that of its input ends these by itself. Warm: the connection stays open.
  it.each([
    ['find', 'SIGINT', []],
    ['find', 'SIGKILL', []],
    ['find', 'SIGKILL', ['--persist', '300']],
    // Which reads what is summed.
    ['head', 'SIGINT', ['--persist', '300']],
  ] as const)('ends %s on a slow disk after %s, with %j', async (program, signal, options) => {
    const home = homeOf('m1')
    const [rc, bin, began] = ['.bashrc', 'bin', 'began'].map((name) => join(home, name)) as [string, string, string]
    const before = readFileSync(rc)
    try {
      mkdirSync(bin)
      // Quick unless it is for the file.
      const isForIt = `[ "\${1##*/}" = big ] || [ "$(basename "$(readlink /proc/self/fd/0)")" = big ]`
      const quick = `${isForIt} || exec /usr/bin/${program} "$@"`
      writeProgram(join(bin, program), `${quick}\n: >$HOME/began\nexec sleep 1000`)
      writeFileSync(rc, `PATH=$HOME/bin:$PATH\n${before}`)
      mkdirSync(join(files, 'slow', 'm1'), { recursive: true })
      for (const path of [join(home, 'big'), join(files, 'slow', 'm1', 'big')]) {
        writeFileSync(path, '')
        truncateSync(path, 70 * 1024 * 1024)
      }
      const ended = start([...options, 'fetch', 'm1', 'big', join(files, 'slow')])
      await waitUntil(() => existsSync(began), `${program} on the host`)
      muster?.kill(signal)
      await ended
      // The tests above have left connections that are kept.
      await waitUntil(() => strangers(true).length === 0, 'the end of all on the host')
    } finally {
      writeFileSync(rc, before)
      for (const path of [bin, began]) rmSync(path, { recursive: true, force: true })
    }
  })
})
