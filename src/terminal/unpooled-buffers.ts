/** Before `@xterm/addon-unicode-graphemes` 0.4, undone after it: the addon reads its tables at the start of a shared pool. */
export const BUFFER_POOL_BYTES = Buffer.poolSize
Buffer.poolSize = 0
