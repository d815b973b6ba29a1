/** However the console ends, the terminal is left as it was: its settings (stty) and its modes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Keeps the settings of the terminal before and after, and the program's exit code, in files; ignores the signals itself. */
const WRAPPER = `
trap '' TERM HUP
stty -a > "$0/before"
(trap - TERM HUP; echo "$(exec sh -c 'echo $PPID')" > "$0/pid"; exec "$@")
echo $? > "$0/code"
stty -a > "$0/after"
`

const UNTOUCHED = {
  isAlternateScreen: false,
  isBracketedPaste: false,
  mouse: 'none',
  isFocusReporting: false,
  isCursorHidden: false,
}

describe('the terminal after the console', () => {
  let directory: string
  let console: ConsoleDriver
  const kept = (name: string): string => readFileSync(join(directory, name), 'utf8')

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-leaving-'))
    console = await openConsole({
      program: ['sh', '-c', WRAPPER, directory, ...PROGRAM],
      args: ['demo', '--count', '2'],
    })
    await console.expectReady()
    expect(console.modes).not.toEqual(UNTOUCHED)
  })

  afterEach(async () => {
    await console?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const expectUntouched = async () => {
    await console.ended()
    expect(kept('after')).toBe(kept('before'))
    expect(console.modes).toEqual(UNTOUCHED)
  }

  it('has its earlier modes again when the user quits', async () => {
    await console.quit()
    await expectUntouched()
    expect(kept('code')).toBe('0\n')
  })

  it.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)('is as it was after %s', async (signal) => {
    process.kill(Number(kept('pid')), signal)
    await expectUntouched()
    expect(kept('code')).not.toBe('0\n')
  })

  it('shows its earlier lines again', async () => {
    await console.quit()
    await console.ended()
    await waitUntil(() => console.screen().every((line) => !line.includes('m1')), 'the panes to be gone')
  })
})
