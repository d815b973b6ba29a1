/** The figures of a cluster: what is held, free and unusable. Pure. */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { onRemovedHosts, type PackedHost, packingFigures } from '../../scheduler/jobs/packing.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../compositor/scene.ts'
import { type QueueStatus, type RealUse, schedulerAlerts } from '../jobs/queue-view.ts'
import { firstFitting, type Row } from '../rows/rows-pane.ts'
import type { EnginePicture } from './engine-picture.ts'
import { isInUse } from './history.ts'
import type { RayPicture } from './ray-picture.ts'

export function figureRows(
  status: QueueStatus,
  columns: number,
  theme: Theme,
  used?: ReadonlyMap<string, RealUse>,
): readonly Row[] {
  const { hosts, active, counts, driver, down } = status
  const figures = packingFigures(hosts, down)
  const warning = warn(theme)
  const bold = (text: string) => ({ text, style: boldStyle(theme.text) })
  const part = (milli: number, text: string, style = styleOf(theme.text)) =>
    milli > 0 ? [{ text: `, ${gpus(milli)} ${text}`, style }] : []
  const here = active.filter(({ spec }) => spec.engine === undefined)
  const removed = onRemovedHosts(active, hosts)
  const gone = [...new Set(removed.flatMap((one) => one.hosts))]
  const engines = [...new Set(active.flatMap(({ spec }) => (spec.engine === undefined ? [] : [spec.engine])))]
    .map(enginePlace)
    .map(placeTitle)
  const downCount = hosts.filter(({ name }) => down[name] !== undefined).length
  const onDown = downCount === 1 ? 'on a host that is down' : 'on hosts that are down'
  const cores = `cores ${hosts.every(({ unknown }) => unknown?.includes('cores')) ? '-' : cpuWords(figures)}`
  const inUse = hosts.filter(({ name }) => down[name] === undefined).reduce((sum, host) => sum + inUseOf(host, used), 0)
  const gpuRow = (isShort: boolean): Row => [
    bold(` GPUs ${gpus(figures.heldMilli)}/${figures.devices}`),
    { text: `${isShort ? '' : ' held'}, ${figures.freeDevices} free`, style: styleOf(theme.text) },
    { text: inUse === 0 ? '' : ` (${inUse} ${isShort ? 'in use' : 'used without a job'})`, style: warning },
    ...part(figures.downMilli, isShort ? 'down' : onDown, warning),
    ...part(figures.piecesMilli, 'fragmented'),
    ...part(figures.strandedMilli, isShort ? 'stranded' : 'stranded (no core)', warning),
    bold(`  ${cores}`),
  ]
  const rows = figures.devices === 0 ? [[bold(` ${cores}`)]] : [gpuRow(false), gpuRow(true)]
  const jobs: Row = [
    bold(` ${here.length} running`),
    ...(removed.length > 0
      ? [{ text: ` (${removed.length} on ${foldHostSet(gone)}, not in hosts.yaml)`, style: warning }]
      : []),
    bold(`, ${counts.get('queued') ?? 0} waiting`),
    ...(here.length < active.length
      ? [{ text: `, ${active.length - here.length} with ${engines.join(' and ')}`, style: styleOf(theme.text) }]
      : []),
    ...(downCount > 0 ? [{ text: `  ${counted(downCount, 'host')} down`, style: warning }] : []),
  ]
  const alerts = schedulerAlerts(status)
  const scheduler = { text: `  scheduler: ${printable(driver ?? '')}`, style: mutedStyle(theme) }
  // Where there is too little room, the end of the row is cut, so what needs an action comes first.
  const summaries: readonly Row[] =
    alerts.length === 0
      ? [[...jobs, scheduler]]
      : [
          ...alerts.map((text): Row => [...jobs, { text: `  ${text}`, style: warning }]),
          [{ text: ` ${alerts.at(-1)} ·`, style: warning }, ...jobs],
        ]
  return [firstFitting(rows, columns), firstFitting(summaries, columns)]
}

/** GPUs that no job holds but that something uses. */
const inUseOf = ({ name, devices }: PackedHost, used: ReadonlyMap<string, RealUse> | undefined): number =>
  devices.filter((shares, at) => shares.length === 0 && isInUse(used?.get(name)?.gpus?.get(at))).length

export const cpuWords = ({ cpuUsedMilli, cpuMilli }: { readonly cpuUsedMilli: number; readonly cpuMilli: number }) =>
  `${short(cpuUsedMilli / 1000)}/${short(cpuMilli / 1000)}`

export function clusterFigureRows(
  { hosts, down, own, others, note, isOld }: EnginePicture,
  theme: Theme,
): readonly Row[] {
  const figures = packingFigures(hosts, down)
  const isBlind = hosts.some(({ unknown }) => unknown !== undefined)
  const [heldGpus, cores] = isBlind
    ? [`${gpus(figures.heldMilli)} held`, `${short(figures.cpuUsedMilli / 1000)} held`]
    : [`${gpus(figures.heldMilli)}/${figures.devices}`, cpuWords(figures)]
  const downCount = Object.keys(down).length
  return [
    [
      {
        text: `${figures.devices === 0 ? '' : ` GPUs ${heldGpus} `} cores ${cores}`,
        style: boldStyle(theme.text),
      },
      { text: `  of ${counted(hosts.length, 'node')}`, style: styleOf(theme.text) },
      { text: downCount > 0 ? `  ${downCount} down or drained` : '', style: warn(theme) },
      // The note has no room beside other clusters.
      { text: isOld === true ? '  not up to date' : '', style: warn(theme) },
    ],
    [
      { text: ` ${own.length} of the queue`, style: boldStyle(theme.text) },
      { text: others === 0 ? '' : `  * ${counted(others, 'other job')}`, style: mutedStyle(theme) },
    ],
    ...(note === undefined ? [] : [[{ text: ` ${printable(note)}`, style: warn(theme) }]]),
  ]
}

export function rayFigureRows({ hosts, dead, groupCount, actors }: RayPicture, theme: Theme): readonly Row[] {
  const figures = packingFigures(hosts)
  const counts = [...actors].map(([state, count]) => `${count} ${state.toLowerCase()}`).join(', ')
  return [
    [
      {
        text: `${figures.devices === 0 ? '' : ` GPUs ${gpus(figures.heldMilli)}/${figures.devices} `} cores ${cpuWords(figures)}`,
        style: boldStyle(theme.text),
      },
      { text: `  of ${counted(hosts.length, 'node')}`, style: styleOf(theme.text) },
      { text: dead.length > 0 ? `  dead: ${printable(dead.join(', '))}` : '', style: boldStyle(theme.danger) },
    ],
    [
      { text: ` ${counted(groupCount, 'placement group')}`, style: boldStyle(theme.text) },
      { text: `${counts === '' ? '' : `, actors: ${counts}`}  * not in a group`, style: mutedStyle(theme) },
    ],
  ]
}

export const warn = (theme: Theme) => boldStyle(theme.warning)
export const gib = (bytes: number): string => short(bytes / 2 ** 30)
export const gpus = (milli: number): string => String(Math.round(milli / 10) / 100)
export const short = (value: number): string => String(value >= 100 ? Math.round(value) : Math.round(value * 10) / 10)
