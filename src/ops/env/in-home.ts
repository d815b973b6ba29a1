/** Whether an environment, and what is brought for it, lie in the home directory and not on another file system below it. */
import type { Fact } from '../kernel/fact.ts'
import { pathWord } from '../kernel/files.ts'

export type InHome = { readonly environment: boolean; readonly parcel: boolean }

/** `find`: lines that set $p to the environment's path, or leave it empty where that is `otherwise`. */
export function inHomeFact(find: string, otherwise: string, parcel: string): Fact<InHome> {
  return {
    script: `below() {
  d=$1
  while [ ! -d "$d" ] && [ -n "$d" ]; do d=\${d%/*}; done
  d=$(cd -P "\${d:-/}" && pwd -P) && h=$(cd -P "$HOME" && pwd -P) || return
  case $d/ in "$h"/*) ;; *) return 1;; esac
  [ "$(mounted "$d")" = "$(mounted "$h")" ]
}
mounted() { limited df -P "$1" | sed -n '$s/^.*% //p'; }
${find}
below "\${p:-${otherwise}}" && echo environment
below ${pathWord(parcel)} && echo parcel
echo end`,
    parse(text) {
      const lines = text.split('\n')
      if (lines.at(-1) !== 'end') return undefined
      return { environment: lines.includes('environment'), parcel: lines.includes('parcel') }
    },
  }
}
