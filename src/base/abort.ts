/** Calls back once when the signal is aborted, at once if it already is. Disposing stops that. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): Disposable {
  if (signal?.aborted) callback()
  else signal?.addEventListener('abort', callback, { once: true })
  return { [Symbol.dispose]: () => signal?.removeEventListener('abort', callback) }
}

/** What the promise becomes, or the signal's reason if it is aborted before. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  using _abort = onAbort(signal, () => aborted.reject(signal.reason))
  return await Promise.race([promise, aborted.promise])
}
