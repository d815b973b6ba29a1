/** `ssh -G` is asked again only when something that it depends on may have changed. */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createOpenSshSource, findProgram } from '../../src/inventory/ssh-config/openssh-source.ts'
import { settingOf } from '../../src/inventory/ssh-config/source.ts'
import { requirement } from '../support/requirements.ts'

const QUESTIONS = ['m1', 'm2', 'm3', 'm4', 'm5'].map((alias) => ({ alias }))

describe.skipIf(!requirement('ssh'))('an answer of ssh', () => {
  let directory: string
  const path = (name: string) => join(directory, name)
  /** As long ago as a file is that nobody is writing now. */
  const write = (name: string, text: string) => {
    writeFileSync(path(`${name}.new`), text)
    utimesSync(path(`${name}.new`), 1_700_000_000, 1_700_000_000)
    renameSync(path(`${name}.new`), path(name))
  }
  const asked = () => {
    try {
      return readFileSync(path('asked'), 'utf8').length
    } catch {
      return 0
    }
  }
  const ask = async (env: Readonly<Record<string, string>> = {}) => {
    const source = createOpenSshSource({
      ssh: path('ssh'),
      configFile: path('config'),
      env: { PATH: process.env.PATH, ...env },
    })
    const answers = await source.ask(QUESTIONS)
    return answers.map((answer) => (answer.ok ? settingOf(answer.values, 'user') : answer.reason))
  }
  /** It has settled: ctime, which nobody can set, is older than what counts as just now. */
  const settle = async () => {
    const now = Date.now
    Date.now = () => now() + 60_000
    try {
      return await ask()
    } finally {
      Date.now = now
    }
  }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'remembered-'))
    const ssh = `#!/bin/sh\nprintf x >>${path('asked')}\nexec ${findProgram('ssh', process.env.PATH)} "$@"\n`
    writeFileSync(path('ssh'), ssh, { mode: 0o755 })
    mkdirSync(path('more'))
    write('config', `Include ${path('more')}/*.conf\nHost *\n  User ann\n`)
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  it('is remembered while its files are as they were', async () => {
    expect(await settle()).toEqual(Array(5).fill('ann'))
    const count = asked()
    expect(count).toBeGreaterThan(0)
    expect(await ask()).toEqual(Array(5).fill('ann'))
    expect(asked()).toBe(count)
  })

  it('is asked for again when a file changed, with the same size and time', async () => {
    await settle()
    write('config', `Include ${path('more')}/*.conf\nHost *\n  User bob\n`)
    expect(await ask()).toEqual(Array(5).fill('bob'))
  })

  it('is asked for again when an Include finds another file', async () => {
    await settle()
    write('more/first.conf', 'User eve\n')
    expect(await ask()).toEqual(Array(5).fill('eve'))
  })

  it('is asked for again in another environment, and for files that were written just now', async () => {
    await ask()
    const count = asked()
    await ask()
    expect(asked()).toBe(2 * count)
    await settle()
    await ask({ USER: 'another' })
    expect(asked()).toBe(4 * count)
  })

  it.each([
    ['Match exec', 'Match exec "test -e %FLAG"\n  User zoe\n'],
    ['canonical names', 'CanonicalizeHostname yes\n'],
  ])('is never remembered where it depends on %s', async (_, text) => {
    write('config', `${text.replace('%FLAG', path('flag'))}Host *\n  User ann\n`)
    await settle()
    const count = asked()
    await settle()
    expect(asked()).toBe(2 * count)
  })

  it('is never remembered where ssh refused', async () => {
    write('config', 'Nonsense yes\n')
    expect((await settle())[0]).toContain('nonsense')
    write('config', 'Host *\n  User ann\n')
    expect(await ask()).toEqual(Array(5).fill('ann'))
  })
})
