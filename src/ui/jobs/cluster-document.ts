/** All jobs of an engine's cluster, other people's in grey, and the selected one with its nodes or why it waits. Pure. */

import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { timeText, whenText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ClusterJobDetails } from '../../scheduler/jobs/engine.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { boldStyle, mutedStyle, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import { jobSpan, type Letters, signOf } from '../packing/blocks.ts'
import { type ClusterJob, type EnginePicture, isWaiting, nameWithTitle } from '../packing/engine-picture.ts'
import { LOOSE_JOB } from '../packing/ray-picture.ts'
import { documentOf, type Row, type RowDocument, rowStyle, wrapRows } from '../rows/rows-pane.ts'
import { findHost, sortMark, type TableColumn, type TableView } from '../rows/table-view.ts'

const LEAST_NAME = 26
/** Of the row, for names. */
const NAME_PART = 0.4
const STATE_COLUMNS = 10

/** What the list is filtered and sorted by. `active`: jobs of the queue, which have names there. */
export const clusterColumns = (active: readonly Job[], nowMs: number): readonly TableColumn<ClusterJob>[] => [
  { title: 'JOB', text: (job) => printable(nameWithTitle(job, active)) },
  { title: 'STATE', text: stateOf },
  { title: WHERE, text: (job) => whereOrWhy(job, nowMs), find: isOnHost },
  { title: 'USER', text: ({ user }) => printable(user), isHidden: true },
]

const isOnHost = findHost((job: ClusterJob) => foldedNodes(job))

const WHERE = 'ON, OR WHY IT WAITS'

/** `jobs`: the rows; `at`: the selected one. */
export function clusterDocument(
  picture: EnginePicture,
  jobs: readonly ClusterJob[],
  view: TableView,
  at: number,
  { active, letters }: { readonly active: readonly Job[]; readonly letters: Letters | undefined },
  columns: number,
  theme: Theme,
  nowMs: number,
): RowDocument {
  const { note } = picture
  const nameOf = (job: ClusterJob) => printable(nameWithTitle(job, active))
  const longest = picture.jobs.reduce((most, job) => Math.max(most, textWidth(nameOf(job)) + 1), 0)
  const nameWidth = Math.max(LEAST_NAME, Math.min(longest, Math.floor(columns * NAME_PART)))
  const title = (text: string) => `${text}${sortMark(view, { title: text })}`
  const waiting = picture.jobs.filter(isWaiting).length
  const others = picture.jobs.filter(({ job }) => job === LOOSE_JOB).length
  const summary = `${picture.jobs.length - waiting} running, ${waiting} waiting`
  return {
    head: [
      [
        { text: ` ${summary}`, style: boldStyle(theme.text) },
        { text: others === 0 ? '' : `  * ${counted(others, 'other job')}`, style: mutedStyle(theme) },
      ],
      ...(note === undefined ? [] : [[{ text: ` ${printable(note)}`, style: boldStyle(theme.warning) }]]),
      [
        {
          text: `   ${padEnd(title('JOB'), nameWidth)}${padEnd(title('STATE'), STATE_COLUMNS)}${title(WHERE)}`,
          style: mutedStyle(theme),
        },
      ],
    ],
    length: jobs.length,
    row(index) {
      const job = jobs[index]
      if (job === undefined) return []
      const isChosen = index === at
      const plain = isChosen ? rowStyle(theme, true) : ownStyle(job, theme)
      return [
        { text: isChosen ? '▸' : ' ', style: plain },
        jobSpan(job.job, signOf(job.job, letters), theme),
        {
          text: ` ${padEnd(clip(nameOf(job), nameWidth - 1), nameWidth)}`,
          style: plain,
        },
        { text: padEnd(stateOf(job), STATE_COLUMNS), style: plain },
        { text: whereOrWhy(job, nowMs), style: plain },
      ]
    },
  }
}

const ownStyle = ({ job }: ClusterJob, theme: Theme): Style =>
  job === LOOSE_JOB ? mutedStyle(theme) : styleOf(theme.text)

const stateOf = (job: ClusterJob): string => (isWaiting(job) ? 'waiting' : 'running')

function whereOrWhy(job: ClusterJob, nowMs: number): string {
  if (!isWaiting(job)) return printable(placesText(job))
  const expected = job.expectedMs === undefined ? '' : `expected ${whenText(job.expectedMs, nowMs)}: `
  return printable(`${expected}${job.why}`)
}

/** `n[1-2], 3 GPUs` */
function placesText(job: ClusterJob): string {
  const { places } = job
  const gpus = places.reduce((sum, { devices }) => sum + devices.length, 0)
  return `${foldedNodes(job)}${gpus === 0 ? '' : `, ${counted(gpus, 'GPU')}`}`
}

const foldedNodes = ({ places }: ClusterJob): string => foldHostSet([...new Set(places.map(({ node }) => node))])

const MOST_PLACES = 64

/** `job` undefined: none is selected; `engine`: its title. */
export function clusterJobDocument(
  job: ClusterJob | undefined,
  details: ClusterJobDetails | string | undefined,
  engine: string,
  columns: number,
  theme: Theme,
  nowMs: number,
): RowDocument {
  if (job === undefined) return documentOf([[{ text: ' no jobs', style: mutedStyle(theme) }]])
  const say = (text: string, style = styleOf(theme.text)): readonly Row[] =>
    wrapRows(printable(text), columns, ' ', style)
  const { places, expectedMs } = job
  const known = typeof details === 'object' ? details : undefined
  const why = known?.because ?? (job.why === undefined ? [] : [job.why])
  return documentOf([
    ...say(`${stateOf(job)}  ${job.label} in ${engine}`, boldStyle(theme.text)),
    ...(job.title === '' ? [] : say(job.title, mutedStyle(theme))),
    ...(expectedMs === undefined || !isWaiting(job) ? [] : say(`expected to start ${whenText(expectedMs, nowMs)}`)),
    ...why.flatMap((sentence) => say(sentence, styleOf(isWaiting(job) ? theme.warning : theme.text))),
    ...(typeof details === 'string' ? say(details, mutedStyle(theme)) : []),
    ...places
      .slice(0, MOST_PLACES)
      .flatMap(({ node, devices }) => say(`on ${node}${devices.length > 0 ? `, GPU ${devices.join(',')}` : ''}`)),
    ...(places.length > MOST_PLACES ? say(`and ${places.length - MOST_PLACES} more`, mutedStyle(theme)) : []),
    ...(known === undefined || known.events.length === 0 ? [] : [[], ...say('events', boldStyle(theme.text))]),
    ...(known?.events ?? []).flatMap(({ atMs, text }) => say(`${timeText(atMs, nowMs)}  ${text}`, mutedStyle(theme))),
  ])
}
