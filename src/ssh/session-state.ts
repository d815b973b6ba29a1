/** The states of a host's connection over its life. Times are milliseconds since the epoch. */
import type { ConnectFailure, ConnectPhase } from './transport.ts'

export type SessionState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'connecting'; readonly attempt: number; readonly phase: ConnectPhase; readonly sinceMs: number }
  /** The server's key waits for a verdict (maybe the user's). */
  | { readonly kind: 'verifying'; readonly attempt: number; readonly sinceMs: number }
  | { readonly kind: 'authenticating'; readonly attempt: number; readonly sinceMs: number }
  /** `attempt`: the one that succeeded, so that a host that keeps breaking is not tried ever faster. */
  | { readonly kind: 'ready'; readonly attempt: number; readonly sinceMs: number }
  /** `attempt`: the number that the next one will have. */
  | { readonly kind: 'lost'; readonly attempt: number; readonly reason: string; readonly sinceMs: number }
  /** `attempt`: the number of the one that starts at `retryAtMs`. */
  | { readonly kind: 'waiting'; readonly attempt: number; readonly retryAtMs: number; readonly reason: string }
  | { readonly kind: 'failed'; readonly failure: ConnectFailure; readonly sinceMs: number }
  | { readonly kind: 'closed' }
