import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Feeder, type FeederOptions } from '../../../src/terminal/feeder.ts'
import { createScreen, type Screen } from '../../../src/terminal/headless-screen.ts'
import { randomRuns } from '../../support/random-runs.ts'
import { ManualClock } from '../ssh/manual-clock.ts'
import { allText } from './screen-harness.ts'

type Event = readonly [kind: 'parse' | 'told' | 'pause' | 'resume', host: string, bytes?: number]

/** A feeder whose turns and time the test drives; parsing a kilobyte takes `msPerKilobyte`. */
function openFeeder(options: Partial<FeederOptions> & { msPerKilobyte?: number } = {}) {
  const clock = new ManualClock()
  const turns: (() => void)[] = []
  const events: Event[] = []
  const texts = new Map<string, string>()
  const parsed = new Map<string, number>()
  let now = 0
  const feeder = new Feeder({
    clock,
    now: () => now,
    schedule: (turn) => turns.push(turn),
    onParsed: (host, bytes) => {
      parsed.set(host, (parsed.get(host) ?? 0) + bytes)
      events.push(['told', host])
    },
    onPause: (host) => events.push(['pause', host]),
    onResume: (host) => events.push(['resume', host]),
    ...options,
  })
  const turn = () => {
    const [next] = turns.splice(0, 1)
    next?.()
    return next !== undefined
  }
  return {
    feeder,
    clock,
    events,
    parsedBytes: (host: string) => parsed.get(host) ?? 0,
    text: (host: string) => texts.get(host) ?? '',
    addFake(...hosts: string[]) {
      for (const host of hosts) {
        const screen = {
          modes: { isAlternateScreen: false },
          cursor: { column: 0 },
          parse(bytes: Uint8Array) {
            now += (bytes.length / 1024) * (options.msPerKilobyte ?? 0)
            events.push(['parse', host, bytes.length])
            texts.set(host, (texts.get(host) ?? '') + Buffer.from(bytes).toString('latin1'))
          },
        }
        feeder.add(host, screen as unknown as Screen)
      }
    },
    turn,
    run() {
      while (turn());
    },
    order: () => events.filter(([kind]) => kind === 'parse').map(([, host]) => host),
  }
}

const bytes = (count: number, fill = 'x') => Buffer.alloc(count, fill)

