/** `muster demo`: the console on SSH servers that Muster starts itself, for a user who has no machine at hand. */
import { mkdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { KeptPromise } from '../../base/kept-promise.ts'
import { watchDirectory } from '../../base/watch-directory.ts'
import { expandHostSet, foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { embeddedEndpoints, startEmbeddedHosts } from '../../ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../terminal/local-pty.ts'
import { wholeNumber } from '../command-line/options.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { requireTerminal } from '../console/require-terminal.ts'
import { runConsole } from '../console/run-console.ts'
import { demoResources, formatHostsFile, HOSTS_FILE, musterCommand, STATE, TRAIN_COMMAND } from './demo-jobs.ts'

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
      endpoints,
      groups: inventory.groups,
      options,
      declared: {
        inventory: { hosts: [], groups: new Map() },
        endpoints: async () => endpoints,
      },
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

const commands = () => [
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
    hosts: names.map((name, index) => ({ name, number: index + 1, resources: demoResources(index) })),
    groups: new Map(names.length > 1 ? groups : []),
  }
}
