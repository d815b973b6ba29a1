import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CliContext } from '../../../../src/cli/command-line/verb.ts'
import {
  type ConsoleRequest,
  createConsoleJobs,
  declaredQueue,
  LivePreferences,
  openHostsResolver,
  runConsole,
} from '../../../../src/cli/console/run-console.ts'
import { driverHost } from '../../../../src/cli/job/declared-hosts.ts'
import { queuePath } from '../../../../src/cli/job/open-queue.ts'
import type { HoldOptions } from '../../../../src/cli/sessions/held-console.ts'
import { loadInventory } from '../../../../src/inventory/load-inventory.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import type { JobsPort } from '../../../../src/ui/jobs/queue-view.ts'
import { defaultPreferences, type Preferences } from '../../../../src/ui/preferences.ts'
import { contextIn } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'console-jobs-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { m8: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

const inventoryOf = async () =>
  await loadInventory({ file: join(directory, 'hosts.yaml'), cwd: directory, env: {}, sections: async () => [] })

const NO_HOSTS = { exec: () => expect.unreachable() }

it("shows the queue of hosts.yaml's hosts", async () => {
  using jobs = createConsoleJobs(declaredQueue({}, contextIn(directory), true), NO_HOSTS)
  expect((await jobs.read())?.hosts.map(({ name }) => name)).toEqual(['m8'])
})

it('opens the queue again where it should be when its file was moved away', async () => {
  const context = contextIn(directory)
  using jobs = createConsoleJobs(declaredQueue({}, context, true), NO_HOSTS)
  expect((await jobs.submit('-- true'))[0]).toBe('submitted job 1')
  expect((await jobs.read())?.groups).toHaveLength(1)
  const path = queuePath(await inventoryOf(), context)
  for (const end of ['', '-wal', '-shm']) renameSync(`${path}${end}`, join(directory, `moved${end}`))
  expect((await jobs.read())?.groups).toEqual([])
  expect((await jobs.submit('-- false'))[0]).toBe('submitted job 1')
  const commandsIn = (file: string) => {
    using store = new JobStore(file)
    return store.list([], 10).map(({ spec }) => spec.command)
  }
  expect([commandsIn(path), commandsIn(join(directory, 'moved'))]).toEqual([['false'], ['true']])
})

describe('a question that was asked before the queue was replaced', () => {
  const ask = async (jobs: JobsPort) => {
    await jobs.submit('-- sleep 100')
    const path = queuePath(await inventoryOf(), contextIn(directory))
    const { changes } = (await jobs.read()) ?? {}
    if (changes === undefined) throw new Error('nothing read')
    return { path, changes }
  }
  const MEANWHILE = 'the queue was moved or replaced meanwhile, so these jobs were not changed'

  it('changes no job of the same number in another file', async () => {
    using jobs = createConsoleJobs(declaredQueue({}, contextIn(directory), true), NO_HOSTS)
    const { path, changes } = await ask(jobs)
    for (const end of ['', '-wal', '-shm']) renameSync(`${path}${end}`, join(directory, `moved${end}`))
    await expect(changes.change('cancel', [1])).rejects.toThrow(MEANWHILE)
    await jobs.submit('-- true')
    for (const change of [
      () => changes.change('cancel', [1]),
      () => changes.changeStudy(1, { kind: 'stop', now: true }),
    ])
      await expect(change()).rejects.toThrow(MEANWHILE)
    const { changes: own, counts } = (await jobs.read()) ?? {}
    expect(counts).toEqual(new Map([['queued', 1]]))
    expect(await own?.change('cancel', [1])).toBe(1)
    expect((await jobs.read())?.counts).toEqual(new Map([['cancelled', 1]]))
  })

  it('changes no job of an older copy that was put back', async () => {
    using jobs = createConsoleJobs(declaredQueue({}, contextIn(directory), true), NO_HOSTS)
    const { path, changes } = await ask(jobs)
    {
      using file = new DatabaseSync(path)
      await backup(file, join(directory, 'copy'))
    }
    await jobs.submit('-- false')
    await jobs.read()
    {
      using copy = new DatabaseSync(join(directory, 'copy'))
      await backup(copy, path)
    }
    await expect(changes.change('cancel', [1])).rejects.toThrow(MEANWHILE)
    expect((await jobs.read())?.counts).toEqual(new Map([['queued', 1]]))
  })
})