describe('the feeder', () => {
  it('gives each host all its bytes in order', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.nat(9000))), (pushes) => {
        const { feeder, addFake, text, run, turn } = openFeeder({ turnMs: 0 })
        addFake('0', '1', '2', '3')
        const expected = ['', '', '', '']
        pushes.forEach(([host, size], index) => {
          const fill = String.fromCharCode(65 + (index % 26))
          expected[host] += fill.repeat(size)
          feeder.push(`${host}`, bytes(size, fill))
          if (index % 3 === 0) turn()
        })
        run()
        expect([0, 1, 2, 3].map((host) => text(`${host}`))).toEqual(expected)
        expect(feeder.isIdle).toBe(true)
      }),
    )
  })

  it('parses in a separate turn, never while output arrives', () => {
    const { feeder, addFake, events, turn } = openFeeder()
    addFake('m1')
    feeder.push('m1', bytes(10))
    expect(events).toEqual([])
    expect(feeder.isIdle).toBe(false)
    turn()
    expect(events).toEqual([
      ['parse', 'm1', 10],
      ['told', 'm1'],
    ])
    expect(feeder.isIdle).toBe(true)
  })

  it('reports how much of a host it parsed since the last report', () => {
    const told: [string, number][] = []
    const { feeder, addFake, run } = openFeeder({
      turnMs: 2,
      msPerKilobyte: 1,
      onParsed: (...parsed) => void told.push(parsed),
    })
    addFake('echo', 'flood')
    feeder.push('echo', bytes(1))
    feeder.push('echo', bytes(2))
    feeder.push('flood', bytes(6000))
    run()
    expect(told).toEqual([
      ['echo', 3],
      ['flood', 4096],
      ['flood', 1904],
    ])
  })

  it('ends a turn on time and leaves the rest to the next one', () => {
    const { feeder, addFake, turn, order } = openFeeder({ turnMs: 2, msPerKilobyte: 0.25 })
    addFake('m1')
    feeder.push('m1', bytes(64 * 1024))
    turn()
    expect(order().length).toBe(2)
    turn()
    expect(order().length).toBe(4)
  })

  it('gives floods one slice each, round-robin over turns', () => {
    const { feeder, addFake, turn, order } = openFeeder({ msPerKilobyte: 0.5 })
    addFake('m1', 'm2', 'm3')
    for (const host of ['m1', 'm2', 'm3']) feeder.push(host, bytes(20 * 1024))
    for (let count = 0; count < 6; count++) turn()
    expect(order()).toEqual(['m1', 'm2', 'm3', 'm1', 'm2', 'm3'])
  })

  it('parses an echo before an earlier flood, and reports it at once', () => {
    const { feeder, addFake, turn, events } = openFeeder({ msPerKilobyte: 0.5 })
    addFake('flood', 'echo')
    feeder.push('flood', bytes(60 * 1024))
    feeder.push('echo', bytes(1, 'k'))
    turn()
    expect(events).toEqual([
      ['parse', 'echo', 1],
      ['told', 'echo'],
      ['parse', 'flood', 4096],
      ['told', 'flood'],
    ])
  })

  it('lets floods progress however many small outputs there are', () => {
    const { feeder, addFake, turn, order } = openFeeder({ msPerKilobyte: 10 })
    addFake('flood', 'm1', 'm2', 'm3')
    feeder.push('flood', bytes(20 * 1024))
    for (let count = 0; count < 3; count++) {
      for (const host of ['m1', 'm2', 'm3']) feeder.push(host, bytes(100))
      turn()
    }
    expect(order().filter((host) => host === 'flood').length).toBe(3)
  })

  it('pauses a host with too much waiting output, and resumes it when little is left', () => {
    const { feeder, addFake, turn, events, parsedBytes } = openFeeder({ msPerKilobyte: 1 })
    addFake('m1')
    const paused = () => events.filter(([kind]) => kind === 'pause' || kind === 'resume').map(([kind]) => kind)
    feeder.push('m1', bytes(64 * 1024))
    expect(paused()).toEqual([])
    feeder.push('m1', bytes(1))
    feeder.push('m1', bytes(1000))
    expect(paused()).toEqual(['pause'])
    while (64 * 1024 + 1001 - parsedBytes('m1') >= 16 * 1024) {
      expect(paused()).toEqual(['pause'])
      turn()
    }
    expect(paused()).toEqual(['pause', 'resume'])
  })

  it('accepts output that parsing causes (an answer that comes back at once)', () => {
    const { feeder, addFake, text, run } = openFeeder()
    addFake('m1')
    const parse = { count: 0 }
    feeder.add('m2', {
      modes: {},
      parse() {
        if (parse.count++ === 0) {
          feeder.push('m1', bytes(1, 'a'))
          feeder.push('m2', bytes(1, 'b'))
        }
      },
    } as unknown as Screen)
    feeder.push('m2', bytes(1))
    run()
    expect(text('m1')).toBe('a')
    expect(parse.count).toBe(2)
    expect(feeder.isIdle).toBe(true)
  })

  it('forgets a host and its waiting output, and resumes a paused one', () => {
    const { feeder, addFake, run, events } = openFeeder()
    addFake('m1')
    feeder.push('m1', bytes(100 * 1024))
    feeder.remove('m1')
    feeder.push('m1', bytes(1))
    run()
    expect(events).toEqual([
      ['pause', 'm1'],
      ['resume', 'm1'],
    ])
    expect(feeder.isIdle).toBe(true)
  })

  it('leaves the event loop to others between turns', async () => {
    let parsed = 0
    const feeder = new Feeder({
      onParsed() {},
      onPause() {},
      onResume() {},
      turnMs: 0,
    })
    const done = Promise.withResolvers<void>()
    feeder.add('m1', {
      modes: {},
      parse: () => {
        parsed++
        if (parsed === 20) done.resolve()
      },
    } as unknown as Screen)
    feeder.push('m1', bytes(20 * 4096))
    await new Promise((resolve) => setImmediate(resolve))
    const atFirst = parsed
    await done.promise
    expect(atFirst).toBeLessThan(20)
    feeder[Symbol.dispose]()
  })
})

