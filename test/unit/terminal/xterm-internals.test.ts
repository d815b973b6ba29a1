import headless, { type Terminal } from '@xterm/headless'
import { beforeEach, describe, expect, it, vi } from 'vitest'

// biome-ignore lint/suspicious/noExplicitAny: the private parts of another version are anything
type Core = any

/** A terminal of a version whose private parts are as `change` leaves them. */
function terminalWith(change: (core: Core) => Core): Terminal {
  const terminal = new headless.Terminal({ cols: 10, rows: 3, allowProposedApi: true, logLevel: 'off' })
  const probe = terminal as unknown as { _core: Core }
  probe._core = change(probe._core)
  return terminal
}

const overlay = (core: Core, changed: object): Core => Object.assign(Object.create(core), changed)

let openInternals: typeof import('../../../src/terminal/xterm-internals.ts').openInternals

beforeEach(async () => {
  // The self-test runs once a process.
  vi.resetModules()
  ;({ openInternals } = await import('../../../src/terminal/xterm-internals.ts'))
})

const open = (change: (core: Core) => Core) => openInternals(terminalWith(change), () => terminalWith(change))

describe('the internals of the emulator', () => {
  it('are used when they are what we know', () => {
    expect(open((core) => core)?.isSynchronous).toBe(true)
  })

  it.each<[string, (core: Core) => Core]>([
    ['there is no core', () => undefined],
    ['there is no parser', (core) => overlay(core, { _inputHandler: { parse() {} } })],
    ['there are no lines', (core) => overlay(core, { _bufferService: { buffer: {} } })],
    [
      'a part throws',
      (core) =>
        Object.defineProperty(Object.create(core), 'coreService', {
          get: () => {
            throw new Error('gone')
          },
        }),
    ],
    ['parsing happens later', (core) => overlay(core, { _inputHandler: overlay(core._inputHandler, { parse() {} }) })],
    [
      'cells are laid out in another way',
      (core) => {
        const { lines } = core._bufferService.buffer
        const get = (index: number) => {
          const line = lines.get(index)
          return line && { ...line, _data: line._data.map((word: number) => word ^ 0x0100_0000), length: line.length }
        }
        return overlay(core, { _bufferService: { buffer: { lines: { get } } } })
      },
    ],
    [
      'the cursor is kept elsewhere',
      (core) => overlay(core, { coreService: { isCursorHidden: false, decPrivateModes: {} } }),
    ],
  ])('are left alone when %s', (_, change) => {
    expect(open(change)).toBeUndefined()
  })

  it('are looked at once', () => {
    const makeProbe = vi.fn(() => terminalWith((core) => core))
    for (let count = 0; count < 3; count++) openInternals(makeProbe(), makeProbe)
    expect(makeProbe).toHaveBeenCalledTimes(4)
  })
})
