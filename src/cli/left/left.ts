/** `muster left [TARGET]`: asks hosts what Muster left there, and shows it as a table or removes it as a change with a plan. */

import { MusterError } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import type { LeftSearch } from '../../base/left.ts'
import { printable } from '../../base/printable.ts'
import { formatDuration } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { type FactsByArea, gatherAreaFacts } from '../../ops/kernel/bring-up.ts'
import { filesLeft, pathWord } from '../../ops/kernel/files.ts'
import { type HostLeftover, type LeftAreas, type LeftRoom, leftAreas, roomOfSearch } from '../../ops/kernel/left.ts'
import type { Plan } from '../../ops/kernel/plan.ts'
import { iperfLeft } from '../../ops/net/mesh/install-iperf.ts'
import { jobsLeft, type OwnQueue } from '../../scheduler/jobs/left.ts'
import { copyLeft, execLeft, persistLeft } from '../../ssh/left.ts'
import { AREAS } from '../bring-up/areas.ts'
import { changeAreas } from '../bring-up/change.ts'
import { limitFactorOf, newMark } from '../bring-up/prepare.ts'
import { BringUpReport, tally, tallyWords } from '../bring-up/report.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { endpointOptions, selectTarget } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { isQueueAt, queuePath, readQueue } from '../job/open-queue.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { progressOf } from '../output/progress.ts'
import { formatTable, type TableOutput } from '../output/table.ts'

type LeftOptions = GlobalOptions & {
  readonly remove?: boolean
  readonly area?: readonly string[]
  readonly also?: readonly string[]
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('[target]', 'hosts (default: all)')
      .option('--remove', 'show the plan, ask, and remove what nothing uses')
      .option('--dry-run', 'show what would be removed, without doing it')
      .option('--area <names>', 'search only these areas (default: all)', (text: string) => text.split(','))
      .option(
        '--also <dir>',
        'also search this directory of the hosts; can be given several times',
        (path: string, before: readonly string[] = []) => [...before, path],
      ),
  help: `
Examples:
  muster left                      what Muster left on each host of hosts.yaml
  muster left 'm[1-3]' --remove    show the plan, ask, and remove it
  muster left --remove --dry-run   show the plan only
  muster left --area jobs,copy     only these areas
  muster left --also /data         search /data for unfinished copies, too

left: it can be removed: nothing uses it, and this hosts.yaml does not declare it (another one may) ·
used: a process or a job uses it · declared: hosts.yaml declares it, and muster down removes it ·
kept: your data, or another account's · unknown: could not be determined.
The home directory and the directories for temporary files are searched, 7 levels deep, on one file system each.
Exit codes: 0 listed or removed, 4 a host could not be reached, 5 something could not be removed, 130 declined or interrupted.
`,
  async run(target: string | undefined, options: LeftOptions, context: CliContext) {
    const { inventory, hosts: selected } = await selectTarget(target, options, context)
    const names = selected.map(({ name }) => name)
    // Whether something is declared depends on addresses of all hosts.
    const all = [...new Set([...inventory.hosts, ...selected])]
    const endpoints = await resolveEndpoints(inventory, all, endpointOptions(options, context))
    const rooms = await chosenRooms(await ownQueue(inventory, options, context), options.area)
    const declared = { inventory, endpoints: new Map(endpoints.map((endpoint) => [endpoint.host, endpoint])) }
    const left = leftAreas(rooms, declared, names, (options.also ?? []).map(absoluteWord))
    const isShown = options.remove !== true
    const unsearched = roundsOf(left.areas, names)
    using screen = new LiveScreen({
      ...context,
      live: () =>
        isShown && options.json !== true ? [progressOf('searched', [...unsearched.keys()], names.length)] : [],
    })
    const dialog = new TtyDialog()
    using opened = openOpsHosts(endpoints, options, context, screen.quietly(dialog), names)
    const { hosts, fanOut } = opened
    const search = { hosts, mark: newMark(), limitFactor: limitFactorOf(options) * SEARCH_FACTOR }
    const notesOf = (areas: readonly string[]) => othersNotes(inventory, areas)
    if (!isShown) {
      const notesOfPlan = ({ operations }: Plan) =>
        notesOf(operations.flatMap(({ area, verdict }) => (verdict.kind === 'steps' ? [area] : [])))
      return await changeAreas(
        'down',
        left.areas,
        { ...search, dialog, fanOut, notesOf: notesOfPlan },
        options,
        context,
      )
    }
    const { signal, now } = context
    screen.refresh()
    const factsByArea = await gatherAreaFacts(left.areas, {
      ...search,
      signal,
      now,
      onHost({ host }) {
        if (signal.aborted) return
        const rest = (unsearched.get(host) ?? 1) - 1
        if (rest > 0) unsearched.set(host, rest)
        else unsearched.delete(host)
        screen.refresh()
      },
    })
    screen[Symbol.dispose]()
    return show({ ...left, notesOf }, factsByArea, [...unsearched.keys()], options, context)
  },
}

