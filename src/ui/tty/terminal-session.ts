/**
 * The user's terminal while a console is open: taken over whole, and given back as it was, once, whatever ends the console.
 */
import type { EventEmitter } from 'node:events'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { format, inspect } from 'node:util'
import { type Clock, systemClock } from '../../base/clock.ts'
import { DisposableStore } from '../../base/disposable.ts'
import { shortageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type TtyWriter, writeAllSync } from './tty-writer.ts'

export type TerminalInput = Readable & { readonly isRaw?: boolean; setRawMode?(isRaw: boolean): unknown }
export type TerminalOutput = EventEmitter & { readonly columns: number; readonly rows: number }

/** The part of Node's process that is used. */
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
  /** The program was stopped and continues: the terminal is taken again and empty, everything has to be drawn. */
  onResume?(): void
  /**
   * The program is about to end although the user did not close the console; the terminal is already given back. The process ends
   * when this session is disposed of, after `FATAL_LIMIT_MS` at the latest, and at once on a second signal.
   */
  onFatal?(): void
  /** The terminal is gone. True: the program continues without it, and this session is disposed of. */
  onLost?(): boolean
  /** Handles an uncaught error. True: the program continues. Without this, it ends. */
  onFault?(error: unknown): boolean
  /** What a library printed, or Node warned about: it does not reach the terminal. */
  onPrint?(text: string): void
  readonly process?: HostProcess
  readonly clock?: Clock
}

export const FATAL_LIMIT_MS = 500
const FATAL_SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const
/** Node's own exit code after an uncaught exception. */
const CRASH_CODE = 1

