/**
 * A cgroup (version 2) of its own for a bundle whose memory is limited, as parts of the program that runs it. A bundle that may
 * not make one runs without it and says so. Only the command goes in, so that its end can be told, and into the group `main`
 * below: a group without processes of its own is one whose controllers the command may hand on, as container engines do. Two
 * processes more, one that makes the directories and one that removes them.
 */

export type BundleLimits = { readonly memoryBytes: number; readonly cpuMilli: number }

/** `cpu.weight` of one core; it has to stay within 1 and 10,000. */
const CORE_WEIGHT = 100
const MOST_WEIGHT = 10_000

/** Sets `g` to the directory, and `u` to ` unlimited` where there is none. */
export function formatLimit({ memoryBytes, cpuMilli }: BundleLimits): string {
  const weight = Math.min(MOST_WEIGHT, Math.max(1, Math.round((cpuMilli * CORE_WEIGHT) / 1000)))
  return `limit() {
  while read -r x y t z; do [ "$t" = cgroup2 ] && break; done </proc/mounts
  [ "$t" = cgroup2 ] && [ -w "$y/cgroup.procs" ] || return
  read -r x <"$y/cgroup.controllers"; case " $x " in *" memory "*) ;; *) return 1;; esac
  g=$y/muster/$k; mkdir -p "$g/main" || return
  for x in "$y" "$y/muster"; do echo +memory >"$x/cgroup.subtree_control"; echo +cpu >"$x/cgroup.subtree_control"; done
  echo ${memoryBytes} >"$g/memory.max" && echo "$g" >cgroup || { rmdir "$g/main" "$g"; return 1; }
  echo 1 >"$g/memory.oom.group"; echo 0 >"$g/memory.swap.max"; echo ${weight} >"$g/cpu.weight"; :
}
g=; limit 2>/dev/null || { g=; u=' unlimited'; true >unlimited; }
`
}

/** What comes after it is inside. */
export const LIMITED = `[ -z "$g" ] || { echo 0 >"$g/main/cgroup.procs"; } 2>/dev/null || true >unlimited
`

/** After the end of the command, with its exit code in `c`; what it left running ends, and holds no memory. */
export const TELL_MEMORY = `[ -z "$g" ] || {
  [ $c = 0 ] || while read -r x y; do [ "$x" = oom_kill ] && [ "$y" != 0 ] && f=' memory'; done <"$g/memory.events"
  echo 1 >"$g/cgroup.kill"
} 2>/dev/null
`

/** When all is told: the directories can be removed when the last process in them is gone, those of the command first. */
export const END_LIMITED = `[ -z "$g" ] || for x in 1 2 3 4 5 6 7 8 9; do
  find "$g" -depth -type d -exec rmdir {} \\; 2>/dev/null
  [ -d "$g" ] || break; sleep 0.2
done
`
