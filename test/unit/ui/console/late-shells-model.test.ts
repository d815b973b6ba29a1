/** Whatever users and networks do: a shell that lacks what its last one ran gets no keys before the user lets it in. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { getsKeysBeside, lateReceivers } from '../../../../src/ui/state/console-state.ts'
import { createConsoleHarness, endpointOf } from './console-harness.ts'

const LEADER = '\x1d'
const HOSTS = ['m1', 'm2', 'm3'] as const
type Host = (typeof HOSTS)[number]
const ON_HOST = ['lose', 'back', 'exit', 'only', 'others', 'toggle', 'close', 'add'] as const
/** What is typed at once. */
const KEYS = {
  half: 'x',
  line: 'ls\r',
  enter: '\r',
  'give up': '\x03',
  lines: 'ls\rpwd\r',
  'line and half': 'ls\rx',
} as const
const KINDS = [
  'half',
  'enter',
  'give up',
  'lines',
  'line and half',
  'all',
  'none',
  'invert',
  'solo',
  'different',
  'rest',
] as const

const host = fc.constantFrom(...HOSTS)
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('line' as const) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom(...KINDS) }) },
  { weight: 10, arbitrary: fc.record({ kind: fc.constantFrom(...ON_HOST), host }) },
)

/** `owes`: its last shell ended after a line, or with half a line while others were selected. `isBeside`: it may get keys beside older shells. */
type Shell = {
  readonly isUp: boolean
  readonly opened: number
  readonly firstLine: number
  readonly owes: boolean
  /** Half a line was lost with its last shell: the rest may follow. */
  readonly isCut: boolean
  /** Others ran a line while it was held. */
  readonly hasMissed: boolean
  /** A line is half typed there. */
  readonly isHalf: boolean
  readonly isBeside: boolean
}
const FIRST: Shell = {
  isUp: true,
  opened: 0,
  firstLine: Infinity,
  owes: false,
  isCut: false,
  hasMissed: false,
  isHalf: false,
  isBeside: true,
}

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const on = (kind: (typeof ON_HOST)[number], host: Host): Step => ({ kind, host })
const half: Step = { kind: 'half' }
const line: Step = { kind: 'line' }
const alone = [on('only', 'm1'), half, on('only', 'm3'), line]
const renewed = [on('lose', 'm1'), on('back', 'm1')]
/** What random steps seldom are: a line was half typed before another host got one. */
const RARE: readonly Step[][] = [
  [...alone, on('only', 'm1'), ...renewed, half],
  [...alone, on('only', 'm1'), { kind: 'enter' }, ...renewed, line],
  [...alone, ...renewed, on('only', 'm1'), half],
]

