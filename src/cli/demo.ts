/** `muster demo`: the console on SSH servers of this program's own, for somebody who has no machine at hand. */
import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { MusterError } from '../base/errors.ts'
import type { Inventory } from '../inventory/inventory.ts'
import { embeddedEndpoints, startEmbeddedHosts } from '../ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../terminal/local-pty.ts'
import type { CliContext, GlobalOptions, Outcome } from './context.ts'
import { demoResources } from './demo/demo-jobs.ts'
import type { DemoQueue } from './demo/demo-queue.ts'
import { requireTerminal, runConsole } from './run-console.ts'

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
      await using embedded = await startEmbeddedHosts({ count, spawnPty: spawnLocalPty })
      const endpoints = embeddedEndpoints(embedded)
      const inventory = demoInventory(endpoints.map(({ host }) => host))
      const openings: Promise<DemoQueue>[] = []
      await using _queues = {
        // Also one that is not open yet when the console is left.
        async [Symbol.asyncDispose]() {
          for (const opening of openings)
            await opening.then(
              (demo) => demo[Symbol.asyncDispose](),
              () => undefined,
            )
        },
      }
      outcome.exitCode = await runConsole(context, {
        cluster: 'demo',
        endpoints,
        groups: inventory.groups,
        options: program.opts<GlobalOptions>(),
        declared: {
          inventory: { hosts: [], groups: new Map(), nfs: [] },
          endpoints: async () => endpoints,
        },
        openQueue: async () => {
          const opening = import('./demo/demo-queue.ts').then(({ openDemoQueue }) =>
            openDemoQueue({ directory: embedded.directory, inventory, endpoints, context }),
          )
          openings.push(opening)
          return (await opening).queue
        },
        resolveNewHosts: () =>
          Promise.reject(
            new MusterError('usage', 'the demo has only its own hosts', { hint: 'muster TARGET opens real ones.' }),
          ),
      })
    })
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
