/** A program of POSIX sh that deletes the directories of ended bundles from a host and prints `removed N`. */
import { JOBS_DIRECTORY } from './host-program.ts'

/** Somebody may still read what ended a moment ago. */
const LEAST_MINUTES = 1
const MINUTES_A_DAY = 1440

/**
 * Deletes directories of this queue alone, except those in `kept` and those that changed recently. Keys are part of the script,
 * as program arguments are limited in size. Names that a job made up are left alone. Where hosts share a home, only one host can
 * rename a directory, and only that one counts it.
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

/** The same in the background: a disk may take minutes to delete a large directory. */
export function formatDetachedClean(storeId: string, kept: readonly string[], olderThanDays: number): string {
  return `( ${formatCleanProgram(storeId, kept, olderThanDays)} ) </dev/null >/dev/null 2>&1 3>&- &\n`
}
