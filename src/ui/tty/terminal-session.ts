/**
 * The user's terminal while a console is open: taken over whole, and given back as it was, once, whatever ends the console.
 */
import type { EventEmitter } from 'node:events'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { inspect } from 'node:util'
import { type Clock, systemClock } from '../../base/clock.ts'
import { DisposableStore } from '../../base/disposable.ts'
import { shortageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { catchPrints } from './library-prints.ts'
import { enterSequence, leaveSequence } from './terminal-modes.ts'
import { type TtyWriter, writeAllSync } from './tty-writer.ts'

/** Why the program is about to end although nobody closed the console. */
export type FatalReason =
  | { readonly kind: 'signal'; readonly signal: 'SIGHUP' | 'SIGINT' | 'SIGQUIT' | 'SIGTERM' }
  | { readonly kind: 'crash'; readonly error: unknown }
  /** The terminal has vanished without a signal. */
  | { readonly kind: 'gone' }

export type TerminalInput = Readable & { readonly isRaw?: boolean; setRawMode?(isRaw: boolean): unknown }
export type TerminalOutput = EventEmitter & { readonly columns: number; readonly rows: number }

/** What is used of Node's process. */
export type HostProcess = EventEmitter & {
  readonly pid: number
  readonly stderr: { readonly fd?: number; write(text: string): unknown }
  kill(pid: number, signal: string): unknown
  exit(code: number): unknown
}

export type TerminalOptions = {
  readonly stdin: TerminalInput
  readonly stdout: TerminalOutput
  readonly writer: TtyWriter
  /** Report buttons, drags and the wheel. */
  readonly mouse: boolean
  onInput(bytes: Uint8Array): void
  onResize(columns: number, rows: number): void
  /** The terminal is already given back; the program stops when this returns. */
  onSuspend?(): void
  /** The program goes on: the terminal is taken again and empty, everything has to be drawn. */
  onResume?(): void
  /**
   * The last chance to put things away: the terminal is already given back, the process ends when the promise settles;
   * without a promise, when this session is disposed of; without either, after `FATAL_LIMIT_MS`. A second signal ends it
   * at once.
   */
  onFatal?(reason: FatalReason): void | Promise<void>
  /** What a library printed, or Node warned of: it does not reach the terminal. */
  onPrint?(text: string): void
  readonly process?: HostProcess
  readonly clock?: Clock
}

export interface TerminalSession extends Disposable {
  /** False while suspended and after the end. */
  readonly isEntered: boolean
}

export const FATAL_LIMIT_MS = 500
const FATAL_SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const
/** What Node itself ends with after an exception that nobody caught. */
const CRASH_CODE = 1

export function enterTerminal(options: TerminalOptions): TerminalSession {
  const { stdin, stdout, writer, clock = systemClock } = options
  const host: HostProcess = options.process ?? process
  const wasRaw = stdin.isRaw ?? false
  const listeners = new DisposableStore()
  const fatalListeners = new DisposableStore()
  let isEntered = false
  let hasEnded = false
  let exitCode: number | undefined
  let hasExited = false
  let deadline: Disposable | undefined
  let told = { columns: stdout.columns, rows: stdout.rows }

  /** While suspended there is nothing to draw on; whoever goes on is told then, once. */
  const tellSize = (): void => {
    const { columns, rows } = stdout
    if (!isEntered || (columns === told.columns && rows === told.rows)) return
    told = { columns, rows }
    options.onResize(columns, rows)
  }

  const enter = (): void => {
    // Raw mode first: a program in the background is stopped here, before it has written anything.
    stdin.setRawMode?.(true)
    isEntered = true
    writer.resume()
    writer.write(enterSequence(options))
  }

  const leave = (): void => {
    if (!isEntered) return
    isEntered = false
    writer.suspend(leaveSequence(options))
    stdin.setRawMode?.(wasRaw)
  }

  /** For good. */
  const giveBack = (): void => {
    leave()
    if (hasEnded) return
    hasEnded = true
    stdin.pause()
    listeners[Symbol.dispose]()
  }

  const exit = (): void => {
    if (hasExited) return
    hasExited = true
    deadline?.[Symbol.dispose]()
    host.exit(exitCode ?? CRASH_CODE)
  }

  const closeProgram = async (reason: FatalReason): Promise<void> => {
    try {
      const closing = options.onFatal?.(reason)
      if (!(closing instanceof Promise)) return
      await closing
    } catch (error) {
      report(host, error)
    }
    exit()
  }

  const handleFatal = (reason: FatalReason): void => {
    giveBack()
    if (reason.kind === 'crash') report(host, reason.error)
    const isSecond = exitCode !== undefined
    exitCode ??= exitCodeOf(reason)
    if (isSecond || !options.onFatal) exit()
    else {
      deadline = clock.after(FATAL_LIMIT_MS, exit)
      void closeProgram(reason)
    }
  }

  const handleSuspend = (): void => {
    if (!isEntered) return
    leave()
    options.onSuspend?.()
    // Not SIGTSTP: that one ends up here again.
    host.kill(host.pid, 'SIGSTOP')
  }

  const handleContinue = (): void => {
    if (hasEnded) return
    // Stopped by SIGSTOP, which nobody is told of: the shell has changed the terminal meanwhile.
    if (isEntered) leave()
    enter()
    refreshSize(stdout)
    tellSize()
    options.onResume?.()
  }

  const handleGone = (): void => {
    if (isEntered) handleFatal({ kind: 'gone' })
  }

  listeners.own(catchPrints(host, (text) => options.onPrint?.(text)))
  listen(listeners, stdin, 'data', (bytes: Uint8Array) => options.onInput(bytes))
  listen(listeners, stdin, 'end', handleGone)
  listen(listeners, stdin, 'error', handleGone)
  listen(listeners, stdout, 'resize', tellSize)
  listeners.own(writer.onGone(handleGone))
  listen(listeners, host, 'SIGTSTP', handleSuspend)
  listen(listeners, host, 'SIGCONT', handleContinue)
  listen(listeners, host, 'exit', giveBack)
  for (const signal of FATAL_SIGNALS)
    listen(fatalListeners, host, signal, () => handleFatal({ kind: 'signal', signal }))
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    listen(fatalListeners, host, event, (error: unknown) => handleFatal({ kind: 'crash', error }))
  }
  enter()
  stdin.resume()

  return {
    get isEntered() {
      return isEntered
    },
    [Symbol.dispose]() {
      giveBack()
      // What else its owner disposes of comes first.
      if (exitCode !== undefined) setImmediate(exit)
      else fatalListeners[Symbol.dispose]()
    },
  }
}

function exitCodeOf(reason: FatalReason): number {
  if (reason.kind === 'crash') return CRASH_CODE
  return 128 + constants.signals[reason.kind === 'gone' ? 'SIGHUP' : reason.signal]
}

/** A stack may quote what a host has said. */
function report(host: HostProcess, error: unknown): void {
  const lines = inspect(error, { colors: false }).split('\n')
  const text = `muster: ${shortageOf(error) ?? `unexpected error\n${lines.map(printable).join('\n')}`}\n`
  if (host.stderr.fd === undefined) host.stderr.write(text)
  else writeAllSync(host.stderr.fd, Buffer.from(text))
}

/** A change of size is not told to a program that is stopped. Node asks the terminal only in this private method. */
function refreshSize(stdout: TerminalOutput): void {
  ;(stdout as { _refreshSize?(): void })._refreshSize?.()
}

// biome-ignore lint/suspicious/noExplicitAny: what an event carries is known where it is listened to
function listen(owner: DisposableStore, source: EventEmitter, event: string, listener: (value: any) => void): void {
  source.on(event, listener)
  owner.defer(() => source.off(event, listener))
}
