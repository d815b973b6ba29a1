import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { TtyWriter } from '../../../../src/ui/tty/tty-writer.ts'

/** A terminal that takes a frame when the test says so. */
class SlowTerminal extends Writable {
  readonly taken: string[] = []
  #accept: (() => void)[] = []

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#accept.push(() => {
      this.taken.push(chunk.toString())
      done()
    })
  }

  accept(): void {
    this.#accept.shift()?.()
  }
}

class FastTerminal extends Writable {
  readonly taken: string[] = []

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.taken.push(chunk.toString())
    done()
  }
}

const frame = (text: string) => Buffer.from(text)

function open(terminal: Writable) {
  const writer = new TtyWriter(terminal)
  const log: string[] = []
  writer.onDrain(() => log.push('drain'))
  writer.onGone(() => log.push('gone'))
  return { writer, log }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('the writer to the terminal', () => {
  it('is ready at once if the terminal accepted the whole frame', async () => {
    const terminal = new FastTerminal()
    const { writer, log } = open(terminal)
    expect(writer.write(frame('one'))).toBe(true)
    expect(writer.isDraining).toBe(false)
    await nextTurn()
    expect(log).toEqual([])
    expect(terminal.taken).toEqual(['one'])
  })

  it('drains until the terminal has accepted the frame, and reports it once', async () => {
    const terminal = new SlowTerminal()
    const { writer, log } = open(terminal)
    expect(writer.write(frame('one'))).toBe(false)
    expect(writer.isDraining).toBe(true)
    terminal.accept()
    await nextTurn()
    expect(writer.isDraining).toBe(false)
    expect(log).toEqual(['drain'])
  })

  it('loses nothing of a caller that does not wait, and drains only after the last frame', async () => {
    const terminal = new SlowTerminal()
    const { writer, log } = open(terminal)
    writer.write(frame('one'))
    writer.write(frame('two'))
    terminal.accept()
    await nextTurn()
    expect(log).toEqual([])
    terminal.accept()
    await nextTurn()
    expect(log).toEqual(['drain'])
    expect(terminal.taken).toEqual(['one', 'two'])
  })

  it('may be written to from within the drain', async () => {
    const terminal = new SlowTerminal()
    const { writer, log } = open(terminal)
    const subscription = writer.onDrain(() => writer.write(frame('two')))
    writer.write(frame('one'))
    terminal.accept()
    await nextTurn()
    expect(writer.isDraining).toBe(true)
    subscription[Symbol.dispose]()
    terminal.accept()
    await nextTurn()
    expect(log).toEqual(['drain', 'drain'])
    expect(terminal.taken).toEqual(['one', 'two'])
  })

  it('counts the bytes it accepted', () => {
    const { writer } = open(new FastTerminal())
    writer.write(frame('four'))
    writer.write(frame('ä'))
    expect(writer.bytesWritten).toBe(6)
  })

  it('drops frames while suspended and asks for a new one when it resumes', () => {
    const terminal = new FastTerminal()
    const { writer, log } = open(terminal)
    writer.suspend(frame('last'))
    expect(writer.write(frame('dropped'))).toBe(false)
    expect(writer.isDraining).toBe(true)
    writer.resume()
    expect(log).toEqual(['drain'])
    expect(writer.write(frame('drawn'))).toBe(true)
    expect(terminal.taken).toEqual(['last', 'drawn'])
    expect(writer.bytesWritten).toBe('lastdrawn'.length)
  })

  it('suspends once', () => {
    const terminal = new FastTerminal()
    const { writer } = open(terminal)
    writer.suspend(frame('last'))
    writer.suspend(frame('again'))
    expect(terminal.taken).toEqual(['last'])
  })

  it('reports nothing about a frame in flight when it was suspended', async () => {
    const terminal = new SlowTerminal()
    const { writer, log } = open(terminal)
    writer.write(frame('one'))
    writer.suspend(new Uint8Array(0))
    terminal.accept()
    await nextTurn()
    expect(log).toEqual([])
  })

  it('ends quietly when the terminal has vanished', async () => {
    const terminal = new FastTerminal()
    const { writer, log } = open(terminal)
    terminal.destroy(Object.assign(new Error('write EIO'), { code: 'EIO' }))
    await nextTurn()
    expect(log).toEqual(['gone'])
    expect(writer.write(frame('one'))).toBe(false)
    expect(writer.isDraining).toBe(true)
    writer.suspend(new Uint8Array(0))
    writer.resume()
    expect(log).toEqual(['gone'])
  })

  it('leaves nothing on the stream when it is disposed of', () => {
    const terminal = new FastTerminal()
    const { writer } = open(terminal)
    writer[Symbol.dispose]()
    expect(terminal.listenerCount('error')).toBe(0)
    expect(writer.write(frame('one'))).toBe(false)
    expect(terminal.taken).toEqual([])
  })
})
