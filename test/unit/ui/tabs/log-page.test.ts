import { describe, expect, it } from 'vitest'
import { dayText } from '../../../../src/base/time-text.ts'
import type { SessionState } from '../../../../src/ssh/session-transition.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { type ConsoleHarness, createConsoleHarness } from '../console/console-harness.ts'

const LEADER = '\x1d'

function rows({ console }: ConsoleHarness): string[] {
  const { columns, rows } = console.state
  const [pane] = console.pages.log.panes({ column: 0, row: 1, width: columns, height: rows - 2 }, themes.none)
  return (pane?.notice ?? []).map((row) => row.map(({ text }) => text).join('')).filter((text) => text !== '')
}

describe('the tab Log', () => {
  it('wraps long lines below their text, and scrolls by rows', () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 80, rows: 24 } })
    const words = Array.from({ length: 200 }, (_, at) => `word${at}`)
    harness.console.log('m1', words.join(' '), 'error')
    harness.type(`${LEADER}6`)
    expect(rows(harness)).toHaveLength(20)
    expect(rows(harness).at(-1)).toMatch(/^ {13}word1\d\d .*word199$/)
    harness.type('g')
    expect(rows(harness)[0]).toMatch(/^ \d\d:\d\d:\d\d m1 connected$/)
    expect(
      rows(harness)
        .join(' ')
        .match(/word\d+/g)
        ?.slice(0, 99),
    ).toEqual(words.slice(0, 99))
    harness.type('G')
    harness.console.log('', 'one more')
    expect(rows(harness).at(-1)).toMatch(/one more$/)
    harness.type('k')
    expect(rows(harness).at(-1)).toMatch(/word199$/)
  })

  it('shows the date of lines that are not of today, and finds lines by date', () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 80, rows: 24 } })
    harness.type(`${LEADER}6`)
    expect(rows(harness)).toEqual([expect.stringMatching(/^ \d\d:\d\d:\d\d m1 connected$/)])
    const day = dayText(harness.clock.now())
    harness.clock.advance(24 * 3_600_000)
    harness.console.log('m1', 'the next day')
    expect(rows(harness)).toEqual([
      expect.stringMatching(new RegExp(`^ ${day} \\d\\d:\\d\\d:\\d\\d m1 connected$`)),
      expect.stringMatching(/^ \d\d:\d\d:\d\d {12}m1 the next day$/),
    ])
    harness.type(`/time:${day}\r`)
    expect(rows(harness)).toEqual([expect.stringMatching(/m1 connected$/)])
  })

  it('is filtered by host and words, and reversed', () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    harness.console.log('m2', 'disk full', 'warning')
    harness.type(`${LEADER}6/m2 full`)
    expect(rows(harness)).toEqual([expect.stringMatching(/ m2 disk full$/)])
    harness.type(' gone')
    expect(rows(harness)).toEqual([expect.stringContaining('no line matches “m2 full gone”')])
    harness.type('\x1b')
    expect(rows(harness)).toHaveLength(3)
    harness.type('>I')
    harness.console.log('m1', 'newest')
    expect(rows(harness).map((text) => text.slice(10))).toEqual([
      'm1 newest',
      'm2 disk full',
      'm2 connected',
      'm1 connected',
    ])
  })

  it('counts entries, not the rows that they are wrapped into, and finds hosts in folded ones', () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'], size: { columns: 80, rows: 24 } })
    harness.console.log('m[1-3]', `cannot ${'x '.repeat(60)}`, 'error')
    harness.console.log('m3', 'cannot')
    const title = () => {
      const [pane] = harness.console.pages.log.panes({ column: 0, row: 1, width: 80, height: 22 }, themes.none)
      return pane?.title.map(({ text }) => text).join('')
    }
    harness.type(`${LEADER}6/cannot\r`)
    expect(title()).toContain('/cannot  2 of 5')
    harness.type('/ m[2-3]\r')
    expect(title()).toContain('/cannot m[2-3]  2 of 5')
    harness.type('\x1b')
    harness.type('/host:m2\r')
    expect(title()).toContain('/host:m2  2 of 5')
    harness.type('\x1b')
    // Of each time.
    harness.type('/:\r')
    expect(title()).toContain('/:  5 of 5')
  })

  it('shows a host that is away in one line for each reason, with the next attempt', () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    const session = (host: string, state: SessionState) => harness.fleet.events.emit({ type: 'session', host, state })
    const waiting = (attempt: number, reason: string): SessionState => {
      return { kind: 'waiting', attempt, retryAtMs: attempt * 1000, reason }
    }
    session('m1', { kind: 'lost', attempt: 1, reason: 'no answer', sinceMs: 0 })
    harness.fleet.events.emit({
      type: 'shell',
      host: 'm1',
      state: { kind: 'ended', end: { kind: 'lost', reason: 'no answer' } },
    })
    session('m2', { kind: 'lost', attempt: 1, reason: 'no answer', sinceMs: 0 })
    for (const attempt of [1, 2, 3, 4, 5]) session('m1', waiting(attempt, 'no answer'))
    session('m1', waiting(6, 'connection refused'))
    session('m1', { kind: 'ready', attempt: 6, sinceMs: 0 })
    harness.type(`${LEADER}6`)
    expect(rows(harness).map((text) => text.slice(10))).toEqual([
      'm1 connected',
      'm2 connected',
      expect.stringMatching(/^m1 lost: no answer · attempt 5 at \d\d:\d\d:05$/),
      'm2 lost: no answer',
      expect.stringMatching(/^m1 connection refused · attempt 6 at \d\d:\d\d:06$/),
      'm1 connected',
    ])
  })
})
