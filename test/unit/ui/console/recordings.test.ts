/** Where recordings of the console go. */
import fs, { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createScreen } from '../../../../src/terminal/headless-screen.ts'
import { createRecordingDirectory } from '../../../../src/ui/console/recording.ts'
import { createConsoleHarness } from './console-harness.ts'

let state: string
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'muster-recordings-'))
})
afterEach(() => rmSync(state, { recursive: true }))

it('a recording that cannot be written stops on all hosts, and the Log says why', () => {
  const { console, type } = createConsoleHarness({ hosts: ['m1', 'm2'], environment: { XDG_STATE_HOME: state } })
  const { write } = fs
  const failed: (() => void)[] = []
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  const withoutSpace = (...given: readonly unknown[]) => {
    const done = given.at(-1) as (error: Error) => void
    failed.push(() => done(full))
  }
  fs.write = withoutSpace as unknown as typeof write
  syncBuiltinESMExports()
  try {
    type('\x1dv')
    expect(console.state.hosts.get('m1')?.isRecording).toBe(true)
    for (const fail of failed) fail()
  } finally {
    fs.write = write
    syncBuiltinESMExports()
  }
  expect([...console.state.hosts.values()].map(({ isRecording }) => isRecording)).toEqual([false, false])
  const text = 'recording of m[1-2] stopped: no space left on the device'
  expect(console.state.notice?.text).toBe(text)
  expect(console.state.log.filter((entry) => entry.text.includes('stopped'))).toMatchObject([{ text, tone: 'error' }])
})

it('is stopped by its key without receivers, too', () => {
  const { console, type } = createConsoleHarness({ hosts: ['m1', 'm2'], environment: { XDG_STATE_HOME: state } })
  type('\x1dv\x1dn')
  expect(console.state.receivers.size).toBe(0)
  type('\x1dv')
  expect([...console.state.hosts.values()].map(({ isRecording }) => isRecording)).toEqual([false, false])
  type('\x1dv')
  expect(console.state.notice?.text).toBe('no receivers: Ctrl-] a selects all hosts')
})

it('plays what the pane shows: from its first frame, and after a new shell', async () => {
  const given = { hosts: ['m1'], environment: { XDG_STATE_HOME: state } }
  const { console, type, print, fleet } = createConsoleHarness(given)
  const played = () => {
    const all = join(state, 'muster', 'recordings')
    const path = join(all, readdirSync(all).toSorted().at(-1) ?? '', 'm1.cast')
    const [header = '', ...lines] = readFileSync(path, 'utf8').trim().split('\n')
    const { width, height } = JSON.parse(header)
    const handlers = { onReply: () => undefined }
    using screen = createScreen({ columns: width, rows: height, historyLines: 0, handlers })
    for (const line of lines) screen.parse(Buffer.from(JSON.parse(line)[2]))
    return [screen.visibleText(), screen.modes.isAlternateScreen, screen.printPlace, lines[0]]
  }
  const shown = () => {
    const screen = console.views.screen('m1')
    return [screen?.visibleText(), screen?.modes.isAlternateScreen, screen?.printPlace]
  }
  await print('m1', '\x1b[?1049h\x1b[2;3H\x1b[1;31mvim 漢字\x1b[m\x1b[4;1H~\x1b[5;4H')
  type('\x1dv')
  await print('m1', 'typed')
  type('\x1dv')
  expect(played()).toEqual([...shown(), expect.stringContaining('[0;1;31mvim')])
  type('\x1dv')
  fleet.renewShell('m1')
  type('\x1dv')
  expect(played()).toEqual([...shown(), expect.anything()])
  expect(shown()[1]).toBe(false)
})

it('ends on a host whose pane is closed, which the dialog says first', () => {
  const { console, type } = createConsoleHarness({ hosts: ['m1', 'm2'], environment: { XDG_STATE_HOME: state } })
  type('\x1dv')
  type('\x1dx')
  expect(JSON.stringify(console.state.mode)).toContain('This also ends the recording of m1.')
  type('y')
  expect(console.state.log.at(-1)).toMatchObject({ host: 'm1', text: 'its recording ended: its pane was closed' })
  type('\x1dv')
  expect(console.state.notice?.text).toBe('stopped recording m2')
})

describe('the directory of a recording', () => {
  it('belongs to one recording, also if another starts in the same second, and only to the user', () => {
    const nowMs = Date.UTC(2026, 10, 21, 10, 15, 30)
    const made = [0, 1, 999].map((ms) => createRecordingDirectory({ XDG_STATE_HOME: state }, nowMs + ms))
    const all = join(state, 'muster', 'recordings')
    const names = ['2026-11-21T10-15-30', '2026-11-21T10-15-30-2', '2026-11-21T10-15-30-3']
    expect(made).toEqual(names.map((name) => join(all, name)))
    expect(readdirSync(all).toSorted()).toEqual(names)
    for (const directory of made) expect(statSync(directory).mode & 0o777).toBe(0o700)
  })

  it('is reported with its place and what to do if it cannot be created', () => {
    writeFileSync(join(state, 'muster'), '')
    expect(() => createRecordingDirectory({ XDG_STATE_HOME: state }, 0)).toThrow(
      `${join(state, 'muster', 'recordings')}: part of its path is not a directory (set XDG_STATE_HOME to use another directory)`,
    )
  })
})
