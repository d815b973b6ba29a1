/** Removes the directories of bundles that have ended from a host, as a program of POSIX sh; prints `removed N`. */
import { JOBS_DIRECTORY } from './host-program.ts'

/** What ended a moment ago may be read still. */
const LEAST_MINUTES = 1
const MINUTES_A_DAY = 1440

/**
 * Of this queue alone; those with a key in `kept` stay, and those that changed within so many days. The keys are no arguments of
 * a program, which may have only so many bytes of them. Names that a job made up are left alone. Where hosts share a home, only one
 * of them can rename a directory, and only that one counts it.
 */
export function formatCleanProgram(
  storeId: string,
  kept: readonly string[],
  olderThanDays: number,
  isTrial = false,
): string {
  const minutes = Math.max(LEAST_MINUTES, Math.round(olderThanDays * MINUTES_A_DAY))
  return `cd ${JOBS_DIRECTORY} 2>/dev/null || { echo removed 0; exit 0; }
kept='
${kept.map((key) => `./${key}\n`).join('')}'
find . -maxdepth 1 -type d -name '${storeId}-*' -mmin +${minutes} | {
n=0
while read -r d; do
  case $d in *[!0-9a-z./-]*) continue;; ./${storeId}-*) ;; *) continue;; esac
  case $kept in *"
$d
"*) continue;; esac
  ${isTrial ? '' : 'mv "$d" "$d-gone" 2>/dev/null && rm -rf "$d-gone" || continue; '}n=$((n + 1))
done
echo "removed $n"
}
`
}

/** The same beside a round, which does not wait for it: a disk may take minutes to remove a large directory. */
export function formatDetachedClean(storeId: string, kept: readonly string[], olderThanDays: number): string {
  return `( ${formatCleanProgram(storeId, kept, olderThanDays)} ) </dev/null >/dev/null 2>&1 3>&- &\n`
}