/** What people with other files have on the same hosts: a sentence, or none if none of these areas is one of bring-up. */
export function othersNotes({ file }: Pick<Inventory, 'file'>, areas: readonly string[]): readonly string[] {
  if (!areas.some((name) => AREAS.some((area) => area.name === name))) return []
  const what = file === undefined ? 'without a hosts.yaml, what' : `what ${file} does not declare and`
  return [`${what} nothing uses counts as left, even if another hosts.yaml declares it`]
}

/** Home directories are searched: that takes longer than other facts do. */
const SEARCH_FACTOR = 5
/** Longer lists are not sent to hosts: all jobs of the queue are then left alone. */
const MOST_KEPT = 1000

/** How often each host is asked: as root, too, where an area needs that. */
function roundsOf(areas: LeftAreas['areas'], names: readonly string[]): Map<string, number> {
  const rounds = (name: string) =>
    new Set(areas.flatMap(({ hosts, areFactsRoot }) => (hosts.includes(name) ? [areFactsRoot] : [])))
  return new Map(names.map((name) => [name, rounds(name).size]))
}

/** `unsearched`: the hosts that were not searched before the user stopped it. */
function show(
  { itemsOf, notesOf }: LeftAreas & { notesOf(areas: readonly string[]): readonly string[] },
  factsByArea: FactsByArea,
  unsearched: readonly string[],
  options: LeftOptions,
  context: CliContext,
): number {
  const { signal, now } = context
  const report = new BringUpReport(options, context)
  const items = itemsOf(factsByArea)
  const isStopped = signal.aborted && unsearched.length > 0
  const away = new Map([...factsByArea.values()].flatMap((areaFacts) => [...areaFacts.away]))
  if (options.json) for (const item of items) report.event(leftEvent(item))
  else if (items.length > 0 || !isStopped) context.stdout.write(formatLeft(items, now(), context.stdout))
  if (isStopped) {
    context.stderr.write(`muster: stopped; not searched: ${foldHostSet(unsearched)}\n`)
    return EXIT.interrupted
  }
  const leftIn = items.flatMap(({ area, state }) => (state.kind === 'left' ? [area] : []))
  for (const sentence of notesOf(leftIn)) report.say(sentence)
  for (const [host, reason] of away) report.say(`${host}: ${reason}`)
  const counts = tally(
    ['left', 'used', 'declared', 'kept', 'unknown'],
    items.map(({ state }) => state.kind),
  )
  const words = tallyWords(counts)
  if (away.size > 0) words.push(`${away.size} not reached`)
  const hint = counts.left > 0 ? '; to remove it: muster left --remove' : ''
  report.summary({ ...counts, unreachable: away.size }, `${words.join(', ') || 'Muster left nothing'}${hint}`)
  if (away.size > 0) return EXIT.unreachable
  return counts.unknown > 0 ? EXIT.incomplete : EXIT.ok
}

