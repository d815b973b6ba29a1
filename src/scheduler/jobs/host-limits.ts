/**
 * A cgroup (version 2) for a bundle with a memory limit, as parts of the program that runs it. A bundle that may not create one
 * runs without it and says so. The command runs in the group `main` below it, because a group without processes of its own can
 * delegate its controllers, as container engines do; the shell stays outside to report the end. This costs two processes: one
 * makes the directories, one removes them.
 */

export type BundleLimits = { readonly memoryBytes: number; readonly cpuMilli: number }

/** `cpu.weight` of one core; the kernel takes 1 to 10,000. */
const CORE_WEIGHT = 100
const MOST_WEIGHT = 10_000

/** Sets `g` to the directory, or `u` to ` unlimited` where there can be none. */
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

/** After the command, whose exit code is `c`: kills what it left running and tells whether memory ran out. */
export const TELL_MEMORY = `[ -z "$g" ] || {
  [ $c = 0 ] || while read -r x y; do [ "$x" = oom_kill ] && [ "$y" != 0 ] && f=' memory'; done <"$g/memory.events"
  echo 1 >"$g/cgroup.kill"
} 2>/dev/null
`

/** At the very end: removes the directories once the last process in them is gone. */
export const END_LIMITED = `[ -z "$g" ] || for x in 1 2 3 4 5 6 7 8 9; do
  find "$g" -depth -type d -exec rmdir {} \\; 2>/dev/null
  [ -d "$g" ] || break; sleep 0.2
done
`
