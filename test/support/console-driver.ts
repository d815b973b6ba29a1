/**
 * Drives the real program in a pseudo-terminal and reads like prose:
 *
 *   await using console = await openConsole({ args: ['--hosts', file], size: [120, 40] })
 *   await console.receivers('m[1-3]')
 *   await console.type('uptime\r')
 *   await console.expectOn('m2', /load average/)
 *
 * It never sleeps: it waits until the program says that it has handled every byte typed and is idle, and asks its question
 * again at each new state and each change of the screen. What fails prints the screen.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning } from '../../src/base/processes.ts'
import type { Pty } from '../../src/base/pty.ts'
import { textWidth } from '../../src/base/text-width.ts'
import { spawnLocalPty } from '../../src/terminal/local-pty.ts'
import { type ConsoleOptions, environmentOf, PROGRAM, ROOT } from './console-options.ts'
import { keyBytes, type MouseAction, mouseBytes, pasteBytes } from './key-names.ts'
import { type ObservedPane, type ObservedState, ObserverSocket } from './observer-socket.ts'
import { type Rect, type ShownCell, type TerminalModes, UserTerminal } from './user-terminal.ts'
import { waitUntil } from './wait-until.ts'

/** Nothing may take so long: a wait that is over is a failure, and not a test without an end. */
const DEADLINE_MS = 60_000
/** The end of a line on which a shell waits for a command. */
const PROMPT = /[#$>]$/
const LEADER = 'Ctrl-]'
const TAKES_THE_TERMINAL = '\x1b[?1049h'

/** As `PtyHandlers.onExit` reports it. */
export type Ending = { readonly code: number } | { readonly signal: string }
export type Expectation = {
  readonly timeoutMs?: number
  /** Look although the program is not idle: under a flood it never is. */
  readonly whileBusy?: boolean
}

export async function openConsole(options: ConsoleOptions = {}): Promise<ConsoleDriver> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-driver-'))
  const socketPath = join(directory, 'observer.sock')
  const observer = await ObserverSocket.listen(socketPath)
  const console = new ConsoleDriver(options, observer, directory, socketPath)
  const { until = 'shells' } = options
  try {
    if (until !== false) await console.until(() => console.state?.mode === until, `the mode ${until}`)
  } catch (error) {
    await console.close()
    throw error
  }
  return console
}

export class ConsoleDriver implements AsyncDisposable {
  readonly #pty: Pty
  readonly #terminal: UserTerminal
  readonly #observer: ObserverSocket
  readonly #directory: string
  readonly #waiters = new Set<() => void>()
  readonly #chunks: Uint8Array[] = []
  #sentBytes = 0
  #receivedBytes = 0
  #plainBytes: number | undefined
  #ending: Ending | undefined

  constructor(options: ConsoleOptions, observer: ObserverSocket, directory: string, socketPath: string) {
    const [columns, rows] = options.size ?? [120, 40]
    const argv = [...(options.program ?? PROGRAM), ...(options.args ?? [])]
    const [file = '', ...args] = options.in?.command(argv) ?? argv
    const environment = environmentOf(options, socketPath)
    this.#directory = directory
    this.#observer = observer
    this.#terminal = new UserTerminal(columns, rows)
    const handlers = {
      onData: (bytes: Uint8Array) => {
        this.#chunks.push(bytes)
        this.#receivedBytes += bytes.length
        // What was printed before the console took the terminal.
        if (this.#plainBytes === undefined) {
          const at = Buffer.concat(this.#chunks).indexOf(TAKES_THE_TERMINAL)
          if (at >= 0) this.#plainBytes = at
        }
        this.#terminal.write(bytes)
      },
      onExit: (ending: Ending) => {
        this.#ending = ending
        this.#wake()
      },
    }
    this.#pty = spawnLocalPty(
      { file, args, columns, rows, term: 'xterm-256color', environment, directory: options.directory ?? ROOT },
      handlers,
    )
    this.#terminal.onChange = () => this.#wake()
    this.#terminal.onReply = (text) => this.#pty.write(Buffer.from(text))
    observer.onState = () => this.#wake()
  }

  /** What the program last said of itself. */
  get state(): ObservedState | undefined {
    return this.#observer.state
  }

