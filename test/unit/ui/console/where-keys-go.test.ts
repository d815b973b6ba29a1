/** The header says where keys go, and it is true: keys typed outside the shells reach no host. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, asyncProperty, constantFrom, array as listOf, oneof, string } from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { headerBars, keysElsewhere } from '../../../../src/ui/console/header.ts'
import { PAGE_TABS } from '../../../../src/ui/state/console-state.ts'
import { randomRuns } from '../../../support/random-runs.ts'
import { type ConsoleHarness, createConsoleHarness } from './console-harness.ts'

const LEADER = '\x1d'
const ESC = '\x1b'
const HOSTS = ['m1', 'm2', 'm3']

const directory = mkdtempSync(join(tmpdir(), 'muster-keys-'))
afterAll(() => rmSync(directory, { recursive: true }))

const open = () => createConsoleHarness({ hosts: HOSTS, environment: { XDG_STATE_HOME: directory } })
const header = ({ console }: ConsoleHarness): string => {
  const { left, right } = headerBars(console.state, themes.none, console.arrangement)
  return [...left, ...right].map(({ text }) => text).join('')
}
const received = ({ got }: ConsoleHarness): string => HOSTS.map(got).join('|')

describe('arrows and Space after a move', () => {
  const chosen = ({ console }: ConsoleHarness) => [console.state.focus, [...console.state.receivers].sort().join()]

  it('choose panes while they follow each other, and then go to the receivers again', () => {
    const harness = open()
    harness.type(`${LEADER}\x1b[C`)
    harness.clock.advance(1900)
    harness.type('\x1b[C')
    harness.clock.advance(1900)
    harness.type(' ')
    expect(chosen(harness)).toEqual(['m2', 'm1,m3'])
    harness.type(' ')
    harness.clock.advance(2000)
    harness.type(' ')
    harness.type('\x1b[A')
    harness.type('\r')
    expect(chosen(harness)).toEqual(['m2', 'm1,m2,m3'])
    const bytes = ' \x1b[A\r'
    expect(received(harness)).toBe([bytes, bytes, bytes].join('|'))
  })
})

describe('a prompt', () => {
  it('takes no letter of a command: the leader says to close it first, and twice it is a key of the prompt', () => {
    const harness = open()
    const typed = () => {
      const { mode } = harness.console.state
      return mode.kind === 'dialog' ? mode.dialog.input?.text : undefined
    }
    harness.type(`${LEADER}!abc${LEADER}`)
    harness.type('D')
    expect(harness.console.state.notice?.text).toBe('Ctrl-] D: not while a dialog is open; Esc closes it')
    harness.type('d')
    expect(typed()).toBe('abcd')
    expect(harness.console.state.notice).toBeUndefined()
    harness.type(LEADER + ESC)
    harness.type(`${LEADER}${LEADER}e`)
    expect(typed()).toBe('abcde')
    harness.type(LEADER)
    harness.console.dialogs.current?.cancel?.()
    harness.type('D')
    harness.type('x')
    expect(received(harness)).toBe('x|x|x')
  })
})

describe('a word in which a letter is also a key', () => {
  it('answers no question with its y, and the rest of a yes reaches no host', () => {
    const harness = open()
    harness.type(`${LEADER}x`)
    harness.type('say y')
    expect(harness.console.state.hosts.size).toBe(3)
    const again = 'y may be the rest of a word: press it again'
    const { mode, notice } = harness.console.state
    expect([notice?.text, mode.kind === 'dialog' && mode.dialog.lines.at(-1)?.text]).toEqual([again, again])
    harness.clock.advance(500)
    harness.type('yes\r')
    expect([harness.console.state.hosts.size, received(harness)]).toEqual([2, '||'])
    harness.clock.advance(500)
    harness.type('ls')
    expect(received(harness)).toContain('ls')
  })

  it('does not go to the shells by a number that it has, after a key that does nothing on a tab', () => {
    const harness = open()
    harness.type(`${LEADER}2`)
    const { tab } = harness.console.state
    for (const key of 'Q--gpu 1') harness.type(key)
    expect(harness.console.state).toMatchObject({
      tab,
      notice: { text: '1 may be the rest of a word: press it again' },
    })
    harness.clock.advance(500)
    harness.type('1')
    expect([harness.console.state.tab, received(harness)]).toEqual(['shells', '||'])
    // Esc ends the word.
    harness.type(`${LEADER}2`)
    for (const key of ['Q', 'Q', 'Q', ESC, '1']) harness.type(key)
    expect(harness.console.state.tab).toBe('shells')
  })

  it('takes its line with it: the rest alone would be another command', () => {
    const harness = open()
    harness.type(`${LEADER}[`)
    harness.type('q')
    expect(header(harness)).toContain(' ONE MOMENT · hosts get no keys ')
    harness.type('cd /srv && ')
    harness.clock.advance(10_000)
    expect(header(harness)).toContain(' UNTIL ENTER · hosts get no keys ')
    harness.type('rm -rf *')
    expect(harness.console.state.notice?.text).toBe(
      'not sent, until Enter: the keys had only just come back to the shells',
    )
    harness.type('\r')
    expect(received(harness)).toBe('||')
    harness.clock.advance(500)
    harness.type('ls\r')
    expect(received(harness)).toBe('ls\r|ls\r|ls\r')
  })

  it.each([
    ['at once, as a paste without marks', 0],
    ['by a fast typist', 120],
  ])('takes the lines with it that follow %s', (_, pauseMs) => {
    const harness = open()
    harness.type(`${LEADER}5`)
    for (const key of '1 foo\recho BAR\rrm -rf x\r') {
      harness.clock.advance(pauseMs)
      harness.type(key)
    }
    expect([harness.console.state.tab, received(harness)]).toEqual(['shells', '||'])
    expect(header(harness)).toContain(' ONE MOMENT · hosts get no keys ')
    harness.clock.advance(500)
    harness.type('ls\r')
    expect(received(harness)).toBe('ls\r|ls\r|ls\r')
  })

  it('is none when the key that leads back is only pressed once more', () => {
    const harness = open()
    harness.type(`${LEADER}[`)
    harness.type('q')
    harness.clock.advance(200)
    harness.type('q')
    expect(header(harness)).toContain(' ONE MOMENT · hosts get no keys ')
    harness.clock.advance(500)
    harness.type('q')
    expect(received(harness)).toBe('q|q|q')
  })

  it.each([
    ['Esc', ESC],
    ['Ctrl-C', '\x03'],
    ['Ctrl-U', '\x15'],
    ['the leader', `${LEADER}${ESC}`],
  ])('its line is given up with %s', (_, keys) => {
    const harness = open()
    harness.type(`${LEADER}[`)
    harness.type('qwe')
    harness.type(keys)
    expect(received(harness)).toBe('||')
    harness.type('ls')
    expect(received(harness)).toBe('ls|ls|ls')
  })

  it('lets nothing but Ctrl-C through at that moment: no Ctrl-D, arrow, Esc, Backspace, Enter or paste', () => {
    const harness = open()
    harness.type(`${LEADER}2`)
    harness.type('1')
    for (const keys of ['\x04', '\x1b[A', '\x7f', ESC, '\x1b[200~echo pasted\x1b[201~', '\r']) {
      harness.type(keys)
      expect(header(harness)).toContain(' ONE MOMENT · hosts get no keys ')
    }
    expect(received(harness)).toBe('||')
    harness.clock.advance(500)
    harness.type('\x04')
    expect(received(harness)).toBe('\x04|\x04|\x04')
  })

  it('answers at once after the leader and a command', () => {
    const harness = open()
    harness.type(`${LEADER}xy`)
    expect(harness.console.state.hosts.size).toBe(2)
  })

  it('does not leave the scroll-back for the hosts', () => {
    const harness = open()
    harness.type(`${LEADER}[`)
    expect(harness.console.state.mode.kind).toBe('scroll')
    harness.type('quit\r')
    expect([harness.console.state.mode.kind, received(harness)]).toEqual(['typing', '||'])
  })
})

describe('a key that comes in pieces, as over a slow line', () => {
  it.each([
    ['scroll-back', '['],
    ['the prompt of a run', '!'],
    ['help', '?'],
  ])('closes %s by its Esc, and nothing of it or of the keys that follow reaches a host', (_, command) => {
    const harness = open()
    harness.type(`${LEADER}${command}`)
    harness.type(ESC)
    harness.type('[A')
    expect(harness.console.state.notice?.text).toMatch(/^not taken: a key came in pieces/)
    expect(header(harness)).toContain('ONE MOMENT')
    harness.type('\x1b[A\x1b[A')
    harness.clock.advance(400)
    harness.type('\x1b[5~')
    harness.type(`${LEADER}${command}`)
    for (const piece of [ESC, '[', '5', '~']) harness.type(piece)
    harness.type('\x1b[A')
    expect(received(harness)).toBe('||')
    harness.clock.advance(500)
    harness.type('ls')
    expect(received(harness)).toBe('ls|ls|ls')
  })

  it('reaches the hosts as it came where they have the keys, but no mouse', () => {
    const harness = open()
    harness.type(ESC)
    harness.type('[A')
    harness.type(ESC)
    harness.type('[<64;20;6M')
    expect(received(harness)).toBe(Array(3).fill(`${ESC}[A${ESC}`).join('|'))
  })

  it('on a tab does only what its Esc did', () => {
    const harness = open()
    harness.type(`${LEADER}5`)
    harness.type(ESC)
    harness.type('[A')
    expect([harness.console.state.tab, received(harness)]).toEqual(['jobs', '||'])
  })
})

describe('a tab', () => {
  it.each(PAGE_TABS)('$title: Esc and q do nothing at its root but name the way to the shells', ({ id, key }) => {
    const harness = open()
    harness.type(LEADER + key)
    for (const label of [ESC, 'q', ESC]) {
      harness.type(label)
      expect(harness.console.state.tab).toBe(id)
      const words = label === ESC ? '' : 'Ctrl-] q quits, Ctrl-] D detaches, '
      expect(harness.console.state.notice?.text).toBe(`${words}1 shows the shells`)
    }
    expect(received(harness)).toBe('||')
  })

  it.each(PAGE_TABS)('$title: the leader twice reaches no host', ({ key }) => {
    const harness = open()
    harness.type(LEADER + key + LEADER + LEADER)
    expect(received(harness)).toBe('||')
    expect(harness.console.state.notice?.text).toBe('Ctrl-] twice types Ctrl-] only in the shells')
    harness.type(`1${LEADER}${LEADER}`)
    expect(harness.got('m1')).toBe(LEADER)
  })

  it.each(PAGE_TABS)('$title: a word with a 1 in it, typed where there is no prompt, reaches no host', ({ key }) => {
    const harness = open()
    harness.type(`${LEADER}${key}1`)
    expect(header(harness)).toContain(' ONE MOMENT · hosts get no keys ')
    for (const letter of ',m2 --time 6') {
      harness.clock.advance(300)
      harness.type(letter)
    }
    expect(harness.console.state.notice?.text).toBe(
      'not sent, until Enter: the keys had only just come back to the shells',
    )
    expect(header(harness)).toContain(' UNTIL ENTER · hosts get no keys ')
    harness.type('\r')
    expect(received(harness)).toBe('||')
    harness.clock.advance(500)
    expect(header(harness)).toContain(' TYPING INTO ALL 3: ')
    harness.type('ls\r')
    expect(harness.got('m1')).toBe('ls\r')
    expect(harness.console.state.notice).toBeUndefined()
    // An interrupt always goes out, and after the leader the number is no part of a word.
    harness.type(`${LEADER}${key}1\x03${LEADER}${key}${LEADER}1ls`)
    expect(harness.got('m1')).toBe('ls\r\x03ls')
  })

  it('says which key did nothing, until the next key that does something', () => {
    const harness = open()
    harness.type(`${LEADER}3Q`)
    for (const _ of [1, 2]) {
      harness.type('Q')
      expect(harness.console.state.notice?.text).toBe('Q does nothing here: 1 shows the shells, ? the keys')
    }
    harness.type('j')
    expect(harness.console.state.notice).toBeUndefined()
    harness.type('Q/')
    expect([harness.console.state.mode.kind, harness.console.state.notice]).toEqual(['filter', undefined])
  })

  it('hides what is said about the receivers once others receive', () => {
    const harness = open()
    harness.fleet.away.set('m2', 'unreachable')
    harness.type('x')
    expect(harness.console.state.notice?.text).toContain('m2: unreachable')
    harness.type(`${LEADER}s`)
    expect(harness.console.state.notice).toBeUndefined()
  })

  it('hides an earlier notice when a dialog opens, but not an error', () => {
    const harness = open()
    harness.type(`${LEADER}3${ESC}`)
    expect(harness.console.state.notice?.text).toBe('1 shows the shells')
    harness.type('?')
    expect(harness.console.state.notice).toBeUndefined()
    harness.type(ESC)
    harness.console.notice('lost', 'error')
    harness.type(':')
    expect(harness.console.state.notice?.text).toBe('lost')
  })

  it('recognises the leader that arrives together with Esc', () => {
    const harness = open()
    harness.type(`${ESC}${LEADER}`)
    expect(harness.got('m1')).toBe(ESC)
    expect(harness.console.state.mode.kind).toBe('leader')
  })

  it.each(PAGE_TABS)('$title: ? opens the help and : the palette, without the leader', ({ key }) => {
    const harness = open()
    harness.type(`${LEADER}${key}?`)
    expect(harness.console.state.mode).toMatchObject({ kind: 'dialog', dialog: { id: 'help' } })
    harness.type(ESC)
    harness.type(':')
    expect(harness.console.state.mode).toMatchObject({ kind: 'dialog', dialog: { id: 'palette' } })
  })

  it.each([...'msfxpz=d[r', ' '])('refuses the command %j, which is about panes that are not shown', (key) => {
    const harness = open()
    harness.type(`${LEADER}3${LEADER}${key}`)
    expect(harness.console.state).toMatchObject({
      tab: 'network',
      mode: { kind: 'typing' },
      isZoomed: false,
      isFolded: false,
      showsDifferences: false,
      notice: { text: 'only in the shells: press 1' },
    })
    expect(harness.receivers()).toBe('m1,m2,m3')
  })

  it('names the receivers when they are changed from there', () => {
    const harness = open()
    harness.type(`${LEADER}3${LEADER}/m[1-2]\r`)
    expect(harness.console.state.notice?.text).toBe('receivers: m[1-2]')
    harness.type(`${LEADER}n`)
    expect(harness.console.state.notice?.text).toBe('no receivers')
  })

  it('gets nothing from what began in the shells and ends later', () => {
    const harness = open()
    harness.type(`${LEADER}3`)
    harness.console.sendEach([{ hosts: ['m1'], bytes: Buffer.from('late') }])
    harness.console.paste('late', ['m2'])
    expect(received(harness)).toBe('||')
    expect(harness.console.state.notice?.text).toBe('nothing sent to m2: press 1 for shells')
  })
})

describe('a command that does nothing', () => {
  it.each([
    ['y', 'no Ray cluster in hosts.yaml, or its head is not open'],
    ['f', 'no host differs'],
    ['Z', 'unknown command: Z (Ctrl-] ? shows all)'],
    ['D', 'cannot detach: this console ends with its terminal'],
  ])('%s does not let the text that follows run on the hosts', (key, reason) => {
    const harness = open()
    harness.type(LEADER + key)
    expect(harness.console.state.notice?.text).toBe(reason)
    expect(header(harness)).toContain(' ONE MOMENT · hosts get no keys ')
    harness.type('mygrp')
    expect(harness.console.state.notice?.text).toBe(`not sent, until Enter: ${reason}`)
    harness.type('\r')
    expect(received(harness)).toBe('||')
    harness.type('\x03')
    expect(harness.got('m1')).toBe('\x03')
    harness.type('ls\r')
    expect(harness.got('m1')).toBe('\x03ls\r')
  })

  it('holds no text if another command follows', () => {
    const harness = open()
    harness.type(`${LEADER}f${LEADER}als`)
    expect(harness.got('m1')).toBe('ls')
  })
})

describe('the header', () => {
  it.each([
    [LEADER, 'COMMAND'],
    [`${LEADER}:`, 'PALETTE'],
    [`${LEADER}?`, 'HELP'],
    [`${LEADER}[`, 'SCROLL m1'],
    [`${LEADER}[/`, 'SEARCH'],
    [`${LEADER}/`, 'HOST SET'],
    [`${LEADER}p`, 'COMPOSE'],
    [`${LEADER}x`, 'CLOSE HOST'],
    [`${LEADER}3`, 'NETWORK'],
    [`${LEADER}3${LEADER}`, 'COMMAND'],
    [`${LEADER}3:`, 'PALETTE'],
    ['\x1b[200~one\ntwo\x1b[201~', 'PASTE REVIEW'],
  ])('says after %j that hosts get no keys', (keys, name) => {
    const harness = open()
    expect(header(harness)).toContain('TYPING INTO ALL 3')
    harness.type(keys)
    expect(header(harness)).toContain(` ${name} · hosts get no keys `)
  })
})

describe('a question of a host', () => {
  it('is announced while keys still go to the receivers, and named once it has the keys', () => {
    const harness = open()
    harness.type('l')
    harness.console.dialogs.openWhenQuiet(({ onClose }) => ({
      view: () => ({ id: 'credentials', title: '', lines: [], keys: [] }),
      key: onClose,
      cancel: onClose,
    }))
    expect(header(harness)).toMatch(/TYPING INTO ALL 3: m\[1-3\] +a question waits: stop typing /)
    harness.clock.advance(800)
    expect(header(harness)).toContain(' CREDENTIALS · hosts get no keys ')
    harness.type('\r')
    expect(header(harness)).toMatch(/TYPING INTO ALL 3: m\[1-3\] +1 Shells/)
  })
})

/** It ends in the middle, and becomes several keys. */
const BROKEN = '\x1b[20'