/** A host with a real screen that floods with numbered lines. */
function openFlood() {
  const opened = openFeeder()
  const screen = createScreen({ columns: 40, rows: 6, historyLines: 100, handlers: { onReply() {} } })
  opened.feeder.add('m1', screen)
  const send = (text: string | Uint8Array) =>
    opened.feeder.push('m1', typeof text === 'string' ? Buffer.from(text) : text)
  return { ...opened, screen, send }
}

const STALE = Buffer.from('stale \x1b[31mred\x1b[m output\r\n'.repeat(40_000))
const visible = (screen: Screen) => screen.visibleText().filter((line) => line !== '')

describe('a flood that is interrupted', () => {
  it('shows the echo of the interrupt and the prompt at once, in the right colour', () => {
    const { feeder, screen, send, run, clock } = openFlood()
    send(STALE)
    expect(feeder.dropBacklog('m1')).toBe(true)
    send(STALE)
    send('stale \x1b[31mre')
    expect(feeder.isIdle).toBe(false)
    send('d output\r\n^C\r\nuser@m1:~$ ')
    expect(clock.timerCount).toBe(0)
    run()
    expect(visible(screen)).toEqual(['^C', 'user@m1:~$'])
    expect(screen.cursor).toMatchObject({ column: 11 })
    expect(feeder.isIdle).toBe(true)
  })

  it.each([
    ['', 0],
    [', also when the clock is set back', -3_600_000],
  ])('shows the prompt after a quiet moment when the interrupt is not echoed%s', (_, setByMs) => {
    const { feeder, screen, send, run, clock } = openFlood()
    send(STALE)
    feeder.dropBacklog('m1')
    send(STALE)
    send('\r\nuser@m1:~$ ')
    run()
    expect(visible(screen)).not.toContain('user@m1:~$')
    clock.set(setByMs)
    clock.advance(300)
    run()
    expect(visible(screen).at(-1)).toBe('user@m1:~$')
    expect(allText(screen).length).toBeLessThan(200)
  })

  it('never loses the prompt, however its bytes are split', () => {
    const end = Buffer.from('stale output\r\n^C\r\n\x1b[1muser@m1\x1b[m:~$ ')
    fc.assert(
      fc.property(fc.array(fc.nat(end.length), { maxLength: 8 }), (cuts) => {
        const { feeder, screen, send, run, clock } = openFlood()
        send(STALE)
        feeder.dropBacklog('m1')
        const places = [0, ...cuts.toSorted((a, b) => a - b), end.length]
        for (const [index, place] of places.slice(1).entries()) send(end.subarray(places[index], place))
        clock.advance(300)
        run()
        expect(visible(screen).slice(-2)).toEqual(['^C', 'user@m1:~$'])
      }),
      { numRuns: randomRuns(50) },
    )
  })

  it('waits only a limited time for a program that continues', () => {
    const { feeder, screen, send, run, clock } = openFlood()
    send(STALE)
    feeder.dropBacklog('m1')
    for (let count = 0; count < 50; count++) {
      clock.advance(50)
      send(Buffer.from(`still here ${count}\r\n`))
    }
    run()
    expect(visible(screen).at(-1)).toBe('still here 49')
    expect(feeder.isIdle).toBe(true)
  })

  it('waits only for a limited number of bytes', () => {
    const { feeder, screen, send, run } = openFlood()
    send(STALE)
    feeder.dropBacklog('m1')
    for (let sent = 0; sent < 9 * 1024 * 1024; sent += STALE.length) send(STALE)
    send('new\r\n')
    run()
    expect(visible(screen).at(-1)).toBe('new')
  })

  it('keeps the modes that the old output set', () => {
    const { feeder, screen, send, run } = openFlood()
    send('\x1b[?1000h\x1b[?2004l\x1b[?25l')
    run()
    send(STALE)
    feeder.dropBacklog('m1')
    send(Buffer.concat([STALE, Buffer.from('\x1b[?10'), Buffer.from('00l\x1b[?2004h\x1b[?25h'), STALE]))
    send('^C\r\n$ ')
    run()
    expect(screen.modes).toMatchObject({ mouse: 'none', isBracketedPaste: true })
    expect(screen.cursor.isVisible).toBe(true)
  })

  it('drops no output of a full-screen program that starts meanwhile', () => {
    const { feeder, screen, send, run } = openFlood()
    send(STALE)
    feeder.dropBacklog('m1')
    send(STALE)
    send('\r\n\x1b[?10')
    send('49h\x1b[Htop of vim\x1b[3;1Hthird row')
    run()
    expect(screen.modes.isAlternateScreen).toBe(true)
    expect(screen.visibleText().slice(0, 3)).toEqual(['top of vim', '', 'third row'])
  })

  it('drops no output of a running full-screen program', () => {
    const { feeder, send, run, parsedBytes } = openFlood()
    send('\x1b[?1049h')
    run()
    const before = parsedBytes('m1')
    send(STALE)
    expect(feeder.dropBacklog('m1')).toBe(false)
    run()
    expect(parsedBytes('m1') - before).toBe(STALE.length)
  })

  it('resumes the host that was paused', () => {
    const { feeder, send, events } = openFlood()
    send(STALE)
    expect(events).toEqual([['pause', 'm1']])
    feeder.dropBacklog('m1')
    expect(events).toEqual([
      ['pause', 'm1'],
      ['resume', 'm1'],
    ])
  })

  it('leaves nothing behind when the host is removed', () => {
    const { feeder, send, clock } = openFlood()
    send(STALE)
    feeder.dropBacklog('m1')
    expect(clock.timerCount).toBe(1)
    feeder.remove('m1')
    expect(clock.timerCount).toBe(0)
    expect(feeder.isIdle).toBe(true)
  })
})

