/** What changing files (files.ts) may leave: a new file that was cut, and the copy of a file whose lines of Muster are gone. */
import type { LeftSearch } from '../../base/left.ts'

export const filesLeft: LeftSearch = {
  name: 'files',
  find: `left_new() { left_found new "$1"; }
left_before() {
  [ -f "$1" ] && [ ! -L "$1" ] || return 0
  left_file=\${1%.muster-before}
  # With lines of Muster in the file the copy belongs to them, and goes with them.
  if [ -e "$left_file" ] && grep -q -e '^# >>> muster ' -e '^# Made by Muster ' "$left_file"; then return 0; fi
  left_found before "$1"
}
for each in /etc /etc/exports.d /etc/systemd/system; do
  for file in "$each"/.muster-new-*; do [ ! -e "$file" ] || left_new "$file"; done
  for file in "$each"/*.muster-before; do [ ! -e "$file" ] || left_before "$file"; done
done
left_each '.muster-new-*' left_new
left_each '*.muster-before' left_before`,
  kinds: {
    new: { title: 'unfinished file', isOfRoot: true, isBrief: true },
    before: { title: 'copy of a file as it was before', isOfRoot: true },
  },
}
