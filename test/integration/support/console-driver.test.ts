import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startTimeOf } from '../../lab/cluster/processes.ts'
import { openConsole } from '../../support/console-driver.ts'
import type { ConsoleOptions } from '../../support/console-options.ts'

const program = [process.execPath, '--import', 'tsx', join(import.meta.dirname, 'stand-in-console.ts')]
const open = (options: ConsoleOptions = {}) => openConsole({ program, size: [60, 10], ...options })

describe('the console driver', () => {
  it('continues when every typed byte has been handled', async () => {
    await using console = await open()
    await console.type('uptime')
    expect(console.on('m1')[0]).toBe('m1:uptime')
    expect(console.state?.inputBytes).toBe(6)
  })

  it('waits for what comes after the program has been idle', async () => {
    await using console = await open()
    await console.type('late')
    await console.expectOn('m2', /answer/)
  })

  it('checks one pane and not its neighbour', async () => {
    await using console = await open()
    await console.type('late')
    await console.expectOn('m2', /answer/)
    await expect(console.expectOn('m1', /answer/, { timeoutMs: 50 })).rejects.toThrow(/waited 50 ms for .answer. on m1/)
  })

  it('prints the screen and the state when it gives up', async () => {
    await using console = await open()
    await expect(console.expectHeader(/7 of 8/, { timeoutMs: 10 })).rejects.toThrow(
      /waited 10 ms for .7 of 8. in the header\n\+-+\+\n\|header 60x10[\s\S]*"receivers":\["m1","m2"\]/,
    )
  })

  it('checks a busy program only when asked to', async () => {
    await using console = await open()
    console.send('typed')
    await console.expectOn('m1', /^m1:$/m, { whileBusy: true })
    await expect(console.expectOn('m1', /^m1:$/m, { timeoutMs: 500 })).rejects.toThrow('waited 500 ms')
  })

  it('finds text that should be nowhere', async () => {
    await using console = await open()
    await console.type('secret')
    await console.expectNowhere(/passphrase/)
    await expect(console.expectNowhere(/secret/)).rejects.toThrow('should be nowhere')
  })

  it('resizes the terminal, and the program knows', async () => {
    await using console = await open()
    await console.resize(80, 24)
    await console.expectHeader(/80x24/)
  })

  it('sends keys by name, pastes in brackets and the mouse in cells from 0', async () => {
    await using console = await open({ size: [120, 10] })
    await console.key('Up', 'Ctrl-c')
    await console.paste('a\nb')
    await console.mouse('press', 0, 4)
    await console.expectScreen(/u001b\[A/)
    expect(console.state?.inputBytes).toBe(Buffer.byteLength('\x1b[A\x03\x1b[200~a\rb\x1b[201~\x1b[<0;1;5M'))
  })

  it('reports how the program ended', async () => {
    await using console = await open()
    expect(await console.quit()).toEqual({ code: 7 })
  })

  it('does not wait for a program that is gone', async () => {
    await using console = await open()
    await console.quit()
    await expect(console.expectHeader(/never/)).rejects.toThrow(/the program ended before[\s\S]*ended: \{"code":7\}/)
  })

  it('ends the program when it is closed', async () => {
    const console = await open()
    const { pid } = console
    expect(startTimeOf(pid)).toBeDefined()
    await console.close()
    expect(startTimeOf(pid)).toBeUndefined()
  })
})
