import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { foreignFile } from '../../../src/base/foreign-place.ts'
import { lastRunFile, readLastRun, writeLastRun } from '../../../src/cli/run/plan-run.ts'
import { openJournal } from '../../../src/ops/kernel/journal.ts'
import { keepMesh } from '../../../src/ops/net/mesh/kept-mesh.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { preparePrivateDirectory } from '../../../src/ssh/persist/keeper-directory.ts'
import { createRecordingDirectory } from '../../../src/ui/console/recording.ts'
import { loadPreferences } from '../../../src/ui/preferences.ts'

const OTHER = 54_321
const isRoot = process.geteuid?.() === 0
const RUN = {
  directory: '/',
  target: 'm1',
  command: ['true'],
  isRaw: false,
  isSudo: false,
  environmentNames: [],
  failed: ['m1'],
}

describe('files that another user could have written', () => {
  let home: string
  let environment: { HOME: string; XDG_STATE_HOME: string; XDG_CONFIG_HOME: string }
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'muster-foreign-'))
    environment = { HOME: home, XDG_STATE_HOME: join(home, 'state'), XDG_CONFIG_HOME: join(home, 'config') }
  })
  afterEach(() => rmSync(home, { recursive: true }))
  const made = (...names: string[]): string => {
    const path = join(home, ...names)
    mkdirSync(path, { recursive: true, mode: 0o755 })
    return path
  }
  const preferences = (): string => {
    const path = join(made('config', 'muster'), 'preferences.yaml')
    writeFileSync(path, 'macros:\n  - { name: rank, command: [/bin/true] }\n', { mode: 0o644 })
    return path
  }

  it('are read if only the user can change them', () => {
    preferences()
    expect(loadPreferences(environment).macros).toHaveLength(1)
  })

  it('are not read if they are no text', () => {
    writeFileSync(preferences(), Buffer.from([0x6b, 0xff, 0x3a]))
    expect(() => loadPreferences(environment)).toThrow(/preferences\.yaml cannot be read: it is not UTF-8 text$/)
  })

  it('are not used as preferences, because macros run programs', () => {
    const path = preferences()
    chmodSync(path, 0o666)
    expect(() => loadPreferences(environment)).toThrow(/preferences\.yaml is not used: it can be changed by every user/)
    chmodSync(path, 0o644)
    chmodSync(join(path, '..'), 0o777)
    expect(() => loadPreferences(environment)).toThrow(/its directory can be changed by every user/)
  })

  it.runIf(isRoot)("do not include those that the user's private group can write, as with umask 002", () => {
    const path = preferences()
    const own = (group: number): string | undefined => {
      for (const each of [path, join(path, '..')]) {
        chownSync(each, OTHER, group)
        chmodSync(each, each === path ? 0o664 : 0o775)
      }
      return foreignFile(path, OTHER)
    }
    expect(own(OTHER)).toBeUndefined()
    expect(own(OTHER + 1)).toBe('it can be changed by its group')
  })

  it.runIf(isRoot)('are not used as preferences if they belong to the user who called sudo', () => {
    chownSync(preferences(), OTHER, OTHER)
    expect(() => loadPreferences(environment)).toThrow(`belongs to user ${OTHER}, not to you (0)`)
  })

  it.each([
    ['a queue', ['jobs'], () => new JobStore(join(home, 'state/muster/jobs/c.db'))[Symbol.dispose]()],
    ['a journal', ['journal'], () => openJournal({ environment, now: () => 0 })],
    ['a recording', ['recordings'], () => createRecordingDirectory(environment, 0)],
    [
      'measurements',
      ['net'],
      () => keepMesh(environment, { hosts: [], links: [], pings: [] } as never, 'x', 0, { addresses: {} }),
    ],
  ])('are not used for %s', (_, names, use) => {
    const directory = made('state', 'muster', ...names)
    use()
    chmodSync(directory, 0o1777)
    expect(use).toThrow('it can be changed by every user of this machine')
    if (!isRoot) return
    chmodSync(directory, 0o755)
    chownSync(directory, OTHER, OTHER)
    expect(use).toThrow(`it belongs to user ${OTHER}, not to you (0)`)
  })

  describe.runIf(isRoot)('on the way to the state directory', () => {
    const queue = () => join(home, 'state/muster/jobs/c.db')
    const victim = () => made('victim')
    const openQueue = () => new JobStore(queue())[Symbol.dispose]()

    it.each(['state', 'state/muster', 'state/muster/jobs'])('are refused as a link: %s', (name) => {
      const target = victim()
      made('state', 'muster')
      rmSync(join(home, name), { recursive: true, force: true })
      symlinkSync(target, join(home, name))
      lchownSync(join(home, name), OTHER, OTHER)
      expect(openQueue).toThrow(`${join(home, name)} is not used: it belongs to user ${OTHER}, not to you (0)`)
      expect(readdirSync(target)).toEqual([])
    })

    it("are refused as a directory, also behind the user's own link", () => {
      const theirs = made('theirs')
      chownSync(theirs, OTHER, OTHER)
      made('state')
      symlinkSync(theirs, join(home, 'state/muster'))
      expect(openQueue).toThrow(`${theirs} is not used: it belongs to user ${OTHER}`)
      expect(readdirSync(theirs)).toEqual([])
    })

    it('are used if they are links of the user to own directories', () => {
      made('state')
      symlinkSync(victim(), join(home, 'state/muster'))
      symlinkSync('../victim', join(home, 'state/other'))
      openQueue()
      new JobStore(join(home, 'state/other/../victim/jobs/c.db'))[Symbol.dispose]()
      expect(readdirSync(join(victim(), 'jobs'))).toContain('c.db')
    })
  })

  it('are not used where every user can exchange a directory on the way', () => {
    made('state', 'muster', 'jobs')
    chmodSync(join(home, 'state'), 0o777)
    expect(() => new JobStore(join(home, 'state/muster/jobs/c.db'))).toThrow(
      `${join(home, 'state')} is not used: it can be changed by every user of this machine`,
    )
  })

  it.runIf(isRoot)('are not used as a queue, in whichever directory', () => {
    const path = join(made('state', 'muster', 'jobs'), 'c.db')
    new JobStore(path)[Symbol.dispose]()
    chownSync(path, OTHER, OTHER)
    expect(() => new JobStore(path)).toThrow(`it belongs to user ${OTHER}, not to you (0)`)
  })

  it.runIf(isRoot)('are not written through a link that another user left for a journal', () => {
    const directory = made('state', 'muster', 'journal')
    chownSync(directory, OTHER, OTHER)
    const victim = join(home, 'victim')
    symlinkSync(victim, join(directory, '1970-01.jsonl'))
    expect(() => openJournal({ environment, now: () => 0 })).toThrow('belongs to user')
    expect(existsSync(victim)).toBe(false)
  })

  it('are not used as the record of a run, because its command would be run again', async () => {
    writeLastRun(RUN, environment)
    expect((await readLastRun(environment)).target).toBe('m1')
    chmodSync(lastRunFile(environment), 0o666)
    await expect(readLastRun(environment)).rejects.toThrow('it can be changed by every user')
  })

  it('are not used for kept connections, because another user could replace the directory', async () => {
    const open = made('run')
    chmodSync(open, 0o777)
    await expect(preparePrivateDirectory(join(open, 'muster'))).rejects.toThrow('can be changed by every user')
    chmodSync(open, 0o1777)
    await preparePrivateDirectory(join(open, 'muster'))
  })
})
