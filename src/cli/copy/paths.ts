import { MusterError } from '../../base/errors.ts'

/**
 * An empty path is a variable that was never set: taken as the current directory it would copy all of that.
 * @throws MusterError `usage`
 */
export function refuseEmptyPaths(paths: readonly string[]): void {
  if (!paths.includes('')) return
  throw new MusterError('usage', 'a path is empty', {
    hint: 'Is a variable not set? Write . for the current directory, and ~ for the home directory of a host.',
  })
}
