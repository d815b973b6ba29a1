/** Calls back once when the signal is aborted, at once if it already is. Disposing stops that. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): Disposable {
  if (signal?.aborted) callback()
  else signal?.addEventListener('abort', callback, { once: true })
  return { [Symbol.dispose]: () => signal?.removeEventListener('abort', callback) }
}

/** The result of the promise, or a rejection with the signal's reason if that is aborted first. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  using _abort = onAbort(signal, () => aborted.reject(signal.reason))
  return await Promise.race([promise, aborted.promise])
}
