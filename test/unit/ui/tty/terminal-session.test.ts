import { EventEmitter } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import {
  enterSequence,
  enterTerminal,
  FATAL_LIMIT_MS,
  leaveSequence,
  type TerminalOptions,
} from '../../../../src/ui/tty/terminal-session.ts'
import { TtyWriter } from '../../../../src/ui/tty/tty-writer.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const ENTER = enterSequence({ mouse: true }).toString()
const LEAVE = leaveSequence({ mouse: true }).toString()

class FakeTerminal extends Writable {
  columns = 80
  rows = 24
  readonly log: string[]

  constructor(log: string[]) {
    super()
    this.log = log
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const text = chunk.toString()
    this.log.push(text === ENTER ? 'enter' : text === LEAVE ? 'leave' : text)
    done()
  }
}

class FakeKeyboard extends PassThrough {
  isRaw = false
  readonly log: string[]

  constructor(log: string[]) {
    super()
    this.log = log
  }

  setRawMode(isRaw: boolean): void {
    this.isRaw = isRaw
    this.log.push(isRaw ? 'raw' : 'cooked')
  }
}

class FakeProcess extends EventEmitter {
  readonly pid = 4711
  readonly log: string[]
  readonly stderr = { write: (text: string) => this.log.push(`stderr: ${text}`) }

  constructor(log: string[]) {
    super()
    this.log = log
  }

  kill(pid: number, signal: string): void {
    this.log.push(`kill ${pid} ${signal}`)
  }

  exit(code: number): void {
    this.log.push(`exit ${code}`)
    this.emit('exit', code)
  }
}