export function enterTerminal(options: TerminalOptions): Disposable {
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
  let reported = { columns: stdout.columns, rows: stdout.rows }

  /** While suspended there is nothing to draw on: a change of size is reported once, after the program continues. */
  const reportSize = (): void => {
    const { columns, rows } = stdout
    if (!isEntered || (columns === reported.columns && rows === reported.rows)) return
    reported = { columns, rows }
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

  const handleFatal = (code: number, error?: unknown): void => {
    giveBack()
    if (error !== undefined) report(host, error)
    const isSecond = exitCode !== undefined
    exitCode ??= code
    if (isSecond || !options.onFatal) return exit()
    deadline = clock.after(FATAL_LIMIT_MS, exit)
    try {
      options.onFatal()
    } catch (thrown) {
      report(host, thrown)
      exit()
    }
  }

  const handleSuspend = (): void => {
    if (!isEntered) return
    leave()
    // Not SIGTSTP, which would end up here again.
    host.kill(host.pid, 'SIGSTOP')
  }

  const handleContinue = (): void => {
    if (hasEnded) return
    // It was stopped by SIGSTOP, which no listener sees: the shell has changed the terminal meanwhile.
    if (isEntered) leave()
    enter()
    refreshSize(stdout)
    reportSize()
    options.onResume?.()
  }

  const handleHangUp = (): void => {
    if (!options.onLost?.()) handleFatal(signalCode('SIGHUP'))
  }

  const handleGone = (): void => {
    if (isEntered) handleHangUp()
  }

  listeners.own(catchPrints(host, (text) => options.onPrint?.(text)))
  listen(listeners, stdin, 'data', (bytes: Uint8Array) => options.onInput(bytes))
  listen(listeners, stdin, 'end', handleGone)
  listen(listeners, stdin, 'error', handleGone)
  listen(listeners, stdout, 'resize', reportSize)
  listeners.own(writer.onGone(handleGone))
  listen(listeners, host, 'SIGTSTP', handleSuspend)
  listen(listeners, host, 'SIGCONT', handleContinue)
  listen(listeners, host, 'exit', giveBack)
  // Node itself reports it only to its own stdout.
  listen(listeners, host, 'SIGWINCH', () => refreshSize(stdout))
  for (const signal of FATAL_SIGNALS) {
    const handle = signal === 'SIGHUP' ? handleHangUp : () => handleFatal(signalCode(signal))
    listen(fatalListeners, host, signal, handle)
  }
  for (const event of ['uncaughtException', 'unhandledRejection'])
    listen(fatalListeners, host, event, (thrown: unknown) => {
      const error = thrown ?? new Error(event)
      // A second error must not stop it from ending.
      if (exitCode !== undefined || !options.onFault?.(error)) handleFatal(CRASH_CODE, error)
    })
  enter()
  stdin.resume()

  return {
    [Symbol.dispose]() {
      giveBack()
      // After everything else that its owner disposes of.
      if (exitCode !== undefined) setImmediate(exit)
      else fatalListeners[Symbol.dispose]()
    },
  }
}

const signalCode = (signal: (typeof FATAL_SIGNALS)[number]): number => 128 + constants.signals[signal]

/** Reports of buttons, drags and the wheel in SGR form, on or off. */
export const mouseSequence = (isOn: boolean): Buffer =>
  Buffer.from(isOn ? '\x1b[?1002h\x1b[?1006h' : '\x1b[?1006l\x1b[?1002l')

/**
 * Alternate screen, no attributes, empty; no wrapping, so that what a terminal draws too wide stays in its row; paste in brackets; buttons,
 * drags and wheel in SGR form; no cursor.
 */
export function enterSequence({ mouse }: Pick<TerminalOptions, 'mouse'>): Buffer {
  return Buffer.from(`\x1b[?1049h\x1b[0m\x1b[H\x1b[2J\x1b[?7l\x1b[?2004h${mouse ? mouseSequence(true) : ''}\x1b[?25l`)
}

/**
 * Undoes `enterSequence` and whatever a frame that was cut in the middle left behind: the synchronized update first, or
 * the terminal would hold back all the rest; the alternate screen last, so that nothing of it shows on the other one.
 */
export function leaveSequence({ mouse }: Pick<TerminalOptions, 'mouse'>): Buffer {
  const mouseOff = mouse ? mouseSequence(false) : ''
  return Buffer.from(`\x1b[?2026l\x1b[0m\x1b[?25h\x1b[0 q${mouseOff}\x1b[?2004l\x1b[?7h\x1b[?1004l\x1b[?1049l`)
}

/** A stack may quote the output of a host. */
function report(host: HostProcess, error: unknown): void {
  const lines = inspect(error, { colors: false }).split('\n')
  const text = `muster: ${shortageOf(error) ?? `unexpected error\n${lines.map(printable).join('\n')}`}\n`
  if (host.stderr.fd === undefined) host.stderr.write(text)
  else writeAllSync(host.stderr.fd, Buffer.from(text))
}

/** A stopped program is not notified of a resize, and Node asks the terminal only in this private method. */
function refreshSize(stdout: TerminalOutput): void {
  ;(stdout as { _refreshSize?(): void })._refreshSize?.()
}

// biome-ignore lint/suspicious/noExplicitAny: what an event carries is known where it is listened to
function listen(owner: DisposableStore, source: EventEmitter, event: string, listener: (value: any) => void): void {
  source.on(event, listener)
  owner.defer(() => source.off(event, listener))
}

const METHODS = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const

/** Until it is disposed of, `onText` gets these texts instead of the terminal. */
export function catchPrints(host: EventEmitter, onText: (text: string) => void): Disposable {
  const methods = METHODS.map((name) => [name, console[name]] as const)
  const print = (...words: readonly unknown[]): void => onText(format(...words))
  for (const name of METHODS) console[name] = print
  // Node's own listener would print them.
  const listeners = host.listeners('warning') as ((warning: Error) => void)[]
  host.removeAllListeners('warning')
  const warn = (warning: Error): void => {
    // For those who write the program: a user can do nothing about it.
    if (warning.name !== 'DeprecationWarning') onText(`${warning.name}: ${warning.message}`)
  }
  host.on('warning', warn)
  return {
    [Symbol.dispose]() {
      for (const [name, method] of methods) console[name] = method
      host.off('warning', warn)
      for (const listener of listeners) host.on('warning', listener)
    },
  }
}
