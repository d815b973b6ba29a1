/**
 * What is on the terminal after any actions is what drawing everything anew puts there: no artefact is left behind by the
 * frames that write only what changed.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import type { ObservedState } from '../../support/observer-socket.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** A linear congruential generator: the same actions at each run. */
function createChoice(seed: number): <T>(items: readonly T[]) => T {
  let state = seed
  return (items) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return items[Math.floor((state / 2 ** 32) * items.length)] as (typeof items)[number]
  }
}

/** Most shells have answered to a new size by then; a moment in which one prints is looked at again. */
const QUIET_MS = 200
const ROUNDS = 25

type Step = (console: ConsoleDriver) => Promise<unknown>

const leader =
  (...keys: readonly string[]): Step =>
  (console) =>
    console.leader(...keys)
const type =
  (text: string): Step =>
  (console) =>
    console.type(text)
const resize =
  (columns: number, rows: number): Step =>
  async (console) => {
    const cells = console.cells()
    if (cells.length !== rows || cells[0]?.length !== columns) await console.resize(columns, rows)
  }
const then =
  (...steps: readonly Step[]): Step =>
  async (console) => {
    for (const step of steps) await step(console)
  }
const key =
  (...names: readonly string[]): Step =>
  (console) =>
    console.key(...names)

const STEPS: readonly Step[] = [
  type("printf '日本語 \\033[31mred\\033[0m é👩‍👩‍👧🇩🇪☕ %s\\n' $RANDOM\r"),
  type('seq 1 40\r'),
  type("printf '\\033[2J\\033[5;3H\\033[44;1mwide 한국어 text\\033[0m\\n'\r"),
  type('clear\r'),
  type("printf '%0100d\\n' 7\r"),
  type('ls --color=always /usr\r'),
  then(type('less /etc/services /etc/passwd\r'), type(' '), type('q')),
  leader('z'),
  leader('s'),
  leader('a'),
  leader('n'),
  leader('='),
  leader('d'),
  then(leader('Right'), key('Space', 'Escape')),
  then(leader('Down'), key('Space', 'Escape')),
  then(leader('?'), key('Down', 'PageDown', 'Escape')),
  then(leader(':'), type('zo'), key('Escape')),
  leader(':'),
  (console) => (console.state?.mode.startsWith('dialog') ? console.key('Escape') : Promise.resolve()),
  then(leader('['), key('PageUp', 'PageUp', 'Escape')),
  then(leader('/'), type('m[1-2]'), key('Enter')),
  then(leader('6'), leader('1')),
  then(leader('6')),
  leader('1'),
  leader('PageDown'),
  leader('PageUp'),
  leader('>'),
  leader('<'),
  resize(80, 24),
  resize(120, 40),
  resize(61, 17),
  resize(33, 9),
  resize(101, 33),
  (console) => console.mouse('wheel-up', 5, 5),
  (console) => console.mouse('press', 30, 10),
]

describe('the screen after random actions', () => {
  let console: ConsoleDriver

  beforeAll(async () => {
    console = await openConsole({ args: ['demo', '--count', '5'], size: [100, 30] })
    await console.expectReady()
  })

  afterAll(async () => {
    await console?.close()
  })

  const quiet = async () => {
    let printed = -1
    let sinceMs = 0
    await waitUntil(() => {
      if (console.state?.hostBytes !== printed) sinceMs = performance.now()
      printed = console.state?.hostBytes ?? 0
      return performance.now() - sinceMs > QUIET_MS
    }, 'the shells to be quiet')
  }

  const shown = () => {
    // A blank may be written or erased: both look the same. The last row's notices go by themselves.
    const panes = console.cells().slice(0, -1)
    return panes.map((row) => row.map((cell) => (cell.text === '' ? { ...cell, text: ' ' } : cell)))
  }

  /** What is shown, and what drawing it anew shows, with nothing printed by any host in between. */
  const twice = async () => {
    for (;;) {
      await quiet()
      await console.settled()
      const { hostBytes, frames } = console.state as ObservedState
      const before = shown()
      console.signal('SIGCONT')
      await console.until((state) => state.frames > frames, 'everything to be drawn anew')
      const after = shown()
      if (console.state?.hostBytes === hostBytes) return { before, after }
    }
  }

  it('equals a full redraw', async () => {
    const choose = createChoice(7)
    const done: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const step = choose(STEPS)
      done.push(STEPS.indexOf(step))
      await step(console)
      const { before, after } = await twice()
      expect(after, `after ${done.join(' ')}`).toEqual(before)
    }
  })
})