  get pid(): number {
    return this.#pty.pid
  }

  get modes(): TerminalModes {
    return this.#terminal.modes
  }

  get ending(): Ending | undefined {
    return this.#ending
  }

  /** Every byte that the program has written. */
  output(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  /** The screen, row after row. */
  screen(): string[] {
    return this.#terminal.lines()
  }

  /** The cells of a rectangle, or of the whole screen. */
  cells(rect?: Rect): ShownCell[][] {
    return this.#terminal.cells(rect)
  }

  /** The pane that shows a host; an error that names the panes there are when it is not on this page. */
  pane(host: string): ObservedPane {
    const pane = this.#findPane(host)
    if (pane === undefined) throw this.#failure(`no pane shows ${host}`)
    return pane
  }

  /** The text inside a host's pane. */
  on(host: string): string[] {
    return this.#terminal.lines(this.pane(host))
  }

  /** A `y` alone is an answer: it comes when it is no longer taken for the rest of a word. */
  async type(text: string): Promise<this> {
    if (text === 'y') await this.#untilAnswer()
    await this.#send(text)
    return this
  }

  async #untilAnswer(): Promise<void> {
    if (this.state?.isInWord === true) await this.until(({ isInWord }) => !isInWord, 'y to be an answer')
  }

  /** Keys by name, one after the other, each handled before the next: `key('Ctrl-]', 's')`. */
  async key(...names: readonly string[]): Promise<this> {
    for (const name of names) {
      if (name === 'y') await this.#untilAnswer()
      await this.#send(keyBytes(name))
    }
    return this
  }

  /** A key of the leader's table. */
  async leader(...names: readonly string[]): Promise<this> {
    return await this.key(LEADER, ...names)
  }

  /** Types on the plain terminal, before there is a console, so it does not count as the console's input. */
  answer(text: string): void {
    this.#pty.write(Buffer.from(text))
  }

  async paste(text: string): Promise<this> {
    await this.#send(pasteBytes(text))
    return this
  }

  async mouse(action: MouseAction, column: number, row: number): Promise<this> {
    await this.#send(mouseBytes(action, column, row))
    return this
  }

  /** A press and a release of the left button in the middle of a text on the screen; `times`: 2 for a double click. */
  async click(text: string, times = 1): Promise<this> {
    await this.settled()
    const row = this.screen().findIndex((line) => line.includes(text))
    if (row < 0) throw this.#failure(`“${text}” is not on the screen`)
    const before = this.screen()[row]?.slice(0, this.screen()[row]?.indexOf(text)) ?? ''
    const column = textWidth(before) + Math.floor(textWidth(text) / 2)
    const both = mouseBytes('press', column, row) + mouseBytes('release', column, row)
    await this.#send(both.repeat(times))
    return this
  }

