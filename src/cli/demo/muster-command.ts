/** `muster` on hosts of the demo: the verbs of the queue that need no connection, on the queue of the demo. */
import { join } from 'node:path'
import { packageRoot } from '../../base/package-root.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { quote } from '../../scheduler/jobs/host-program.ts'

const GIB = 2 ** 30
const VERBS = ['submit', 'list', 'show', 'results', 'wait', 'cancel', 'hold', 'release', 'retry', 'requeue', 'edit']

/** What hosts find beside their homes: the queue's directory, and the file whose change says that somebody uses it. */
export const STATE = 'state'
const WANTED = `${STATE}/wanted`
export const HOSTS_FILE = 'hosts.yaml'

export function musterCommand(): string {
  return `#!/bin/sh
# The queue of the demo. Its hosts are reached by nobody but the demo.
case "\${1-} \${2-}" in
  'pack '* | ${VERBS.map((verb) => quote(`job ${verb}`)).join(' | ')}) ;;
  *) echo "muster: a host of the demo knows: muster pack, muster job ${VERBS.join(' | ')}" >&2; exit 2 ;;
esac
d=\${HOME%/*}
true >"$d/${WANTED}"
XDG_STATE_HOME="$d/${STATE}" exec ${programWords().map(quote).join(' ')} --hosts "$d/${HOSTS_FILE}" "$@"
`
}

/** As this program was started, from whatever directory. */
function programWords(): readonly string[] {
  const main = join(packageRoot(), import.meta.filename.endsWith('.ts') ? 'src/main.ts' : 'dist/main.js')
  const options = process.execArgv.filter((option) => !option.startsWith('--inspect'))
  const whole = options.map((option, index) =>
    options[index - 1] === '--import' && /^[a-z@]/.test(option) && !option.startsWith('file:')
      ? import.meta.resolve(option)
      : option,
  )
  return [process.execPath, ...whole, main]
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
