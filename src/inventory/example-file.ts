/** The hosts.yaml at the top of a checkout, as it came: it names only this machine, so it counts as no file of the user. */
import { createHash } from 'node:crypto'
import { readBoundedSync } from '../base/read-bounded.ts'

/** A test compares it with the file. */
const SHA256 = 'a6b59b0163074874013971a0993817e66992d7af198ef2afd2e10a1c716c98b9'

export const isExample = (text: string | Buffer): boolean => createHash('sha256').update(text).digest('hex') === SHA256

export function isExampleFile(path: string): boolean {
  try {
    return isExample(readBoundedSync(path))
  } catch {
    return false
  }
}