/** What happened to the terminal and the process, in order. */
function open(given: Partial<TerminalOptions> = {}) {
  const log: string[] = []
  const clock = new ManualClock()
  const stdin = new FakeKeyboard(log)
  const stdout = new FakeTerminal(log)
  const host = new FakeProcess(log)
  const writer = new TtyWriter(stdout)
  const session = enterTerminal({
    stdin,
    stdout,
    writer,
    mouse: true,
    onInput: (bytes) => log.push(`input ${Buffer.from(bytes)}`),
    onResize: (columns, rows) => log.push(`resize ${columns}x${rows}`),
    onResume: () => log.push('resumed'),
    process: host,
    clock,
    ...given,
  })
  return { log, clock, stdin, stdout, host, writer, session }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
const ENTERED = ['raw', 'enter']
const LEFT = ['leave', 'cooked']

describe('the terminal of a console', () => {
  it('is entered and restored once', () => {
    const { log, session } = open()
    session[Symbol.dispose]()
    session[Symbol.dispose]()
    expect(log).toEqual([...ENTERED, ...LEFT])
  })

  it('undoes in its leave sequence every mode of its enter sequence', () => {
    for (const mouse of [true, false]) {
      const modesOf = (bytes: Buffer, final: string) =>
        [...bytes.toString().matchAll(/\x1b\[\?(\d+)([hl])/g)]
          .filter((match) => match[2] === final)
          .map(([, mode]) => mode)
      const isOff = new Set(modesOf(leaveSequence({ mouse }), 'l'))
      const isOn = modesOf(enterSequence({ mouse }), 'h')
      expect(isOn).toContain('1049')
      expect(isOn.includes('1002')).toBe(mouse)
      expect(isOn.filter((mode) => !isOff.has(mode as string))).toEqual([])
      // What is on at any other time.
      expect(modesOf(enterSequence({ mouse }), 'l').toSorted()).toEqual(['25', '7'])
      expect(modesOf(leaveSequence({ mouse }), 'h').toSorted()).toEqual(['25', '7'])
    }
  })

  it('stays raw if it was raw before', () => {
    const log: string[] = []
    const stdin = new FakeKeyboard(log)
    stdin.isRaw = true
    const { session } = open({ stdin })
    session[Symbol.dispose]()
    expect(stdin.isRaw).toBe(true)
  })

  it('passes on bytes and sizes until it is restored', async () => {
    const { log, stdin, stdout, session } = open()
    stdin.write('a\u001b[A')
    await nextTurn()
    Object.assign(stdout, { columns: 120, rows: 40 }).emit('resize')
    session[Symbol.dispose]()
    stdin.write('b')
    stdout.emit('resize')
    await nextTurn()
    expect(log).toEqual([...ENTERED, 'input a\u001b[A', 'resize 120x40', ...LEFT])
  })

  it('leaves no listener behind', () => {
    const { stdin, stdout, host, writer, session } = open()
    session[Symbol.dispose]()
    writer[Symbol.dispose]()
    expect(host.eventNames()).toEqual([])
    expect(stdout.listenerCount('resize')).toBe(0)
    expect(stdin.listenerCount('data')).toBe(0)
  })

  it('drops frames that are drawn after it was restored', () => {
    const { log, writer, host } = open({ onFatal: () => {} })
    host.emit('SIGTERM')
    writer.write(Buffer.from('a late frame'))
    expect(log).toEqual([...ENTERED, ...LEFT])
  })
})

describe('a program that is stopped from outside', () => {
  it.each([
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGQUIT', 131],
    ['SIGTERM', 143],
  ])('restores the terminal on %s and exits with %i', (signal, code) => {
    const { log, host } = open()
    host.emit(signal)
    expect(log).toEqual([...ENTERED, ...LEFT, `exit ${code}`])
  })

  it('ends after the time limit if nothing disposes of it', () => {
    const { log, host, clock } = open({ onFatal: () => {} })
    host.emit('SIGTERM')
    clock.advance(FATAL_LIMIT_MS - 1)
    expect(log).toEqual([...ENTERED, ...LEFT])
    clock.advance(1)
    expect(log.at(-1)).toBe('exit 143')
  })

  it('ends at once at the second signal, with the code of the first', () => {
    const { log, host } = open({ onFatal: () => {} })
    host.emit('SIGTERM')
    host.emit('SIGINT')
    expect(log).toEqual([...ENTERED, ...LEFT, 'exit 143'])
  })

  it('restores the terminal first, and ends in the turn after it was disposed of', async () => {
    const { log, host, session, clock } = open({ onFatal: () => void log.push('closing') })
    host.emit('SIGHUP')
    session[Symbol.dispose]()
    expect(log).toEqual([...ENTERED, ...LEFT, 'closing'])
    await nextTurn()
    expect(log.at(-1)).toBe('exit 129')
    expect(clock.timerCount).toBe(0)
  })

  it('ends also when closing the console fails, and says why', () => {
    const onFatal = () => {
      throw new Error('no room')
    }
    const { log, host } = open({ onFatal })
    host.emit('SIGTERM')
    expect(log.at(-2)).toContain('Error: no room')
    expect(log.at(-1)).toBe('exit 143')
  })

  it.each(['uncaughtException', 'unhandledRejection'])('says on stderr why it crashed (%s), after leaving', (event) => {
    const { log, host } = open()
    host.emit(event, new Error('a\u001b]52;c;aGk=\u0007b'))
    expect(log.slice(0, 4)).toEqual([...ENTERED, ...LEFT])
    expect(log[4]).toContain('a\\x1b]52;c;aGk=\\x07b')
    expect(log[4]).not.toContain('\u001b')
    expect(log[5]).toBe('exit 1')
  })

  it('ends as after a hang-up when the keyboard has vanished', async () => {
    const { log, stdin } = open()
    stdin.end()
    await nextTurn()
    expect(log).toEqual([...ENTERED, ...LEFT, 'exit 129'])
  })

  it('ends as after a hang-up when the screen has vanished', async () => {
    const { log, stdout } = open()
    stdout.destroy(Object.assign(new Error('write EIO'), { code: 'EIO' }))
    await nextTurn()
    expect(log.at(-1)).toBe('exit 129')
  })

  it('restores the terminal when something else ends the process', () => {
    const { log, host } = open()
    host.exit(3)
    expect(log).toEqual([...ENTERED, 'exit 3', ...LEFT])
  })
})

describe('a program that is suspended', () => {
  it('restores the terminal, stops, and takes it over again when it continues', () => {
    const { log, host } = open()
    host.emit('SIGTSTP')
    host.emit('SIGCONT')
    expect(log).toEqual([...ENTERED, ...LEFT, 'kill 4711 SIGSTOP', ...ENTERED, 'resumed'])
  })

  it('takes over the terminal again after it was stopped without notice', () => {
    const { log, host } = open()
    host.emit('SIGCONT')
    expect(log).toEqual([...ENTERED, ...LEFT, ...ENTERED, 'resumed'])
  })

  it('asks for the size when it continues, because it was not notified in the background', () => {
    const { log, stdout, host } = open()
    Object.assign(stdout, { _refreshSize: () => stdout.emit('resize') })
    host.emit('SIGTSTP')
    Object.assign(stdout, { columns: 100, rows: 30 })
    host.emit('SIGCONT')
    expect(log.slice(-2)).toEqual(['resize 100x30', 'resumed'])
  })

  it('reports a resize that comes before it continues once it has continued', () => {
    const { log, stdout, host } = open()
    host.emit('SIGTSTP')
    Object.assign(stdout, { columns: 100, rows: 30 }).emit('resize')
    host.emit('SIGCONT')
    expect(log.slice(-2)).toEqual(['resize 100x30', 'resumed'])
    expect(log.filter((line) => line.startsWith('resize'))).toHaveLength(1)
  })

  it('does not restore the terminal twice', () => {
    const { log, host } = open()
    host.emit('SIGTSTP')
    host.emit('SIGTSTP')
    host.emit('SIGTERM')
    expect(log).toEqual([...ENTERED, ...LEFT, 'kill 4711 SIGSTOP', 'exit 143'])
  })

  it('does not continue after its end', () => {
    const { log, host } = open({ onFatal: () => {} })
    host.emit('SIGTERM')
    host.emit('SIGCONT')
    expect(log).toEqual([...ENTERED, ...LEFT])
  })
})
