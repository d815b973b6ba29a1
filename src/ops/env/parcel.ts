/** A parcel: what one host made for the others, in a directory of its own, with a list of what it is. */
import type { Fact } from '../kernel/fact.ts'
import { pathWord } from '../kernel/files.ts'

export type ParcelFacts = {
  readonly isThere: boolean
  /** The lines of its list; undefined: it is incomplete. */
  readonly content?: readonly string[]
}

/** `content`: the name of the list in it. */
export function parcelFact(directory: string, content: string): Fact<ParcelFacts> {
  return {
    script: `d=${pathWord(directory)}
limited ls -d "$d" > /dev/null || { overdue $? && return 124; echo none; return; }
echo there
[ ! -f "$d/${content}" ] || head -c 400000 "$d/${content}"`,
    parse(text) {
      const [first, ...lines] = text.split('\n')
      if (first === 'none') return { isThere: false }
      if (first !== 'there') return undefined
      return lines.length === 0 ? { isThere: true } : { isThere: true, content: lines }
    },
  }
}

/** A check: all files that the list names after ` # ` exist. */
export function parcelCheck(directory: string, content: string): string {
  return `d=${pathWord(directory)}
[ -f "$d/${content}" ] || exit 1
sed -n 's/.* # //p' "$d/${content}" | while read -r f; do [ -f "$d/$f" ] || exit 1; done`
}

/** Removes it, the scratch directories of interrupted runs beside it (venv-scripts.ts), and parent directories that are then empty. */
export function removeParcel(directory: string): string {
  return `p=${pathWord(directory)}\n${PARCEL_REMOVE}`
}

/** The same for "$p". */
export const PARCEL_REMOVE = `rm -rf "$p" "$p".tmp-* || exit 1
case $p in */.cache/muster/env/*) cd "$HOME" && rmdir -p .cache/muster/env;; *) rmdir "\${p%/*}";; esac 2> /dev/null
:`
