/** What running a command leaves on a host that lost its power in the middle: the files that were brought along for it. */
import type { LeftSearch } from '../../base/left.ts'

export const execLeft: LeftSearch = {
  name: 'run',
  find: `for place in "\${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm; do
  case $seen in *"$nl$place$nl"*) continue;; esac
  seen="$seen$nl$place$nl"
  for each in "$place"/muster.?????? "$place"/muster.??????.e; do [ ! -e "$each" ] || left_found files "$each"; done
done
seen=`,
  kinds: { files: { title: 'temporary files', isBrief: true } },
}
