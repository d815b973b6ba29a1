/** Random keys, clicks and sizes while hosts come, go and print hostile bytes: the console neither fails nor types into a host from a tab. */
import { describe, it } from 'vitest'
import { createCellGrid } from '../../../src/terminal/cells.ts'
import { buildScene } from '../../../src/ui/console/pane-view.ts'
import type { Choice } from '../../support/hostile-host/mutate.ts'
import { expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { createConsoleHarness, endpointOf } from '../../unit/ui/console/console-harness.ts'

const LEADER = '\x1d'
const LETTERS = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!?/:;=+-,.<>[]{}()*&^%$#@~|\\\'"` ']
const SPECIAL = [
  '\r',
  '\x1b',
  '\t',
  '\x7f',
  '\x03',
  '\x04',
  '\x1a',
  '\x15',
  '\x17',
  '\x0c',
  '\x1b[A',
  '\x1b[B',
  '\x1b[C',
  '\x1b[D',
  '\x1b[5~',
  '\x1b[6~',
  '\x1b[H',
  '\x1b[F',
  '\x1bOP',
  '\x1b[Z',
  '\x1b[3~',
  '\x00',
  '\x1b\x1b',
  '\x1b[',
  '\x1b]0;',
  '\x1b[200~',
  '\x1b[201~',
  '\x1b[I',
  '\x1b[O',
]
const WORDS = [
  'm1',
  'm[1-',
  'm[1-3]',
  '@all',
  '漢字🎉',
  'مرحبا',
  '\u200b\u202e',
  'é\u0301\u0301',
  'x'.repeat(300),
  'a\nb\nc',
  '-1',
  '1e309',
  '../..',
  'm9',
  'all!m1',
  '--time 0',
  'm1:/x',
]
const OUTPUT = [
  '$ ',
  '\x1b[?2004h# ',
  'Password: ',
  '\x1b[?1049h\x1b[H~\r\n~',
  '\x1b[?1049l',
  '\x1b[?1002h\x1b[?1006h',
  'x'.repeat(500),
  '\r\n'.repeat(60),
  '漢字🎉\u202eabc',
  '\x1b]52;c;aGk=\x07',
  '\x1b[6n\x1b[c',
  '\x1b[2J\x1b[H',
  '\x07',
  'Last login: x from 1.2.3.4\r\n',
]

const rethrow = (error: unknown): never => {
  throw error
}

function keysOf(choice: Choice, columns: number, rows: number): string {
  const mouse = (): string =>
    `\x1b[<${choice.one([0, 0, 0, 2, 32, 64, 65, 1])};${1 + choice.below(columns + 2)};${1 + choice.below(rows + 2)}${choice.one(['M', 'M', 'm'])}`
  const keys: readonly [() => string, ...(() => string)[]] = [
    () => LEADER + choice.one(LETTERS),
    () => LEADER + choice.one(LETTERS),
    () => LEADER + choice.one([...SPECIAL] as [string, ...string[]]),
    () => LEADER + choice.one(['1', '2', '3', '4', '5', '6']),
    () => choice.one(LETTERS) ?? '',
    () => choice.one(SPECIAL) ?? '',
    () => '\r',
    () => '\x1b',
    () => choice.one(WORDS) ?? '',
    () => `\x1b[200~${choice.one(WORDS)}\x1b[201~`,
    mouse,
    mouse,
  ]
  return choice.one(keys)()
}

describe('random input', () => {
  it('does not break the console, and reaches no host from a tab', async () => {
    await playMutations(async ({ choice, note }) => {
      const all = ['m1', 'm2', 'm3', 'm4'].slice(0, choice.one([1, 2, 4]))
      const harness = createConsoleHarness({ hosts: all, size: { columns: 80, rows: 24 } })
      const { console, fleet, clock, type } = harness
      const received = () => [...fleet.received.values()].join('').length
      for (let step = 0; step < 60; step++) {
        const { columns, rows } = console.state
        const what = choice.below(10)
        if (what < 7) {
          const keys = keysOf(choice, columns, rows)
          note(JSON.stringify(keys))
          const before = received()
          const page = console.page
          type(keys)
          if (page !== undefined && console.page === page && !keys.startsWith(LEADER) && received() !== before)
            throw new Error(`${JSON.stringify(keys)} reached a host`)
        } else if (what === 7) {
          const host = choice.one(all) ?? 'm1'
          const text = choice.one(OUTPUT) ?? ''
          note(`${host} prints ${JSON.stringify(text.slice(0, 20))}`)
          fleet.events.emit({ type: 'data', host, bytes: Buffer.from(text) })
        } else if (what === 8) {
          const host = choice.one([...all, 'm9']) ?? 'm1'
          const event = choice.one(['removed', 'added', 'lost', 'ended', 'opening', 'open'] as const)
          note(`${host} ${event}`)
          if (event === 'removed') fleet.hosts.includes(host) && fleet.remove(host)
          else if (event === 'added') fleet.hosts.includes(host) || fleet.add(endpointOf(host, 9))
          else if (!fleet.hosts.includes(host)) continue
          else if (event === 'lost')
            fleet.events.emit({ type: 'session', host, state: { kind: 'lost', reason: 'reset' } as never })
          else if (event === 'ended')
            fleet.events.emit({
              type: 'shell',
              host,
              state: { kind: 'ended', end: { kind: 'exit', code: 1 } } as never,
            })
          else fleet.events.emit({ type: 'shell', host, state: { kind: event } })
        } else {
          const [width, height] = [choice.one([1, 2, 10, 40, 80, 240]), choice.one([1, 2, 5, 24, 67])]
          note(`${width}x${height}`)
          console.resize(width, height)
        }
        if (choice.once(3)) await new Promise((resolve) => setImmediate(resolve))
        clock.advance(choice.one([0, 10, 100, 500, 3000]))
        const { state } = console
        const scene = buildScene(console, createCellGrid(state.columns, state.rows), state, rethrow)
        for (const pane of scene.panes) for (const { text } of pane.notice.flat()) expectPrintable(text, 'the pane')
        expectPrintable(state.notice?.text ?? '', 'the notice')
        if (state.mode.kind === 'dialog') {
          const { title, lines } = state.mode.dialog
          for (const text of [title, ...lines.map((line) => line.text)]) expectPrintable(text, 'the dialog')
        }
      }
      console[Symbol.dispose]()
      // Ends the waits after keys, of which arrows that choose panes have the longest.
      clock.advance(2000)
      if (clock.timerCount > 0) throw new Error(`${clock.timerCount} timers are left`)
    }, 0.02)
  })
})
