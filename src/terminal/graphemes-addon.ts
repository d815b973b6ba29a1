/**
 * `@xterm/addon-unicode-graphemes` 0.4 takes its tables for the start of a shared pool of Node's buffers, so there is none while it
 * is loaded. A static import would be carried out before that, also in a bundle.
 */
const POOL_BYTES = Buffer.poolSize
Buffer.poolSize = 0
const addon = await import('@xterm/addon-unicode-graphemes')
Buffer.poolSize = POOL_BYTES

/** It is CommonJS, which tsx and Node import differently. */
export const { UnicodeGraphemesAddon } = addon.default ?? addon