describe('a host that does not flood', () => {
  it('loses nothing when it is interrupted', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3000), { maxLength: 5 }), (sizes) => {
        const { feeder, addFake, text, run } = openFeeder()
        addFake('m1')
        let sent = 0
        for (const size of sizes) {
          feeder.push('m1', bytes(size))
          expect(feeder.dropBacklog('m1')).toBe(false)
          sent += size
        }
        run()
        expect(text('m1').length).toBe(sent)
      }),
      { numRuns: randomRuns(50) },
    )
  })

  it('loses nothing some time after a flood', () => {
    const { feeder, addFake, text, run, clock } = openFeeder()
    addFake('m1')
    feeder.push('m1', bytes(600_000))
    run()
    clock.advance(2000)
    expect(feeder.dropBacklog('m1')).toBe(false)
    feeder.push('m1', bytes(5, 'y'))
    run()
    expect(text('m1').endsWith('yyyyy')).toBe(true)
  })

  it('shows everything after a flood that was shown, because none of it is stale', () => {
    const { feeder, screen, send, run, clock } = openFlood()
    send(STALE)
    run()
    feeder.dropBacklog('m1')
    send('last words\r\n$ ')
    clock.advance(300)
    run()
    expect(visible(screen).slice(-3)).toEqual(['stale red output', 'last words', '$'])
  })
})
