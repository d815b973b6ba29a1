/** `muster job work --install` and `--uninstall`: the scheduler as a service of this machine, as a plan that is asked about. */
import { homedir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { MusterError } from '../../../base/errors.ts'
import { stateDirectory } from '../../../base/user-directories.ts'
import type { Inventory } from '../../../inventory/inventory.ts'
import { loadInventory } from '../../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../../inventory/resolve-endpoints.ts'
import { changeAreas } from '../../bring-up/change.ts'
import type { CliContext, GlobalOptions } from '../../command-line/context.ts'
import { ownCommand } from '../../command-line/own-command.ts'
import { inventorySource } from '../../connect/endpoints.ts'
import { openOpsHosts } from '../../connect/ops-hosts.ts'
import { TtyDialog } from '../../connect/tty-dialog.ts'
import type { Hooks } from '../notify.ts'
import { queueName } from '../open-queue.ts'
import { serviceArea } from './area.ts'
import type { Service } from './texts.ts'

export type WorkOptions = GlobalOptions & {
  readonly untilEmpty?: boolean
  readonly preempt?: boolean
  readonly keep?: number
  readonly install?: boolean
  readonly uninstall?: boolean
  readonly dryRun?: boolean
} & Hooks

/** As the machine is called in the plan. */
const HERE = 'localhost'

/** @throws MusterError */
export async function changeService(
  direction: 'up' | 'down',
  options: WorkOptions,
  context: CliContext,
): Promise<number> {
  const inventory = await loadInventory(inventorySource(options, context))
  const service = serviceOf(inventory, options, context)
  const { environment: env, signal } = context
  const endpoints = await resolveEndpoints(
    { hosts: [], groups: new Map() },
    [{ name: HERE, number: 1, transport: 'local' }],
    { env, signal },
  )
  const dialog = new TtyDialog()
  using opened = openOpsHosts(endpoints, options, context, dialog)
  const areas = [serviceArea(service, HERE)]
  return await changeAreas(direction, areas, { hosts: opened.hosts, dialog, fanOut: 1 }, options, context)
}

/** @throws MusterError `usage` */
export function serviceOf(inventory: Inventory, options: WorkOptions, context: CliContext): Service {
  const { environment, workingDirectory } = context
  if (options.untilEmpty === true)
    throw new MusterError('usage', '--until-empty cannot be used with --install: a service runs until it is stopped')
  if (inventory.file === undefined || options.hosts === '-')
    throw new MusterError('usage', 'a service needs a hosts file: give it with --hosts FILE')
  const file = resolve(workingDirectory, inventory.file)
  const { connectTimeout, fanOut, persist, preempt, keep, onEnd, onFail } = options
  return {
    cluster: queueName(inventory),
    words: [
      ...ownCommand(),
      ...optionWords({ hosts: file, 'connect-timeout': connectTimeout, 'fan-out': fanOut, persist }),
      ...['job', 'work'],
      ...optionWords({ preempt, keep, 'on-end': onEnd, 'on-fail': onFail }),
    ],
    directory: dirname(file),
    environment: {
      HOME: environment.HOME || homedir(),
      PATH: environment.PATH || '/usr/local/bin:/usr/bin:/bin',
      ...kept(environment, ['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME']),
    },
    isRoot: process.getuid?.() === 0,
    stateDirectory: stateDirectory(environment),
  }
}

/** `--name value` for each option that is given; `--name` alone where it is true. */
function optionWords(options: Readonly<Record<string, string | number | boolean | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return []
    return value === true ? [`--${name}`] : [`--${name}`, String(value)]
  })
}

function kept(environment: CliContext['environment'], names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name]
      return value === undefined || value === '' ? [] : [[name, value] as const]
    }),
  )
}
