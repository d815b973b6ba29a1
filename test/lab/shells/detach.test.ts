/** Consoles whose client or process is killed, on real hosts: what should be kept is kept, and nothing else is left. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endSession, type FoundSession, findSessions } from '../../../src/cli/sessions/session-directory.ts'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')
const COUNT = 64
/** Hosts of the console whose processes are killed again and again. */
const FEW = ['m1', 'm2', 'm3']
const KILLS = Number(process.env.MUSTER_KILLS ?? 6)
const KILL_LIMIT_MS = 60_000 + KILLS * 20_000

describe.skipIf(!canRun)('a console whose processes are killed', () => {
  let lab: Lab
  let directory: string
  let environment: Record<string, string>
  const open: ConsoleDriver[] = []

  beforeAll(async () => {
    lab = await startLab({ count: COUNT })
  })

  afterAll(async () => {
    await lab?.stop()
  })

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-kills-'))
    environment = { MUSTER_RUNTIME_DIR: directory }
  })

  afterEach(async () => {
    for (const each of await sessions()) await endSession(each, environment)
    for (const each of open.splice(0)) await each.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const sessions = () => findSessions(environment)
  const start = async (args: readonly string[], size: readonly [number, number]): Promise<ConsoleDriver> => {
    const console = await openConsole({ in: lab, args, size, environment })
    open.push(console)
    return console
  }
  const detached = async (): Promise<FoundSession> => {
    await waitUntil(async () => {
      const [only] = await sessions()
      return only !== undefined && only.terminal === undefined
    }, 'the console to be detached')
    return (await sessions())[0] as FoundSession
  }
  /** The pid and its start time, as pids are reused; undefined: the process is gone. */
  const processOf = (pid: number): string | undefined => {
    try {
      const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ')
      return state === 'Z' ? undefined : `${pid} ${fields[18]}`
    } catch {
      return undefined
    }
  }
  const isGone = (known: string) => processOf(Number.parseInt(known, 10)) !== known
  const shellsOn = (host: string) =>
    lab
      .host(host)
      .processes()
      .filter(({ name, state }) => name === 'bash' && state !== 'Z')
      .map(({ pid }) => pid)

  it('keeps 64 shells with their screens', async () => {
    const first = await start(['--keep', '--hosts', lab.hostsFile], [240, 67])
    await first.expectAllOpen({ timeoutMs: 120_000 })
    await first.expectPrompts()
    await first.type('seq -f "line %g" 30; tput setaf 1; hostname; tput sgr0\r')
    const panes = first.state?.panes ?? []
    await first.expectOnAll(
      panes.map(({ host }) => host),
      (host) => new RegExp(`^${host}$`, 'm'),
    )
    await first.expectPrompts()
    // A terminal distinguishes a space that was written from an empty cell; both look the same.
    const cellsOf = (console: ConsoleDriver) =>
      panes.map(({ host }) =>
        console.cells(console.pane(host)).map((row) => row.map((cell) => ({ ...cell, text: cell.text || ' ' }))),
      )
    const before = cellsOf(first)
    first.signal('SIGKILL')
    await first.ended()
    expect(await detached()).toMatchObject({ shells: COUNT, hostCount: COUNT })
    const second = await start(['attach'], [240, 67])
    await second.expectPrompts()
    expect(second.state?.panes).toEqual(panes)
    expect(cellsOf(second)).toEqual(before)
    await second.quit()
    await waitUntil(() => lab.names.every((host) => shellsOn(host).length === 0), 'the shells to end')
  })

  it(
    'loses no shell with its client, and leaves nothing behind with its process',
    async () => {
      const random = seededRandom()
      const known = new Set<string>()
      const note = (pid: number) => known.add(processOf(pid) ?? '')
      const begin = async () => {
        const console = await start(['--keep', '--hosts', lab.hostsFile, FEW.join()], [120, 40])
        await console.expectReady()
        return console
      }
      let console = await begin()
      for (let kill = 0; kill < KILLS; kill += 1) {
        const [session] = await sessions()
        const shells = FEW.map(shellsOn)
        for (const pid of [console.pid, session?.pid ?? 0]) note(pid)
        await console.type(`echo before-${kill}\r`)
        await console.expectOnAll(FEW, () => new RegExp(`^before-${kill}$`, 'm'))
        // In the middle of frames, or at rest.
        if (random() < 0.5) console.send('seq 20000\r')
        if (random() < 0.6) {
          if (random() < 0.5) await console.hangUp()
          else {
            console.signal('SIGKILL')
            await console.ended()
          }
          expect(await detached()).toMatchObject({ pid: session?.pid, shells: FEW.length })
          // Large enough for all panes on one page.
          const size = [90 + Math.floor(random() * 100), 24 + Math.floor(random() * 40)] as const
          console = await start(['attach'], size)
          expect(FEW.map(shellsOn)).toEqual(shells)
          await console.type(`echo after-${kill}\r`)
          await console.expectOnAll(FEW, () => new RegExp(`^after-${kill}$`, 'm'))
        } else {
          process.kill(session?.pid ?? 0, 'SIGKILL')
          expect(await console.ended()).toEqual({ code: 1 })
          expect(console.modes).toMatchObject({ isAlternateScreen: false, isCursorHidden: false, mouse: 'none' })
          await waitUntil(() => FEW.every((host) => shellsOn(host).length === 0), 'the shells to end')
          console = await begin()
        }
      }
      await console.quit()
      for (const each of await sessions()) note(each.pid)
      await waitUntil(() => [...known].every(isGone), 'all processes to end')
      expect(readdirSync(join(directory, 'muster'))).toEqual(['token'])
      await waitUntil(() => FEW.every((host) => shellsOn(host).length === 0), 'the shells to end')
    },
    KILL_LIMIT_MS,
  )
})
