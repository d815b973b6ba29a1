/** The time limits of connecting, in milliseconds. They all derive from the endpoint's connect time-out. */
import type { Endpoint } from '../inventory/host.ts'

/** For a server that is slow to look up users and reverse names. */
const LEAST_LOGIN_MS = 30_000
/** ssh limits most steps itself (ConnectTimeout); this catches the one that it does not limit. */
const OPENSSH_GRACE_MS = 5_000

export function connectLimits({ connectTimeoutMs }: Endpoint) {
  return {
    /** Each of: look up the name, connect, exchange keys. */
    stepMs: connectTimeoutMs,
    loginMs: Math.max(LEAST_LOGIN_MS, connectTimeoutMs),
    opensshStepMs: connectTimeoutMs + OPENSSH_GRACE_MS,
    /** Until the login shell runs what Muster starts: start-up files may wait for ever. */
    shellStartMs: connectTimeoutMs,
  }
}
