/** `muster` on the hosts of the demo: verbs of the demo's queue that need no connection. */
import { shellQuote } from '../../base/shell-quote.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { ownCommand } from '../command-line/own-command.ts'

const GIB = 2 ** 30
const VERBS = ['submit', 'list', 'show', 'results', 'wait', 'cancel', 'hold', 'release', 'retry', 'requeue', 'edit']

/** Beside the hosts' home directories: the queue's directory, and a file that is touched when a host uses it. */
export const STATE = 'state'
const WANTED = `${STATE}/wanted`
export const HOSTS_FILE = 'hosts.yaml'

export function musterCommand(): string {
  return `#!/bin/sh
# The queue of the demo. Only the demo reaches its hosts.
case "\${1-} \${2-}" in
  'pack '* | ${VERBS.map((verb) => shellQuote(`job ${verb}`)).join(' | ')}) ;;
  *) echo "muster: the demo has only: muster pack, muster job ${VERBS.join(' | ')}" >&2; exit 2 ;;
esac
d=\${HOME%/*}
true >"$d/${WANTED}"
XDG_STATE_HOME="$d/${STATE}" exec ${ownCommand().map(shellQuote).join(' ')} --hosts "$d/${HOSTS_FILE}" "$@"
`
}

/** JSON is YAML. */
export function formatHostsFile({ cluster, hosts, groups }: Inventory): string {
  const declared = hosts.map(({ name, resources: { cpu, gpu, memoryBytes = 0 } = {} }) => [
    name,
    { address: 'demo.invalid', resources: { cpu, gpu, memory: `${memoryBytes / GIB}GiB` } },
  ])
  return JSON.stringify({
    cluster,
    hosts: Object.fromEntries(declared),
    groups: Object.fromEntries([...groups].map(([name, members]) => [name, members.join()])),
  })
}

export const TRAIN_COMMAND = `#!/bin/sh
# A pretended training run: prints a loss and an accuracy from time to time, and does nothing else.
lr=0.01 batch=64 steps=30 every=2
while [ $# -gt 0 ]; do
  case "$1" in
    --lr) lr=$2 ;;
    --batch) batch=$2 ;;
    --steps) steps=$2 ;;
    --every) every=$2 ;;
    *) echo "usage: train [--lr RATE] [--batch SIZE] [--steps COUNT] [--every SECONDS]" >&2; exit 2 ;;
  esac
  shift 2 || exit 2
done
exec awk -v lr="$lr" -v batch="$batch" -v steps="$steps" -v every="$every" 'BEGIN {
  far = log(lr / 0.01); least = 0.15 + 0.09 * far * far + batch / 1600
  for (step = 1; step <= steps; step++) {
    if (system("sleep " every) != 0) exit 130
    loss = least + 2 * exp(-4 * step / steps) + 0.02 * sin(step * batch)
    printf "step %d/%d loss=%.4f acc=%.3f\\n", step, steps, loss, exp(-loss / 2)
    fflush()
  }
}'
`
