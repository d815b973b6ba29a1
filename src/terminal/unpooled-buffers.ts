/**
 * To be imported before `@xterm/addon-unicode-graphemes` 0.4, and undone right after it: the addon reads the head of its tables at
 * the start of the memory that holds them, which is somebody else's bytes where Node has put them into a pool that was begun.
 * Then it ends with "Data error", or has wrong widths.
 */
export const BUFFER_POOL_BYTES = Buffer.poolSize
Buffer.poolSize = 0
