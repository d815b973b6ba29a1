/** What Muster leaves where it runs itself, when it was killed: places of warm connections, of questions, of files on their way. */
import type { LeftSearch } from '../../base/left.ts'

export const persistLeft: LeftSearch = {
  name: 'connections',
  find: `keeper() { grep -l -a -e keep-connections /proc/[0-9]*/cmdline 2> /dev/null | head -n 1; }
for each in "\${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/muster" "\${TMPDIR:-/tmp}/muster-$(id -u)"; do
  [ -d "$each" ] && [ ! -L "$each" ] || continue
  if [ -n "$(keeper)" ]; then left_found warm "$each" 'connections are kept warm; to end them: muster hosts --persisted --stop'
  else left_found warm "$each"; fi
done
for each in "\${TMPDIR:-/tmp}"/muster-ssh-??????; do [ ! -d "$each" ] || left_found questions "$each"; done
for each in "\${TMPDIR:-/tmp}"/muster-files-[0-9]*-??????; do
  [ -d "$each" ] || continue
  pid=\${each##*/muster-files-}; pid=\${pid%%-*}
  if kill -0 "$pid" 2> /dev/null; then left_found carried "$each" "process $pid uses it"; else left_found carried "$each"; fi
done
left_lock() { left_found lock "$1"; }
left_each '*.muster-lock' left_lock`,
  kinds: {
    warm: { title: 'place of warm connections', isBrief: true },
    questions: { title: 'place of questions of ssh', isBrief: true },
    carried: { title: 'files on their way', isBrief: true },
    lock: { title: 'lock', isBrief: true },
  },
}
