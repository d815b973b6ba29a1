/**
 * `@xterm/addon-unicode-graphemes` 0.4 reads its tables from the start of a buffer pool that Node shares, so there must be no pool
 * while it is loaded. A static import would be evaluated earlier, also in a bundle.
 */
const POOL_BYTES = Buffer.poolSize
Buffer.poolSize = 0
const addon = await import('@xterm/addon-unicode-graphemes')
Buffer.poolSize = POOL_BYTES

/** It is CommonJS, which tsx and Node import differently. */
export const { UnicodeGraphemesAddon } = addon.default ?? addon
