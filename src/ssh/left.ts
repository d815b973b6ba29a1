/** What a killed copy, command or console may leave on a host, or where Muster runs itself. */
import type { LeftSearch } from '../base/left.ts'
import { PROOF_FILE } from '../base/proof-file.ts'

export const copyLeft: LeftSearch = {
  name: 'copy',
  // A name ends in the machine's name and the process that writes it.
  find: `part() {
  case \${1##*/} in .muster-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]*) ;; *) return;; esac
  pid=\${1##*.}; node=\${1%.*}
  case $pid in '' | *[!0-9]*) ;; *)
    case $node in *".$(uname -n)")
      if kill -0 "$pid" 2> /dev/null && tr '\\000' ' ' < "/proc/$pid/cmdline" | grep -q -e python -e sh; then
        left_found part "$1" "process $pid is at work on it"; return
      fi;;
    esac;;
  esac
  left_found part "$1"
}
left_each '.muster-*' part
trial() { left_found trial "$1"; }
left_each '.muster-case.*' trial
proof() { left_found proof "$1"; }
left_each '${PROOF_FILE}*' proof`,
  kinds: {
    part: { title: 'unfinished copy' },
    trial: { title: 'trial of upper and lower case', remove: 'rmdir "$p"', isBrief: true },
    proof: { title: 'proof of a shared directory', isBrief: true },
  },
}

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

export const persistLeft: LeftSearch = {
  name: 'connections',
  find: `runs() { grep -l -a -e "$1" /proc/[0-9]*/cmdline 2> /dev/null | head -n 1; }
for each in \${MUSTER_RUNTIME_DIR:+"$MUSTER_RUNTIME_DIR/muster"} "/tmp/muster-$(id -u)"; do
  [ -d "$each" ] && [ ! -L "$each" ] || continue
  if [ -n "$(runs keep-connections)" ]; then left_found warm "$each" 'connections are kept warm; to end them: muster hosts --persisted --stop'
  elif [ -n "$(runs console-process)" ]; then left_found warm "$each" 'a console is open; to end it: muster sessions --end all'
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
