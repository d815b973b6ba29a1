/** How many GPUs a machine has, and whether their driver answers. */
import { defined } from '../../../base/defined.ts'
import type { Fact } from '../../kernel/fact.ts'
import { parseCount, parsePairs } from './machine.ts'

/** `failure`: what nvidia-smi said in place of its list. */
export type Gpus = { readonly count: number; readonly failure?: string }

/** Where GPUs of another maker may be, the number is unknown. Parts of a GPU (MIG) are indented in the list, and not counted. */
export const gpusFact: Fact<Gpus> = {
  script: `
PATH=$PATH:/usr/local/bin:/usr/local/nvidia/bin
if command -v nvidia-smi > /dev/null; then
  list=$(limited nvidia-smi -L 2>&1)
  status=$?
  overdue $status && return $status
  [ $status = 0 ] || printf 'failure=%.300s\\n' "$(printf '%s\\n' "$list" | head -n 1)"
  echo "count=$(printf '%s\\n' "$list" | grep -c '^GPU [0-9][0-9]*:')"
else
  set -- /dev/nvidia[0-9]*
  if [ -e "$1" ]; then echo "count=$#"
  elif [ -e /dev/kfd ] || [ -e /dev/dri/renderD128 ]; then :
  else echo count=0
  fi
fi
`,
  parse(text) {
    const pairs = parsePairs(text)
    const count = parseCount(pairs.get('count'))
    return count === undefined ? undefined : { count, ...defined({ failure: pairs.get('failure') }) }
  },
}
