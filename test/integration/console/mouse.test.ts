/** The mouse and the clipboard on the demo's hosts: what is shown can be clicked, and only what the user selected is copied. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'

describe('the mouse', () => {
  let directory: string
  let preferences: string

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-mouse-'))
    mkdirSync(join(directory, 'config', 'muster'), { recursive: true })
    preferences = join(directory, 'config', 'muster', 'preferences.yaml')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const open = (size: readonly [number, number]): Promise<ConsoleDriver> =>
    openConsole({
      args: ['demo'],
      size,
      environment: { XDG_STATE_HOME: join(directory, 'state'), XDG_CONFIG_HOME: join(directory, 'config') },
    })

  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ] as const)('shows tabs, selects rows and presses keys in footers and dialogs at %i×%i', async (...size) => {
    await using console = await open(size)
    await console.expectReady()
    // The right end of the header is the row of tabs.
    const tab = async (key: string, mode: string) => {
      const column = (console.screen()[0] ?? '').lastIndexOf(` ${key}`) + 1
      await console.mouse('press', column, 0)
      await console.expectMode(mode)
    }
    await tab('6', 'log')
    await tab('3', 'network')
    await console.expectScreen(/m4 .*%/)
    await console.click('HOST')
    await console.expectScreen(/HOST▾/)
    // Beside it are the seconds that a sparkline covers, where there is room for one.
    await console.click('CPU')
    await console.expectScreen(/CPU▾/)
    await console.click(' m4 ', 2)
    await console.expectScreen(/ m4 · .*processes/)
    await tab('5', 'jobs')
    await console.expectScreen(/\d+ .*\n.*\n/)
    await tab('1', 'shells')

    await console.leader('x')
    await console.expectMode('dialog:close-host')
    await console.click('Esc cancel')
    await console.expectMode('shells')
    await console.leader(':')
    await console.expectMode('dialog:palette')
    await console.type('select a')
    await console.click('select no host')
    await console.click('select no host')
    await console.expectReceivers()
  })

  it('copies what is dragged over, and what `y` finds in scroll-back, and never what a host asks to copy', async () => {
    await using console = await open([120, 40])
    await console.expectReady()
    await console.receivers('m1')
    await console.type("clear; printf 'one two\\nthree\\n\\033]52;c;aG9zdGlsZQ==\\007'\r")
    await console.expectOn('m1', /^one two\nthree$/m)
    await console.expectPrompts('m1')
    expect(console.copied()).toEqual([])

    await console.drag('m1', [4, 0], [2, 1])
    await console.expectScreen(/copied 2 lines from m1/)
    expect(console.copied()).toEqual(['two\nthr'])
    // A key ends the selection, and the host gets nothing but that key.
    await console.type('\x15echo typed\r')
    await console.expectOn('m1', /^typed$/m)
    await console.expectPrompts('m1')
    expect(console.on('m1').slice(0, 2)).toEqual(['one two', 'three'])

    await console.leader('[')
    await console.key('v', 'k', 'y')
    await console.expectScreen(/copied .* from m1/)
    expect(console.copied().at(-1)).toMatch(/^typed\n.*[$#]/)
    await console.key('y')
    expect(console.copied().at(-1)).toMatch(/^one two\nthree\n/)
    await console.key('q')
    await console.expectMode('shells')
    expect(console.copied().join()).not.toContain('hostile')
  })

  it('copies nothing if a preference turns it off', async () => {
    writeFileSync(preferences, 'clipboard: false\n')
    await using console = await open([80, 24])
    await console.expectReady()
    await console.drag('m1', [0, 0], [5, 0])
    await console.leader('[')
    await console.key('y')
    await console.expectScreen(/copying is off/)
    expect(console.copied()).toEqual([])
  })
})