/** Keys, whole and broken sequences, clicks, drags and pastes. */
const anyInput = oneof(
  { weight: 6, arbitrary: string({ minLength: 1, maxLength: 1 }) },
  { weight: 3, arbitrary: constantFrom(LEADER, LEADER + LEADER, ESC, '\r', '\t', '\x03', '\x13', '\x7f', '\x1b[A') },
  { weight: 2, arbitrary: constantFrom('\x1b[200~ls\x1b[201~', '\x1b[200~one\ntwo\x1b[201~', '\x1b[', BROKEN) },
  { weight: 2, arbitrary: constantFrom('\x1b[<0;5;5M', '\x1b[<32;9;9M', '\x1b[<0;9;9m', '\x1b[<64;5;5M') },
  { weight: 4, arbitrary: constantFrom(...'amnips=[!co:?/x+wlhv').map((key) => LEADER + key) },
  { weight: 1, arbitrary: constantFrom(...PAGE_TABS).map(({ key }) => LEADER + key) },
)

describe('whatever is typed', () => {
  it('reaches no host while a tab covers the shells', async () => {
    const mouseProgram = '\x1b[?1002h\x1b[?1006h\x1b[?1049h'
    const inputs = listOf(anyInput, { minLength: 1, maxLength: 40 })
    const tabs = constantFrom(...PAGE_TABS)
    await assert(
      asyncProperty(tabs, inputs, async ({ key }, typed) => {
        const harness = open()
        await harness.print('m2', mouseProgram)
        harness.type(LEADER + key)
        for (const input of typed) {
          const { tab } = harness.console.state
          const before = received(harness)
          harness.type(input)
          // A number or a command may have shown the shells, where the rest of the same input may be typed.
          if (tab !== 'shells' && harness.console.state.tab !== 'shells') expect(received(harness)).toBe(before)
          if (harness.console.state.tab !== 'shells') continue
          harness.type(ESC)
          harness.type(LEADER + key)
        }
        harness.console[Symbol.dispose]()
      }),
      { numRuns: randomRuns(200) },
    )
  })

  it('reaches no host while the header names another place', async () => {
    const inputs = listOf(anyInput, { minLength: 1, maxLength: 40 })
    await assert(
      asyncProperty(inputs, async (typed) => {
        const harness = open()
        for (const input of typed) {
          const { mode, tab } = harness.console.state
          const isElsewhere = keysElsewhere(harness.console.state) !== undefined
          const isOneKey = input.length === 1 || (input.startsWith(ESC) && input !== BROKEN)
          const before = received(harness)
          harness.type(input)
          // Two dialogs send what they hold, and the leader twice is typed: that is what they are for.
          const sends = mode.kind === 'dialog' && /^(paste-review|compose|macros|macro-text)$/.test(mode.dialog.id)
          const isLeader = mode.kind === 'leader' && input.startsWith(LEADER) && tab === 'shells'
          if (isElsewhere && isOneKey && !sends && !isLeader) expect(received(harness)).toBe(before)
        }
        harness.console[Symbol.dispose]()
      }),
      { numRuns: randomRuns(200) },
    )
  })
})

it('sends nothing of a line that began before the terminal showed the console, up to its Enter', () => {
  const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
  harness.noteTypedAhead()
  for (const key of ['t', 'o', 'u', 'c', 'h', ' ', 'x']) harness.type(key)
  expect(harness.console.state.notice?.text).toBe('not sent, until Enter: it began before the console was shown')
  harness.clock.advance(10_000)
  harness.type('y\r')
  expect(harness.got('m1')).toBe('')
  harness.clock.advance(1000)
  harness.type('ls\r')
  expect(harness.got('m1')).toBe('ls\r')
})

it('sends nothing of an Enter alone that was typed with a line before the terminal showed the console', () => {
  const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
  harness.noteTypedAhead()
  harness.type('\r')
  expect(harness.got('m1')).toBe('')
})
