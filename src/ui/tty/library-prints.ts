/**
 * Catches what libraries print through `console`, and Node's warnings, while the console is open: on the screen they would
 * appear in the middle of a frame (the emulator warns when the machine is slow).
 */
import type { EventEmitter } from 'node:events'
import { format } from 'node:util'

const METHODS = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const

/** Until it is disposed of, `onText` gets these texts instead of the terminal. */
export function catchPrints(host: EventEmitter, onText: (text: string) => void): Disposable {
  const methods = METHODS.map((name) => [name, console[name]] as const)
  const print = (...words: readonly unknown[]): void => onText(format(...words))
  for (const name of METHODS) console[name] = print
  // Node's own listener would print them.
  const listeners = host.listeners('warning') as ((warning: Error) => void)[]
  host.removeAllListeners('warning')
  const warn = (warning: Error): void => onText(`${warning.name}: ${warning.message}`)
  host.on('warning', warn)
  return {
    [Symbol.dispose]() {
      for (const [name, method] of methods) console[name] = method
      host.off('warning', warn)
      for (const listener of listeners) host.on('warning', listener)
    },
  }
}
