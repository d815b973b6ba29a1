/** `muster demo`: the console on SSH servers of this program's own, for somebody who has no machine at hand. */
import { mkdirSync, watch } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { MusterError } from '../../base/errors.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { embeddedEndpoints, startEmbeddedHosts } from '../../ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../terminal/local-pty.ts'
import type { CliContext, GlobalOptions, Outcome } from '../command-line/context.ts'
import { requireTerminal, runConsole } from '../run-console.ts'
import { demoResources } from './demo-jobs.ts'
import type { DemoQueue } from './demo-queue.ts'
import { formatHostsFile, HOSTS_FILE, musterCommand, STATE } from './muster-command.ts'
import { TRAIN_COMMAND } from './train-command.ts'

function demoCount(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > 200)
    throw new InvalidArgumentError('It has to be a whole number from 1 to 200.')
  return value
}

export function registerDemo(program: Command, context: CliContext, outcome: Outcome): void {
  program
    .command('demo')
    .description('the console on embedded SSH hosts: nothing to set up, no root')
    .option('--count <n>', 'how many hosts', demoCount, 6)
    .addHelpText('after', '\nExamples:\n  muster demo\n  muster demo --count 12\n')
    .action(async ({ count }: { count: number }) => {
      requireTerminal(context)
      await using embedded = await startEmbeddedHosts({ count, spawnPty: spawnLocalPty, commands: commands() })
      const { directory } = embedded
      const endpoints = embeddedEndpoints(embedded)
      const inventory = demoInventory(endpoints.map(({ host }) => host))
      await writeFile(join(directory, HOSTS_FILE), formatHostsFile(inventory))
      let opening: Promise<DemoQueue> | undefined
      const openQueue = (): Promise<DemoQueue> => {
        opening ??= import('./demo-queue.ts').then(({ openDemoQueue }) =>
          openDemoQueue({ directory, inventory, endpoints, context }),
        )
        opening.catch(() => {
          opening = undefined
        })
        return opening
      }
      await using _queue = {
        // Also one that is not open yet when the console is left.
        async [Symbol.asyncDispose]() {
          await opening?.then(
            (demo) => demo[Symbol.asyncDispose](),
            () => undefined,
          )
        },
      }
      using _wanted = onFirstUse(join(directory, STATE), () => void openQueue().catch(() => undefined))
      outcome.exitCode = await runConsole(context, {
        cluster: 'demo',
        endpoints,
        groups: inventory.groups,
        options: program.opts<GlobalOptions>(),
        declared: {
          inventory: { hosts: [], groups: new Map(), nfs: [] },
          endpoints: async () => endpoints,
        },
        openQueue: async () => (await openQueue()).queue,
        resolveNewHosts: () =>
          Promise.reject(
            new MusterError('usage', 'the demo has only its own hosts', { hint: 'muster TARGET opens real ones.' }),
          ),
      })
    })
}

const commands = () => [
  {
    name: 'train',
    script: TRAIN_COMMAND,
    example: 'train --steps 10',
    about: 'an invented training: jobs of the queue run it',
  },
  {
    name: 'muster',
    script: musterCommand(),
    example: 'muster job submit -- train',
    about: 'a job for the queue: Ctrl-] 5 shows it',
  },
]

/** What hosts change in a directory; where the system does not tell it, the queue begins when it is looked at. */
function onFirstUse(directory: string, onUse: () => void): Disposable {
  mkdirSync(directory)
  try {
    const watcher = watch(directory, { persistent: false }, onUse)
    watcher.on('error', () => watcher.close())
    return { [Symbol.dispose]: () => watcher.close() }
  } catch {
    return { [Symbol.dispose]() {} }
  }
}

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
    nfs: [],
  }
}