it('gets no keys alone, nor beside shells that ran something before it opened', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const harness = createConsoleHarness({ hosts: [...HOSTS], size: { columns: 120, rows: 40 } })
      const { console, fleet, type, print, clock } = harness
      const prompt = (name: string) => print(name, `\r\nroot@${name}:~# `)
      let turn = 0
      const shells = new Map<Host, Shell>()
      const shell = (name: Host): Shell => shells.get(name) ?? FIRST
      const end = (name: Host, isLost: boolean) => {
        const own = shell(name)
        if (!own.isUp || !console.state.hosts.has(name)) return
        const hadLine = own.firstLine < Infinity
        const isCut = own.isHalf && !console.state.receivers.has(name)
        shells.set(name, {
          ...own,
          isUp: false,
          firstLine: Infinity,
          owes: own.owes || hadLine || isCut,
          isCut: own.isCut || own.isHalf,
          isHalf: false,
          hasMissed: false,
          isBeside: own.isBeside && !hadLine,
        })
        fleet.away.set(name, 'it is not connected')
        const reason = isLost ? ({ kind: 'lost', reason: 'reset' } as const) : ({ kind: 'exit', code: 0 } as const)
        fleet.events.emit({ type: 'shell', host: name, state: { kind: 'ended', end: reason } })
      }
      const send = async (text: string) => {
        fleet.received.clear()
        const held = HOSTS.filter((name) => shell(name).isUp && console.state.hosts.get(name)?.isLate)
        type(text)
        const got = HOSTS.filter((name) => fleet.received.has(name))
        const said = () => fc.stringify(steps)
        for (const name of got) {
          const own = shell(name)
          expect(own.owes, `${name} was lost with what it ran: ${said()}`).toBe(false)
          // Beside a shell with an empty line, a new line begins.
          const isNewLine = got.some((other) => other !== name && !shell(other).isHalf && !shell(other).isCut)
          const isRest = fleet.received.get(name) === text.slice(text.indexOf('\r') + 1) && text.indexOf('\r') >= 0
          if (!isNewLine && !isRest) expect(own.isCut, `${name} lacks the beginning of a line: ${said()}`).toBe(false)
          expect(own.hasMissed, `${name} has missed a line: ${said()}`).toBe(false)
          const older = got.filter((other) => shell(other).firstLine < own.opened)
          if (!own.isBeside) expect(older, `${name} is newer: ${said()}`).toEqual([])
        }
        if (text !== 'x')
          for (const name of HOSTS)
            if (console.state.receivers.has(name)) shells.set(name, { ...shell(name), isCut: false })
        turn += 1
        const runsLine = (name: Host) => {
          const own = fleet.received.get(name) ?? ''
          return own.includes('\r') && (shell(name).isHalf || own.length > 1)
        }
        if (got.some(runsLine))
          for (const name of held) if (!got.includes(name)) shells.set(name, { ...shell(name), hasMissed: true })
        for (const name of got) {
          const own = shell(name)
          const isLine = runsLine(name)
          const isHalf = text.endsWith('x')
          shells.set(name, { ...own, isHalf, firstLine: isLine ? Math.min(own.firstLine, turn) : own.firstLine })
          const typed = isHalf ? 'x' : ''
          if (text !== 'x') await print(name, `${text.slice(0, text.length - typed.length)}\nroot@${name}:~# ${typed}`)
        }
      }
      const select = (hosts: readonly Host[]) => {
        const known = hosts.filter((name) => console.state.hosts.has(name))
        if (known.length > 0) type(`${LEADER}/${known.join()}\r`)
      }
      for (const name of HOSTS) await prompt(name)
      for (const one of steps) {
        expect(console.state.mode.kind).not.toBe('dialog')
        const oldest = HOSTS.filter((name) => shell(name).opened === 0 && shell(name).isUp)
        expect(
          oldest.filter((name) => console.state.hosts.get(name)?.isLate),
          'never new',
        ).toEqual([])
        if (one.kind in KEYS) await send(KEYS[one.kind as keyof typeof KEYS])
        else if (one.kind === 'all') {
          const late = lateReceivers(console.state) as Host[]
          for (const name of late) {
            const isBeside = shell(name).isBeside || getsKeysBeside(console.state, name)
            shells.set(name, { ...shell(name), owes: false, isCut: false, hasMissed: false, isBeside })
          }
          type(`${LEADER}a`)
          if (late.length > 0) expect(lateReceivers(console.state), 'after a').toEqual([])
        } else if (one.kind === 'none') type(`${LEADER}n`)
        else if (one.kind === 'invert') type(`${LEADER}i`)
        else if (one.kind === 'solo') type(`${LEADER}s`)
        else if (one.kind === 'different') type(`${LEADER}f`)
        else if (one.kind === 'rest') clock.advance(1000)
        else if (one.kind === 'lose') end(one.host, true)
        else if (one.kind === 'exit') end(one.host, false)
        else if (one.kind === 'only') select([one.host])
        else if (one.kind === 'others') select(HOSTS.filter((name) => name !== one.host))
        else if (one.kind === 'toggle' && console.state.hosts.has(one.host)) {
          console.change(() => ({ focus: one.host }))
          type(`${LEADER} `)
          type('\x1b')
        } else if (one.kind === 'close' && console.state.hosts.has(one.host)) {
          // The user knows that the next shell is new.
          const own = shell(one.host)
          const isBeside = own.isBeside && own.firstLine === Infinity
          shells.set(one.host, { ...FIRST, isUp: false, isBeside })
          fleet.away.set(one.host, 'closed')
          console.removeHosts([one.host])
        } else if (one.kind === 'add' && !console.state.hosts.has(one.host)) {
          turn += 1
          shells.set(one.host, { ...shell(one.host), isUp: true, opened: turn })
          fleet.away.delete(one.host)
          console.addHosts([endpointOf(one.host, 1 + HOSTS.indexOf(one.host))])
          await prompt(one.host)
        } else if (one.kind === 'back' && console.state.hosts.has(one.host) && !shell(one.host).isUp) {
          turn += 1
          shells.set(one.host, { ...shell(one.host), isUp: true, opened: turn })
          fleet.away.delete(one.host)
          fleet.up(one.host)
          await prompt(one.host)
        }
      }
      console[Symbol.dispose]()
    }),
    { numRuns: 200, examples: RARE.map((steps) => [steps]) },
  )
})
