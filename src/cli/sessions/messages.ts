/** The messages between a console's process and its clients: one user, one version. */

import { fstatSync, type Stats } from 'node:fs'

/** Goes up with every change of this file; it is part of the socket's name, so versions do not meet. */
export const PROTOCOL = 3

/** The first argument of a console's own process; the words of the user follow. */
export const CONSOLE_PROCESS = 'console-process'

/** The variables that describe a terminal, and those with the sockets of a login. */
export const TERMINAL_VARIABLES = [
  'TERM',
  'COLORTERM',
  'COLORFGBG',
  'NO_COLOR',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'SSH_AUTH_SOCK',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XAUTHORITY',
  'MUSTER_OBSERVER',
] as const

/** Those that a new terminal lacks are removed, or programs would look for a display that is gone. */
export const DISPLAY_VARIABLES = ['DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY'] as const

/** The environment variable of a client on a terminal that another client made for it (`relay.ts`). */
export const RELAYED = 'MUSTER_RELAYED'

export type TerminalEnvironment = Readonly<Partial<Record<(typeof TERMINAL_VARIABLES)[number], string>>>

/** A console as `muster sessions` shows it. Times in ms since the epoch. */
export type SessionDescription = {
  readonly name: string
  readonly pid: number
  readonly cluster: string
  /** A folded host set, and how many hosts that is. */
  readonly hosts: string
  readonly hostCount: number
  /** Shells that are open. */
  readonly shells: number
  readonly startedMs: number
  /** The terminal that it is on; undefined while it is detached. */
  readonly terminal?: string
  readonly detachedMs?: number
  readonly endsAtMs?: number
  /** Consoles are on the same hosts if they have one of these in common: the same words, or the same hosts of the same file. */
  readonly opened: readonly string[]
}

/** Equal for the same file. */
export const fileIdentity = ({ dev, ino, rdev }: Stats): string => [dev, ino, rdev].join()

/** Of an open file. */
export const identityOf = (descriptor: number): string => fileIdentity(fstatSync(descriptor))

export type ToConsole =
  | { readonly type: 'hello'; readonly protocol: number; readonly nonce: string }
  | { readonly type: 'proof'; readonly proof: string }
  | {
      readonly type: 'attach'
      readonly terminal: string
      /** Identity of the terminal's file: in a container, the path may be another terminal. */
      readonly identity: string
      readonly environment: TerminalEnvironment
      /** Whether the console continues when its terminal is lost; undefined: as before. */
      readonly keep?: boolean | undefined
    }
  | { readonly type: 'describe' }
  | { readonly type: 'end' }
  /** The client's terminal has a new size; the client was stopped or continued; it got another signal. */
  | { readonly type: 'resize' | 'suspend' | 'continue' }
  | { readonly type: 'signal'; readonly name: 'SIGHUP' | 'SIGINT' | 'SIGQUIT' | 'SIGTERM' }

export type FromConsole =
  | { readonly type: 'hello'; readonly protocol: number; readonly nonce: string; readonly proof: string }
  /** The console draws on the client's terminal from now on. */
  | { readonly type: 'attached' }
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'description'; readonly session: SessionDescription }
  | { readonly type: 'print'; readonly text: string }
  /** The terminal is restored: the client may stop. */
  | { readonly type: 'suspended' }
  /** The terminal is restored: the client prints the text and exits with this code, after the console's process if that ends. */
  | { readonly type: 'left'; readonly code: number; readonly text: string; readonly hasEnded: boolean }
