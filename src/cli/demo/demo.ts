/** `muster demo`: the console on SSH servers that Muster starts itself, for a user who has no machine at hand. */
import { mkdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { KeptPromise } from '../../base/kept-promise.ts'
import { watchDirectory } from '../../base/watch-directory.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { expandHostSet, foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { withBlock } from '../../ops/kernel/block.ts'
import { configLines } from '../../ops/trust/plan.ts'
import { section } from '../../ops/trust/section.ts'
import { embeddedEndpoints, startEmbeddedHosts } from '../../ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../terminal/local-pty.ts'
import { wholeNumber } from '../command-line/options.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { requireTerminal } from '../console/require-terminal.ts'
import { runConsole } from '../console/run-console.ts'
import { demoHost, formatHostsFile, HOSTS_FILE, musterCommand, STATE, TRAIN_COMMAND } from './demo-jobs.ts'

export const verb: VerbCode = {
  define: (command) => command.option('--count <n>', 'start N hosts', wholeNumber(1, 200), 6),
  help: `
Examples:
  muster demo
  muster demo --count 12
`,
  async run(options: GlobalOptions & { readonly count: number }, context: CliContext) {
    requireTerminal(context)
    await using embedded = await startEmbeddedHosts({
      count: options.count,
      spawnPty: spawnLocalPty,
      commands: commands(),
    })
    const { directory } = embedded
    const endpoints = embeddedEndpoints(embedded)
    const inventory = demoInventory(endpoints.map(({ host }) => host))
    await plantDrift(directory, endpoints)
    await writeFile(join(directory, HOSTS_FILE), formatHostsFile(inventory))
    const opening = new KeptPromise(async () => {
      const { openDemoQueue } = await import('./demo-queue.ts')
      return await openDemoQueue({ directory, inventory, endpoints, context })
    })
    await using _queue = {
      // Also one that is still opening when the user leaves.
      async [Symbol.asyncDispose]() {
        await opening.made?.then(
          (demo) => demo[Symbol.asyncDispose](),
          () => undefined,
        )
      },
    }
    // Jobs that hosts submit open the queue. Where the system cannot watch the directory, its tab does.
    mkdirSync(join(directory, STATE))
    using _wanted = watchDirectory(join(directory, STATE), () => void opening.get().catch(() => undefined))
    return await runConsole(context, {
      cluster: 'demo',
      hosts: endpoints,
      endpoints: Promise.resolve(endpoints),
      groups: inventory.groups,
      options,
      declared: { inventory, endpoints: async () => endpoints },
      stateDirectory: join(directory, STATE),
      openQueue: async () => (await opening.get()).queue,
      resolveNewHosts: async (expression) => {
        const names = endpoints.map(({ host }) => host)
        const wanted = expandHostSet(expression, { names, group: (name) => inventory.groups.get(name) })
        if (!wanted.every((host) => names.includes(host))) {
          const hint = 'To open real ones: muster TARGET'
          throw new MusterError('usage', `the demo has only its own hosts: ${foldHostSet(names)}`, { hint })
        }
        return endpoints.filter(({ host }) => wanted.includes(host))
      },
    })
  },
}

/** Only some hosts get trust: bring-up tries every pair, and all of them are this machine. */
const MESH_HOSTS = 6

/** One host remembers an earlier mesh, in which the first host had another port. */
async function plantDrift(directory: string, endpoints: readonly Endpoint[]): Promise<void> {
  const drifted = endpoints[2]
  if (drifted === undefined) return
  const members = endpoints.slice(0, MESH_HOSTS).map(({ host, ...rest }, at) => {
    return { ...rest, name: host, port: at === 0 ? 22 : rest.port }
  })
  const home = join(directory, drifted.host, '.ssh')
  await mkdir(home, { mode: 0o700 })
  await writeFile(join(home, 'config'), withBlock(undefined, 'trust', configLines(members), 'top'), { mode: 0o600 })
}

/** The machine's ssh with the files of the demo host; by default ssh reads the account's home and ignores HOME. */
const SSH_COMMAND = `#!/bin/sh
PATH=\${PATH#"\${0%/*}":}
d=$HOME/.ssh
[ ! -e "$d/id_muster" ] || set -- -i "$d/id_muster" "$@"
[ -e "$d/config" ] && c=$d/config || c=/dev/null
exec ssh -F "$c" -o "UserKnownHostsFile $d/known_hosts" -o "GlobalKnownHostsFile /dev/null" "$@"
`

const commands = () => [
  {
    name: 'ssh',
    script: SSH_COMMAND,
    example: 'ssh m2',
    about: 'works between the hosts after bring-up: Ctrl-] 2, u, y',
  },
  {
    name: 'train',
    script: TRAIN_COMMAND,
    example: 'train --steps 10',
    about: 'a pretended training run, for jobs of the queue',
  },
  {
    name: 'muster',
    script: musterCommand(),
    example: 'muster job submit -- train',
    about: 'submit a job: Ctrl-] 5 shows it',
  },
]

function demoInventory(names: readonly string[]): Inventory {
  const half = Math.ceil(names.length / 2)
  const groups = [
    ['head', names.slice(0, 1)],
    ['odd', names.filter((_, index) => index % 2 === 0)],
    ['first-half', names.slice(0, half)],
  ] as const
  return {
    cluster: 'demo',
    hosts: names.map(demoHost),
    groups: new Map(names.length > 1 ? groups : []),
    sections: new Map(names.length > 1 ? [[section.key, names.slice(0, MESH_HOSTS)]] : []),
  }
}
