/** Waiting on a fact that has no event: the predicate is asked again until it holds or the deadline passes. */
import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 5

/** `what` completes the sentence 'waited N ms for …'; a function is called when the time is up. */
export async function waitUntil(
  isTrue: () => boolean | Promise<boolean>,
  what: string | (() => string),
  timeoutMs = 60_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${typeof what === 'string' ? what : what()}`)
    await delay(POLL_MS)
  }
}