it('reads a whole queue that was put in the place of a damaged one', async () => {
  const context = contextIn(directory)
  using jobs = createConsoleJobs(declaredQueue({}, context, true), NO_HOSTS)
  await jobs.submit('-- true')
  await jobs.read()
  const path = queuePath(await inventoryOf(), context)
  {
    using file = new DatabaseSync(path)
    file.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }
  const whole = readFileSync(path)
  // The same file, as an editor or cp writes it.
  writeFileSync(path, Buffer.concat([whole.subarray(0, 4096), Buffer.alloc(whole.length - 4096, 0xff)]))
  {
    // Whatever this connection still knows is out of date.
    using file = new DatabaseSync(path)
    file.exec('PRAGMA user_version = 1')
  }
  await expect(jobs.read()).rejects.toThrow('cannot be used')
  writeFileSync(path, whole)
  expect((await jobs.read())?.groups).toHaveLength(1)
})

it('follows hosts.yaml, and names what its scheduler does not know of it', async () => {
  const file = join(directory, 'hosts.yaml')
  const load = async () => await loadInventory({ file, cwd: directory, env: {}, sections: async () => [] })
  let now = await load()
  let nowMs = 1000
  const context = { ...contextIn(directory), now: () => nowMs }
  using jobs = createConsoleJobs(
    declaredQueue({}, context, true, () => now),
    NO_HOSTS,
  )
  using store = new JobStore(queuePath(now, context))
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  const declared = now.hosts.map(driverHost)
  store.writeReport({ atMs: 1000, hosts: [], declared, down: {}, expectedS: {} }, lease)
  expect(await jobs.read()).not.toHaveProperty('changed', expect.anything())
  writeFileSync(file, 'cluster: lab\nhosts: { m8: { address: 127.0.0.9 }, m9: {} }\n')
  expect(await jobs.read()).toBeUndefined()
  now = await load()
  const read = async () => {
    const { hosts, changed } = (await jobs.read()) ?? {}
    return [hosts?.map(({ name }) => name), changed]
  }
  expect(await read()).toEqual([['m8'], 'm[8-9]'])
  // Its scheduler has ended.
  nowMs = 20_000
  expect(await read()).toEqual([['m8', 'm9'], undefined])
})

it('has no queue for the hosts of a target, even beside a hosts.yaml', async () => {
  using jobs = createConsoleJobs(declaredQueue({}, contextIn(directory), false), NO_HOSTS)
  await expect(jobs.read()).rejects.toThrow('no job queue: a queue belongs to a hosts.yaml, and this console has none')
})

describe('a lost terminal', () => {
  const heldWith = async (keep: boolean | undefined, yaml: string) => {
    mkdirSync(join(directory, 'muster'), { recursive: true })
    writeFileSync(join(directory, 'muster', 'preferences.yaml'), yaml)
    let held: HoldOptions | undefined
    const stop = new Error('not opened')
    const context = {
      ...contextIn(directory),
      environment: { HOME: directory, XDG_CONFIG_HOME: directory },
      held: {
        hold(options: HoldOptions): never {
          held = options
          throw stop
        },
      },
    } as unknown as CliContext
    const request = {
      cluster: 'c',
      hosts: [],
      endpoints: Promise.resolve([]),
      options: keep === undefined ? {} : { keep },
    }
    await expect(runConsole(context, request as unknown as ConsoleRequest)).rejects.toBe(stop)
    return held && [held.isKept, held.keepMs]
  }

  it('ends the console or not, as the option says or else the preferences', async () => {
    expect(await heldWith(undefined, 'keep_for: 2\n')).toEqual([false, 7_200_000])
    expect(await heldWith(undefined, 'keep: true\n')).toEqual([true, 28_800_000])
    expect(await heldWith(false, 'keep: true\n')).toEqual([false, 28_800_000])
    expect(await heldWith(true, '')).toEqual([true, 28_800_000])
  })

  it('does what the preferences say when they were read last without a mistake', () => {
    const answers: (() => Preferences)[] = [
      () => defaultPreferences,
      () => ({ ...defaultPreferences, keep: true }),
      () => {
        throw new Error('a mistake')
      },
    ]
    const settings = new LivePreferences(() => (answers.shift() ?? expect.unreachable)() as Preferences)
    expect(settings.now.keep).toBe(false)
    settings.read()
    expect(settings.now.keep).toBe(true)
    expect(() => settings.read()).toThrow('a mistake')
    expect(settings.now.keep).toBe(true)
  })
})

describe('a host set of a console', () => {
  it('tells hosts that are not open from those that do not exist', () => {
    const resolve = openHostsResolver(() => ['h1', 'h2', 'h4'])
    const open = ['h1', 'h2']
    expect(resolve('h1 h2', open, new Map())).toEqual(open)
    expect(() => resolve('h[2-4]', ['h1', 'h2', 'h3'], new Map())).toThrow(/: h4 is not open: add it first$/)
    expect(() => resolve('h9', open, new Map())).toThrow(/: there is no host h9; did you mean h1\?$/)
  })
})
