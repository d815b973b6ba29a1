/** A program's work in the keeper: its streams, which end at the program, and what it says of them. */
import { Readable, Writable } from 'node:stream'
import { FRAME_KINDS, type KeeperLink, OutgoingWindow } from './link.ts'
import { type FromKeeper, type KeeperWork, type ToKeeper, WORK_CHANNELS } from './messages.ts'

/** What the work has in place of a process's own streams. */
export type WorkStreams = {
  /** Gets a line at each Enter. To read it before the work is accepted is to decline the work. */
  readonly stdin: Readable & { readonly isTTY: boolean }
  readonly stdout: WorkOutput
  readonly stderr: WorkOutput
  /** Aborted when the program is interrupted or gone. */
  readonly signal: AbortSignal
  /** From here on the work is done here, and printed. */
  accept(): void
  /** The program does the work itself: nothing was done, and what was printed is dropped. */
  decline(): void
}

/** Resolves to the exit code. Never rejects. */
export type DoWork = (request: KeeperWork, streams: WorkStreams) => Promise<number>

type Link = KeeperLink<ToKeeper, FromKeeper>

/** What waits in it before the program has taken what came before. */
const HIGH_WATER_BYTES = 16 * 1024

/** A stream of the program. Holds everything back until the work is accepted. */
export class WorkOutput extends Writable {
  readonly isTTY: boolean
  /** 0: unknown, or no terminal. */
  columns = 0
  rows = 0
  readonly #send: (bytes: Uint8Array) => void
  readonly #window = new OutgoingWindow()
  #isOpen = false
  #next: (() => void) | undefined

  constructor(isTTY: boolean, send: (bytes: Uint8Array) => void) {
    super({ highWaterMark: HIGH_WATER_BYTES })
    this.isTTY = isTTY
    this.#send = send
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const write = () => {
      this.#send(bytes)
      if (this.#window.take(bytes.length)) done()
      else this.#next = done
    }
    if (this.#isOpen) write()
    else this.#next = write
  }

  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#continue()
  }

  handleCredit(sizeBytes: number): void {
    if (this.#window.give(sizeBytes)) this.#continue()
  }

  #continue(): void {
    const next = this.#next
    this.#next = undefined
    next?.()
  }
}

export class ServedWork {
  readonly #link: Link
  readonly #abort = new AbortController()
  readonly #stdin: Readable & { readonly isTTY: boolean }
  readonly #stdout: WorkOutput
  readonly #stderr: WorkOutput
  #isAccepted = false
  #isDeclined = false

  constructor(link: Link, request: KeeperWork, doWork: DoWork) {
    this.#link = link
    const { terminal } = request
    this.#stdin = Object.assign(new Readable({ read: () => this.#handleRead() }), { isTTY: terminal.stdin })
    this.#stdout = new WorkOutput(terminal.stdout, (bytes) =>
      link.sendBytes(FRAME_KINDS.stdout, WORK_CHANNELS.stdout, bytes),
    )
    this.#stderr = new WorkOutput(terminal.stderr, (bytes) =>
      link.sendBytes(FRAME_KINDS.stderr, WORK_CHANNELS.stderr, bytes),
    )
    // The program reports them to its user.
    for (const stream of [this.#stdin, this.#stdout, this.#stderr]) stream.on('error', () => {})
    this.#setSize(terminal)
    void this.#run(request, doWork)
  }

  handleMessage(message: ToKeeper): void {
    if (message.type === 'interrupt') this.#abort.abort(message.reason)
    else if (message.type === 'enter') this.#stdin.push('\n')
    else if (message.type === 'terminal-size') this.#setSize(message)
    else if (message.type === 'continued') this.#stderr.emit('continued')
    else if (message.type === 'unwritable') {
      const { message: text, code } = message
      this.#stdout.destroy(Object.assign(new Error(text), code === undefined ? {} : { code }))
    }
  }

  handleCredit(channel: number, sizeBytes: number): void {
    if (channel === WORK_CHANNELS.stdout) this.#stdout.handleCredit(sizeBytes)
    else if (channel === WORK_CHANNELS.stderr) this.#stderr.handleCredit(sizeBytes)
  }

  /** The program has gone. */
  leave(): void {
    this.#abort.abort('SIGHUP')
    for (const stream of [this.#stdin, this.#stdout, this.#stderr]) stream.destroy()
  }

  async #run(request: KeeperWork, doWork: DoWork): Promise<void> {
    const exitCode = await doWork(request, {
      stdin: this.#stdin,
      stdout: this.#stdout,
      stderr: this.#stderr,
      signal: this.#abort.signal,
      accept: () => this.#accept(),
      decline: () => {
        this.#isDeclined = true
      },
    })
    if (this.#isDeclined) return this.#link.send({ type: 'declined' })
    this.#accept()
    await Promise.all([ended(this.#stdout), ended(this.#stderr)])
    this.#link.send({ type: 'done', exitCode })
  }

  /** Before it is accepted, work reads stdin for what only the program has. */
  #handleRead(): void {
    if (this.#isAccepted) return
    this.#isDeclined = true
    this.#stdin.destroy(new Error('stdin belongs to the program'))
  }

  #accept(): void {
    if (this.#isAccepted) return
    this.#isAccepted = true
    this.#link.send({ type: 'accepted' })
    this.#stdout.open()
    this.#stderr.open()
  }

  #setSize({ columns, rows }: { readonly columns: number; readonly rows: number }): void {
    for (const stream of [this.#stdout, this.#stderr]) {
      if (!stream.isTTY) continue
      stream.columns = columns
      stream.rows = rows
    }
  }
}

/** Everything in it was sent, or nothing more can be. */
async function ended(stream: Writable): Promise<void> {
  if (stream.destroyed) return
  await new Promise<void>((resolve) => {
    stream.once('close', resolve)
    stream.end()
  })
}
