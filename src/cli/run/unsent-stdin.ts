/** Whether somebody at a terminal pipes text into `muster run`, which sends it only with `--stdin -`. */
import { fstatSync, readlinkSync } from 'node:fs'

type Streams = { readonly stdin: { readonly fd?: number }; readonly stderr: { readonly isTTY?: boolean } }

/** `parent`: the stdin of the process that started this one. What it reads from, too, belongs to a loop: `while read -r host; do …; done`. */
export function isPiped({ stdin, stderr }: Streams, parent = `/proc/${process.ppid}/fd/0`): boolean {
  const { fd } = stdin
  if (stderr.isTTY !== true || fd === undefined) return false
  try {
    return fstatSync(fd).isFIFO() && readlinkSync(`/proc/self/fd/${fd}`) !== readlinkSync(parent)
  } catch {
    return false
  }
}
