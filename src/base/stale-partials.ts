/** Partial files of copies, `.muster-HASH.MACHINE.PID`, that were not resumed for a week: they are shown, and removed by the next copy. */

export const STALE_MS = 7 * 86_400_000

/** Conditions for find(1), for files of the user $ME. It counts whole days: more than 6 are at least 7. */
export const STALE_PARTIALS = `-name '.muster-????????????????.*.*' -type f -user "$ME" -mtime +6`