async function chosenRooms(queue: OwnQueue | undefined, names: readonly string[] | undefined) {
  const rooms = await leftRooms(queue)
  const known = rooms.map(({ name }) => name)
  const wrong = names?.find((name) => !known.includes(name))
  if (wrong !== undefined) {
    throw new MusterError('usage', `unknown area: ${printable(wrong)}${didYouMean(wrong, known)}`, {
      hint: `Areas: ${known.join(', ')}.`,
    })
  }
  return names === undefined ? rooms : rooms.filter(({ name }) => names.includes(name))
}

/** Of the queue on this machine, which is not made where there is none. */
async function ownQueue(
  inventory: Inventory,
  options: LeftOptions,
  context: CliContext,
): Promise<OwnQueue | undefined> {
  const path = queuePath(inventory, context)
  if (inventory.file === undefined || !isQueueAt(path)) return undefined
  using queue = await readQueue(options, context)
  const kept = queue.store.keptDirectories()
  const storages = queue.store.storages()
  return { id: queue.store.id, kept: kept.length > MOST_KEPT ? undefined : kept, storages }
}

function absoluteWord(path: string): string {
  if (!path.startsWith('/') && !path.startsWith('~/'))
    throw new MusterError('usage', `--also ${printable(path)}: give an absolute path, or one that begins with ~/`)
  return pathWord(path)
}

export function formatLeft(items: readonly HostLeftover[], nowMs: number, out: TableOutput): string {
  const rows = items.map(({ host, area, what, bytes, changedS, state }) => {
    const why = state.kind === 'left' ? '' : ` (${state.because})`
    const age = changedS === undefined ? '' : `${formatDuration(Math.max(0, nowMs - changedS * 1000))} ago`
    return [host, area, state.kind, bytes === undefined ? '' : formatBytes(bytes), age, `${what}${why}`]
  })
  return formatTable(['HOST', 'AREA', 'STATE', 'SIZE', 'CHANGED', 'WHAT'], rows, out)
}

/** docs/schema/left.schema.json */
export function leftEvent({ host, area, what, bytes, changedS, state }: HostLeftover): object {
  const because = state.kind === 'left' ? null : state.because
  const changed = changedS === undefined ? null : new Date(changedS * 1000).toISOString()
  return { type: 'left', host, area, state: state.kind, what, bytes: bytes ?? null, changed, because }
}

/** What Muster keeps for its user on this machine: listed, but not removed, except what Muster can create again. */
const recordsLeft: LeftSearch = {
  name: 'records',
  find: `state=\${XDG_STATE_HOME:-$HOME/.local/state}/muster
for each in "$state"/*; do
  case \${each##*/} in
    '*') ;;
    jobs)
      for file in "$each"/*.db; do [ ! -f "$file" ] || left_found queue "$file"; done
      for file in "$each"/work-*.sh; do [ ! -f "$file" ] || left_found service "$file"; done;;
    *) left_found records "$each";;
  esac
done
for each in "$HOME"/.config/systemd/user/muster-job-*.service /etc/systemd/system/muster-job-*.service; do
  [ ! -f "$each" ] || left_found service "$each"
done
[ ! -d "\${XDG_CACHE_HOME:-$HOME/.cache}/muster/compiled" ] || left_found compiled "\${XDG_CACHE_HOME:-$HOME/.cache}/muster/compiled"`,
  kinds: {
    queue: { title: 'queue of jobs', keep: 'your data; delete it by hand when you need none of its jobs' },
    records: { title: 'records', keep: 'your data (results, recordings, journals); delete it by hand' },
    service: { title: 'scheduler as a service', keep: 'to remove it: muster job work --uninstall' },
    compiled: { title: 'compiled code', remove: `rm -rf "$p" && rmdir "\${p%/*}" 2> /dev/null; :`, isBrief: true },
  },
}

export async function leftRooms(queue: OwnQueue | undefined): Promise<readonly LeftRoom[]> {
  const areas = await Promise.all(AREAS.map(({ load }) => load()))
  const searches = [jobsLeft(queue), copyLeft, execLeft, persistLeft, filesLeft, recordsLeft]
  return [...areas.flatMap(({ left = [] }) => left), iperfLeft, ...searches.map(roomOfSearch)]
}
