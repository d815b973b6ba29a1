/** Whether somebody at a terminal pipes text into `muster run`, which sends it only with `--stdin -`. */
import { fstatSync } from 'node:fs'

type Streams = { readonly stdin: { readonly fd?: number }; readonly stderr: { readonly isTTY?: boolean } }

/** A redirected file is not meant: in `while read -r host; do …; done < list` it belongs to the loop. */
export function isPiped({ stdin, stderr }: Streams): boolean {
  if (stderr.isTTY !== true || stdin.fd === undefined) return false
  try {
    return fstatSync(stdin.fd).isFIFO()
  } catch {
    return false
  }
}
