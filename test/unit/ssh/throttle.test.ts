import { describe, expect, it } from 'vitest'
import { SessionSlots, Throttle, TooManySessions } from '../../../src/ssh/ssh2/session-slots.ts'
import { waitUntil } from '../../support/wait-until.ts'

const LIVE = new AbortController().signal

describe('the throttle of handshakes', () => {
  it('admits no more than its limit at once, and each in turn', async () => {
    const throttle = new Throttle(2)
    const entered: number[] = []
    const leaves: (() => void)[] = []
    const all = [0, 1, 2, 3].map(async (index) => {
      const leave = await throttle.enter('s', LIVE)
      entered.push(index)
      leaves.push(leave)
    })
    await waitUntil(() => entered.length === 2, 'two to enter')
    leaves[0]?.()
    leaves[0]?.()
    await waitUntil(() => entered.length >= 3, 'the third')
    expect(entered).toEqual([0, 1, 2])
    leaves[1]?.()
    await Promise.all(all)
    expect(entered).toEqual([0, 1, 2, 3])
  })

  it('counts servers separately', async () => {
    const throttle = new Throttle(1)
    await throttle.enter('a', LIVE)
    await expect(throttle.enter('b', LIVE)).resolves.toBeTypeOf('function')
  })

  it('forgets one that stops waiting', async () => {
    const throttle = new Throttle(1)
    const leave = await throttle.enter('s', LIVE)
    const abort = new AbortController()
    const given = throttle.enter('s', abort.signal)
    const next = throttle.enter('s', LIVE)
    abort.abort(new Error('enough'))
    await expect(given).rejects.toThrow('enough')
    leave()
    await expect(next).resolves.toBeTypeOf('function')
  })
})

describe('session slots', () => {
  const noWait = async () => {}
  const refused = new Error('open failed')
  const isLimit = (error: unknown) => error === refused
  /** A server that carries so many sessions on one connection. */
  function server(limit: number) {
    let open = 0
    return {
      open: async () => {
        if (open >= limit) throw refused
        open += 1
        return () => {
          open -= 1
        }
      },
    }
  }

  it('queue commands beyond what the server carries', async () => {
    const slots = new SessionSlots(noWait)
    const { open } = server(2)
    let running = 0
    let highest = 0
    const command = async () => {
      const slot = await slots.acquire('command', open, isLimit)
      running += 1
      highest = Math.max(highest, running)
      await Promise.resolve()
      running -= 1
      slot.value()
      slot.release()
    }
    await Promise.all(Array.from({ length: 20 }, command))
    expect(highest).toBe(2)
    expect(running).toBe(0)
  })

  it('refuse a command if only shells are in the way', async () => {
    const slots = new SessionSlots(noWait)
    const { open } = server(1)
    await slots.acquire('shell', open, isLimit)
    await expect(slots.acquire('command', open, isLimit)).rejects.toBeInstanceOf(TooManySessions)
  })

  it('refuse all simultaneous commands if something lasting is in the way', async () => {
    const slots = new SessionSlots(noWait)
    const { open } = server(1)
    await slots.acquire('lasting', open, isLimit)
    const commands = await Promise.allSettled([1, 2, 3].map(() => slots.acquire('command', open, isLimit)))
    expect(commands.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  })

  it('refuse at once a command that waits for no other, whether the limit is known or not', async () => {
    const slots = new SessionSlots(noWait)
    const { open } = server(1)
    const command = await slots.acquire('command', open, isLimit)
    for (const _ of ['learnt now', 'known']) {
      await expect(slots.acquire('extra', open, isLimit)).rejects.toBeInstanceOf(TooManySessions)
    }
    command.value()
    command.release()
    await expect(slots.acquire('extra', open, isLimit)).resolves.toBeDefined()
  })

  it('give a shell the place of a command that has ended', async () => {
    const slots = new SessionSlots(noWait)
    const { open } = server(1)
    const command = await slots.acquire('command', open, isLimit)
    const shell = slots.acquire('shell', open, isLimit)
    command.value()
    command.release()
    await expect(shell).resolves.toBeDefined()
  })

  it('ask again if the server has not noticed an end yet', async () => {
    const waits: number[] = []
    const slots = new SessionSlots(async (ms) => {
      waits.push(ms)
    })
    ;(await slots.acquire('command', async () => {}, isLimit)).release()
    let refusals = 3
    const open = async () => {
      refusals -= 1
      if (refusals >= 0) throw refused
      return 'open'
    }
    expect((await slots.acquire('command', open, isLimit)).value).toBe('open')
    expect(waits).toEqual([20, 40, 80])
  })

  it('pass other failures on', async () => {
    const other = new Error('prohibited')
    await expect(new SessionSlots(noWait).acquire('shell', () => Promise.reject(other), isLimit)).rejects.toBe(other)
  })
})
