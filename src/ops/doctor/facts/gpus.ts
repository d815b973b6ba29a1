/** How many GPUs a machine has, and whether their driver answers. */
import { OTHER_ACCELERATORS } from '../../../base/accelerators.ts'
import { defined } from '../../../base/defined.ts'
import type { Fact } from '../../kernel/fact.ts'
import { parseCount, parsePairs } from './machine.ts'

export type Gpus = {
  /** Undefined: nvidia-smi failed before it listed one. */
  readonly count?: number
  /** How nvidia-smi ended, and its first line that lists no GPU; empty: there is none. */
  readonly failure?: { readonly status: number; readonly line: string }
}

/** Without a GPU nvidia-smi fails, too; some versions exit with 0. */
const NONE = /\bno (supported )?(devices|gpus)( were)? found/i

/**
 * Parts of a GPU (MIG) are indented in the list, and not counted. Where nvidia-smi is missing and there may be accelerators of
 * another maker, the number is unknown.
 */
export const gpusFact: Fact<Gpus> = {
  script: `
PATH=$PATH:/usr/local/bin:/usr/bin:/usr/local/nvidia/bin:/usr/lib/wsl/lib
if command -v nvidia-smi > /dev/null; then
  # 16 GPUs with 7 parts each fit. Of a flood the status is cut off.
  list=$({ limited nvidia-smi -L 2>&1; echo "status=$?"; } | head -c 16384)
  status=\${list##*status=}
  case $status in '' | *[!0-9]*) return 1;; esac
  overdue $status && return $status
  list=\${list%status=*}
  echo "count=$(printf '%s\\n' "$list" | grep -c '^GPU [0-9][0-9]*:')"
  [ $status = 0 ] && return 0
  echo "status=$status"
  printf 'line=%.300s\\n' "$(printf '%s\\n' "$list" | sed -n '/^GPU [0-9][0-9]*:/d; /^  *MIG /d; /[^ ]/!d; p; q')"
else
  set -- /dev/nvidia[0-9]*
  if [ -c "$1" ]; then echo "count=$#"; return 0; fi
  for each in /dev/dri/renderD* ${OTHER_ACCELERATORS.map((name) => `/dev/${name}`).join(' ')}; do
    [ ! -e "$each" ] || return 0
  done
  # Only Linux has it; elsewhere the files have other names.
  [ ! -d /sys/class ] || echo count=0
fi
`,
  parse(text) {
    const pairs = parsePairs(text)
    const count = parseCount(pairs.get('count'))
    if (count === undefined) return undefined
    const status = parseCount(pairs.get('status'))
    const line = pairs.get('line') ?? ''
    if (status === undefined || (count === 0 && NONE.test(line))) return { count }
    return { ...defined({ count: count === 0 ? undefined : count }), failure: { status, line } }
  },
}
