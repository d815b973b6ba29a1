/**
 * A hosts.yaml that merely lies in the working directory can name programs that Muster runs and hosts that it logs in to,
 * so it counts only where nobody but the user (or root) could have put it. One that is named with `--hosts` always counts.
 */
import { MusterError } from '../base/errors.ts'
import { foreignFile } from '../base/foreign-place.ts'
import { printable } from '../base/printable.ts'

/**
 * @param path of a file that exists, as it was found
 * @param shown what messages call it
 * @param uid of the user; undefined where the system has no such numbers
 * @throws MusterError `configuration`
 */
export function refuseForeignFile(path: string, shown: string, uid: number | undefined = process.geteuid?.()): void {
  const reason = foreignFile(path, uid)
  if (reason === undefined) return
  const name = printable(shown)
  throw new MusterError('configuration', `${name} is not used: ${reason}, and it can name programs to run`, {
    hint: `If you trust it, name it: --hosts ${name.includes('/') ? name : `./${name}`}. To do without it: --hosts none.`,
  })
}
