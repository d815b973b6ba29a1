/** What a killed copy leaves on a host: partial files beside their targets, and files of short tests. */
import type { LeftSearch } from '../../base/left.ts'
import { PROOF_FILE } from '../../base/proof-file.ts'

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
