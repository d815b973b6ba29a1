/** Under what name a file stands while it is copied. */
import { createHash } from 'node:crypto'
import { type BytePath, baseName, bytesOf, joinPath, parentOf } from './byte-path.ts'

/** Beside the target, of a name that does not grow with the target's; the same each time, so that a cut copy is found. */
export function temporaryOf(path: BytePath): BytePath {
  const hash = createHash('sha256')
    .update(bytesOf(baseName(path)))
    .digest('hex')
    .slice(0, 16)
  return joinPath(parentOf(path), `.muster-${hash}`)
}
