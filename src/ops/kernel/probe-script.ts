/**
 * The parts of a POSIX script that asks many things at once: each by itself in the background, so that one that hangs costs
 * the others nothing, and each answer behind a line that nothing else on the host prints. It writes no file.
 */

/** A single program that hangs is killed after this long, where `timeout` or perl can do that. */
export const PROGRAM_LIMIT_S = 3
/** What `timeout` (coreutils 124 and 137, busybox 143) and perl's alarm (142) leave as exit status. */
export const STATUSES_OF_LIMIT: readonly number[] = [124, 137, 142, 143]

/** `limited COMMAND` runs a program under the time limit, times the factor; `overdue STATUS` tells that it was ended by it. */
export function limitedFunctions(limitFactor = 1): string {
  const limitS = Math.ceil(PROGRAM_LIMIT_S * limitFactor)
  return `if timeout -s KILL 1 true; then limited() { timeout -s KILL ${limitS} "$@"; }
elif timeout -t 1 true; then limited() { timeout -t ${limitS} "$@"; }
elif perl -e 1; then limited() { perl -e 'alarm ${limitS}; exec @ARGV' "$@"; }
else limited() { "$@"; }
fi
overdue() { case $1 in ${STATUSES_OF_LIMIT.join(' | ')}) ;; *) return 1 ;; esac; }`
}

/**
 * `flatten` makes one line of `$said`, for answers that are written side by side: bash writes what it prints line by line, so
 * that only single lines stay whole. Line breaks become 0x1f and empty lines vanish; to be called in a subshell.
 */
export const FLATTEN = `us=$(printf '\\037'); nl='
'
flatten() { set -f; IFS=$nl; set -- $said; IFS=$us; said=$*; }`

const UNIT_SEPARATOR = '\x1f'

export type Section = { readonly status: number; readonly text: string }

/** The last words of an answer. */
export function endMark(mark: string): string {
  return `\n${mark} end 0\n`
}

/** The sections of an answer, whole or cut off: `NAME STATUS` and the text on the lines below, or in the same line flattened. */
export function sectionsOf(answer: string, mark: string): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>()
  for (const section of answer.split(`\n${mark} `).slice(1)) {
    const match = /^([a-z0-9-]+) (\d+)(?:\x1f([^\n]*)|\n([\s\S]*)$)/.exec(section)
    if (match === null) continue
    const [, name = '', status, flat, text = ''] = match
    sections.set(name, { status: Number(status), text: flat?.replaceAll(UNIT_SEPARATOR, '\n') ?? text })
  }
  return sections
}
