/** What up, down and status share before the first connection: the areas that hosts.yaml declares, and the way to their hosts. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { accountName } from '../../base/account.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { fileTitle, type Inventory, resolveTarget } from '../../inventory/inventory.ts'
import { loadInventory } from '../../inventory/load-inventory.ts'
import { nearestWord } from '../../inventory/nearest-word.ts'
import { localEndpoint, resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { type Area, type Declared, prepareAreas } from '../../ops/kernel/area.ts'
import type { AreaEntry } from '../../ops/kernel/area-entry.ts'
import { type OpsHosts, THIS_MACHINE } from '../../ops/kernel/host-port.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { endpointOptions, inventorySource, selectionOf } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { AREAS, loadAreas } from './areas.ts'

const USUAL_CONNECT_TIMEOUT_S = 10

export type BringUpOptions = GlobalOptions & { readonly on?: string }

export type Prepared = Disposable & {
  readonly inventory: Inventory
  readonly areas: readonly Area[]
  readonly declared: Declared
  readonly hosts: OpsHosts
  readonly dialog: TtyDialog
  /** Random letters and digits. */
  readonly mark: string
  readonly fanOut: number
  readonly limitFactor: number
  /** Shown to another Muster that finds a host locked. */
  readonly owner: string
  isSelected(host: string): boolean
}

/** @throws MusterError `usage` or `configuration` */
export async function prepareBringUp(
  names: readonly string[],
  options: BringUpOptions,
  context: CliContext,
  { usualConnectTimeoutMs }: { readonly usualConnectTimeoutMs?: number } = {},
): Promise<Prepared> {
  const entries = chooseAreas(names)
  const selection = await selectionOf(options.on, options, context)
  const inventory = await loadInventory(inventorySource(options, context))
  const selected = new Set(
    resolveTarget(inventory, options.on, { ...selection, mayBeEmpty: true, isOfInventory: true }).map(
      ({ name }) => name,
    ),
  )
  const endpoints = await resolveEndpoints(inventory, inventory.hosts, {
    ...endpointOptions(options, context),
    ...(usualConnectTimeoutMs === undefined ? {} : { usualConnectTimeoutMs }),
  })
  const { areas, declared } = await prepareAreas(await loadAreas(entries), inventory, endpoints)
  const missing = names.find((name) => !areas.some((area) => area.name === name))
  if (missing !== undefined || areas.length === 0) {
    const sought = missing === undefined ? AREAS : chooseAreas([missing])
    // As they are written in the file: `environment`, not `env`.
    const keys = await Promise.all(sought.map(async ({ section }) => (await section()).section.key))
    const words = `${missing === undefined ? 'any of ' : ''}${keys.join(', ')}`
    throw new MusterError('configuration', `${fileTitle(inventory)} does not declare ${words}`, {
      hint: 'docs/hosts-yaml.md shows how.',
    })
  }
  if (options.on !== undefined) checkConcerned([...selected], areas, inventory)

  const isHere = areas.some((area) => area.hosts.includes(THIS_MACHINE)) && !selected.has(THIS_MACHINE)
  const own = isHere ? [localEndpoint(THIS_MACHINE, endpointOptions(options, context))] : []
  const dialog = new TtyDialog()
  const opened = openOpsHosts([...endpoints, ...own], options, context, dialog, namesOf(areas, endpoints))
  return {
    inventory,
    areas,
    declared,
    hosts: opened.hosts,
    dialog,
    mark: newMark(),
    fanOut: opened.fanOut,
    limitFactor: limitFactorOf(options),
    owner: ownerWords(context.now()),
    isSelected: (host) => selected.has(host) || (isHere && host === THIS_MACHINE && options.on === undefined),
    [Symbol.dispose]: () => opened[Symbol.dispose](),
  }
}

/** @throws MusterError `usage` when no area has any of the hosts, which would look as if nothing had to be done on them */
function checkConcerned(hosts: readonly string[], areas: readonly Area[], inventory: Inventory): void {
  if (hosts.length === 0 || areas.some((area) => area.hosts.some((host) => hosts.includes(host)))) return
  const words = areas.map(({ name, hosts: own }) => `${name}: ${foldHostSet(own)}`)
  throw new MusterError(
    'usage',
    `--on: ${fileTitle(inventory)} does not declare ${areas.map(({ name }) => name).join(', ')} for ${foldHostSet(hosts)}`,
    {
      hint: `Declared hosts are ${words.join('; ')}.`,
    },
  )
}

/** A longer time to connect also means a longer time to answer. */
export function limitFactorOf({ connectTimeout = 0 }: GlobalOptions): number {
  return Math.max(1, connectTimeout / USUAL_CONNECT_TIMEOUT_S)
}

/** Random letters and digits, which no output of a host contains by chance. */
export function newMark(): string {
  return `m${randomBytes(8).toString('hex')}`
}

/** What another Muster shows that finds a host locked by this one. */
export function ownerWords(nowMs: number): string {
  return `${accountName()}@${hostname()}, process ${process.pid}, since ${new Date(nowMs).toISOString()}`
}

function chooseAreas(names: readonly string[]): readonly AreaEntry[] {
  const known = AREAS.map(({ name }) => name)
  for (const name of names) {
    if (known.includes(name)) continue
    const near = nearestWord(name, known)
    throw new MusterError('usage', `unknown area: ${printable(name)}`, {
      hint: near === undefined ? `Areas: ${known.join(', ')}.` : `Did you mean ${near}?`,
    })
  }
  return names.length === 0 ? AREAS : AREAS.filter(({ name }) => names.includes(name))
}

function namesOf(areas: readonly Area[], endpoints: readonly Endpoint[]): string[] {
  const inAreas = new Set(areas.flatMap((area) => area.hosts))
  return endpoints.flatMap(({ host }) => (inAreas.has(host) ? [host] : []))
}
