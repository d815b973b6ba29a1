/** Removes the directories of bundles that have ended from a host, as a program of POSIX sh; prints `removed N`. */
import { JOBS_DIRECTORY } from './host-program.ts'

/** What ended a moment ago may be read still. */
const LEAST_MINUTES = 1
const MINUTES_A_DAY = 1440

/** Of this queue alone; those with a key in `kept` stay, and those that changed within so many days. */
export function formatCleanProgram(
  storeId: string,
  kept: readonly string[],
  olderThanDays: number,
  isTrial = false,
): string {
  const minutes = Math.max(LEAST_MINUTES, Math.round(olderThanDays * MINUTES_A_DAY))
  const others = kept.map((key) => ` ! -name ${key}`).join('')
  const remove = isTrial ? '' : ' -exec rm -rf {} \\;'
  return `cd ${JOBS_DIRECTORY} 2>/dev/null || { echo removed 0; exit 0; }
n=$(find . -maxdepth 1 -type d -name '${storeId}-*' -mmin +${minutes}${others} -print${remove} | wc -l)
echo "removed $((n))"
`
}
