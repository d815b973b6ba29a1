/**
 * `@xterm/addon-unicode-graphemes` 0.4 takes its tables for the start of a shared pool of Node's buffers, so there is none while it
 * is loaded. An import would be carried out before that.
 */
import { createRequire } from 'node:module'

const POOL_BYTES = Buffer.poolSize
Buffer.poolSize = 0
export const { UnicodeGraphemesAddon } = createRequire(import.meta.url)(
  '@xterm/addon-unicode-graphemes',
) as typeof import('@xterm/addon-unicode-graphemes')
Buffer.poolSize = POOL_BYTES