  /** Marks cells of a pane with the left button; columns and rows count from 0 inside it, both ends included. */
  async drag(host: string, from: readonly [number, number], to: readonly [number, number]): Promise<this> {
    const { column, row } = this.pane(host)
    const at = ([x, y]: readonly [number, number]) => [column + x, row + y] as const
    await this.#send(
      mouseBytes('press', ...at(from)) + mouseBytes('drag', ...at(to)) + mouseBytes('release', ...at(to)),
    )
    return this
  }

  /** What the program has put on the clipboard (OSC 52), oldest first. */
  copied(): string[] {
    return [
      ...this.output()
        .toString('latin1')
        .matchAll(/\x1b\]52;c;([A-Za-z0-9+/=]*)(?:\x07|\x1b\\)/g),
    ].map(([, text]) => Buffer.from(text ?? '', 'base64').toString())
  }

  /** Chooses who receives, by a host set expression. */
  async receivers(expression: string): Promise<this> {
    await this.leader('/')
    await this.type(expression)
    await this.key('Enter')
    await this.until((state) => state.mode === 'shells', `the receivers ${expression} to be taken`)
    return this
  }

  async resize(columns: number, rows: number): Promise<this> {
    const states = this.#observer.count
    this.#terminal.resize(columns, rows)
    this.#pty.resize(columns, rows)
    await this.until(() => this.#observer.count > states, `the console to be ${columns}×${rows}`)
    return this
  }

  /** Bytes go out and nobody waits for them: for a program that is meant to be busy. */
  send(text: string): void {
    this.#sentBytes += Buffer.byteLength(text)
    this.#pty.write(Buffer.from(text))
  }

  async expectOn(host: string, pattern: RegExp, expectation?: Expectation): Promise<this> {
    await this.until(() => pattern.test(this.#textOn(host)), `${pattern} on ${host}`, expectation)
    return this
  }

  /** The same on several hosts, all of them on this page. */
  async expectOnAll(
    hosts: readonly string[],
    pattern: (host: string) => RegExp,
    expectation?: Expectation,
  ): Promise<this> {
    const missing = () => hosts.filter((host) => !pattern(host).test(this.#textOn(host)))
    await this.until(
      () => missing().length === 0,
      () => `what belongs on ${missing().join(', ')}`,
      expectation,
    )
    return this
  }

  /**
   * These hosts (those of this page unless named) wait for a command. To be asked when what the command prints was seen: the
   * screens have then come to their final state, and the next key finds a shell that reads it.
   */
  async expectPrompts(...hosts: readonly string[]): Promise<this> {
    const named = () => (hosts.length > 0 ? hosts : (this.state?.panes.map(({ host }) => host) ?? []))
    const busy = () => named().filter((host) => !PROMPT.test(this.#textOn(host).trimEnd()))
    await this.until(
      () => named().length > 0 && busy().length === 0,
      () => `a prompt on ${busy().join(', ')}`,
    )
    return this
  }

  /** The first row. */
  async expectHeader(pattern: RegExp, expectation?: Expectation): Promise<this> {
    await this.until(() => pattern.test(this.screen()[0] ?? ''), `${pattern} in the header`, expectation)
    return this
  }

  async expectScreen(pattern: RegExp, expectation?: Expectation): Promise<this> {
    await this.until(() => pattern.test(this.screen().join('\n')), `${pattern} on the screen`, expectation)
    return this
  }

  /** What is not there now, with everything handled and drawn; it says nothing about later. */
  async expectNowhere(pattern: RegExp): Promise<this> {
    await this.settled()
    if (pattern.test(this.screen().join('\n'))) throw this.#failure(`${pattern} should be nowhere`)
    return this
  }

  async expectMode(mode: string, expectation?: Expectation): Promise<this> {
    await this.until((state) => state.mode === mode, `the mode ${mode}`, expectation)
    return this
  }

  async expectReceivers(...hosts: readonly string[]): Promise<this> {
    const expected = [...hosts].sort().join()
    await this.until((state) => [...state.receivers].sort().join() === expected, `the receivers ${expected || 'none'}`)
    return this
  }

  /** A host's session or shell, as the program names its states. */
  async expectSession(host: string, session: string, expectation?: Expectation): Promise<this> {
    await this.until((state) => this.#host(state, host)?.session === session, `${host} to be ${session}`, expectation)
    return this
  }

  /** Every host has a shell. */
  async expectAllOpen(expectation?: Expectation): Promise<this> {
    const closed = (state: ObservedState) => state.hosts.filter(({ shell }) => shell !== 'open')
    await this.until(
      (state) => state.hosts.length > 0 && closed(state).length === 0,
      () =>
        `shells on ${
          this.state === undefined
            ? 'all'
            : closed(this.state)
                .map(({ host }) => host)
                .join(', ')
        }`,
      expectation,
    )
    return this
  }

  /** Every host has a shell, and those of this page show its prompt. */
  async expectReady(): Promise<this> {
    await this.expectAllOpen()
    return await this.expectPrompts()
  }

  /** Every byte typed was handled, the program is idle, and what it wrote is on the screen. */
  async settled(what = 'the console to come to rest'): Promise<this> {
    await this.until(() => true, what)
    return this
  }

  /** Waits until the program is at rest and the predicate holds. `what` completes 'waited N ms for …'. */
  async until(
    isTrue: (state: ObservedState) => boolean,
    what: string | (() => string),
    { timeoutMs = DEADLINE_MS, whileBusy = false }: Expectation = {},
  ): Promise<void> {
    const isReached = () => {
      const state = this.state
      if (state === undefined) return false
      return (whileBusy || this.#isAtRest(state)) && isTrue(state)
    }
    if (await this.#wait(isReached, timeoutMs)) return
    const waited = this.#ending === undefined ? `waited ${timeoutMs} ms for` : 'the program ended before'
    throw this.#failure(`${waited} ${typeof what === 'string' ? what : what()}`)
  }

  signal(name: NodeJS.Signals): void {
    process.kill(this.pid, name)
  }

  /** Closes the terminal, as closing its window does; the program ends with it. */
  async hangUp(): Promise<void> {
    this.#pty.close()
    await waitUntil(() => !isRunning(this.pid), 'the program to end without its terminal')
    this.#ending = { signal: 'SIGHUP' }
  }

  /** Waits for the program's own end. */
  async ended(timeoutMs = DEADLINE_MS): Promise<Ending> {
    await this.#wait(() => this.#ending !== undefined && this.#terminal.isDrawn, timeoutMs, true)
    if (this.#ending === undefined) throw this.#failure('the program should have ended')
    return this.#ending
  }

  async quit(): Promise<Ending> {
    this.send(`${keyBytes(LEADER)}q`)
    // It asks when programs run in shells.
    this.send('y')
    return await this.ended()
  }

  /** Leaves the console without ending it. */
  async detach(): Promise<Ending> {
    this.send(keyBytes(LEADER))
    this.send('D')
    return await this.ended()
  }

  /** Ends what still runs and removes what the driver made. */
  async close(): Promise<void> {
    if (this.#ending === undefined) {
      try {
        process.kill(this.pid, 'SIGKILL')
      } catch {
        // It has just ended.
      }
      await this.#wait(() => this.#ending !== undefined, DEADLINE_MS, true)
    }
    this.#observer.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #send(text: string): Promise<void> {
    if (this.state?.isTextHeld === true) await this.until(({ isTextHeld }) => !isTextHeld, 'text to be taken again')
    this.send(text)
    await this.settled(`${JSON.stringify(text)} to be handled`)
  }

  /**
   * Idle, with all of our input handled, and on the screen all of its output and nothing of a frame after that: either of
   * the observer's socket and the terminal may be ahead of the other.
   */
  #isAtRest({ idle, inputBytes, outputBytes }: ObservedState): boolean {
    const isHandled = idle && inputBytes >= this.#sentBytes
    return isHandled && this.#receivedBytes - (this.#plainBytes ?? 0) === outputBytes && this.#terminal.isDrawn
  }

  #textOn(host: string): string {
    const pane = this.#findPane(host)
    return pane === undefined ? '' : this.#terminal.lines(pane).join('\n')
  }

  /** A pane that reaches over the edge belongs to a size that is no more. */
  #findPane(host: string): ObservedPane | undefined {
    const { columns, rows } = this.#terminal
    return this.state?.panes.find(
      (pane) =>
        (pane.host === host || pane.hosts?.includes(host)) &&
        pane.column + pane.width <= columns &&
        pane.row + pane.height <= rows,
    )
  }

  #host(state: ObservedState, host: string): ObservedState['hosts'][number] | undefined {
    return state.hosts.find((candidate) => candidate.host === host)
  }

  /** False when the deadline passed, or the program ended, before it became true. */
  async #wait(isTrue: () => boolean, timeoutMs: number, isEndAwaited = false): Promise<boolean> {
    return await new Promise((resolve) => {
      const finish = (isReached: boolean) => {
        clearTimeout(timer)
        this.#waiters.delete(check)
        resolve(isReached)
      }
      const check = () => {
        if (isTrue()) finish(true)
        else if (this.#ending !== undefined && !isEndAwaited) finish(false)
      }
      const timer = setTimeout(() => finish(false), timeoutMs)
      this.#waiters.add(check)
      check()
    })
  }

  #wake(): void {
    for (const check of [...this.#waiters]) check()
  }

  #failure(sentence: string): Error {
    const edge = `+${'-'.repeat(this.#terminal.columns)}+`
    const screen = this.screen().map((line) => `|${line}`)
    const ending = this.#ending === undefined ? [] : [`ended: ${JSON.stringify(this.#ending)}`]
    const state = `state: ${JSON.stringify(this.state)} (sent ${this.#sentBytes} bytes)`
    return new Error([sentence, edge, ...screen, edge, state, ...ending].join('\n'))
  }
}
