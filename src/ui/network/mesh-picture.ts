/** The picture of a mesh: one cell for each ordered pair, a cursor, and how keys move it. Pure. */
import { type Heat, heatOf, usualRate } from '../../ops/net/mesh/format-mesh.ts'
import { measuredOf, median, type NetFinding } from '../../ops/net/mesh/judge.ts'
import type { EarlierLinks } from '../../ops/net/mesh/kept-mesh.ts'
import type { LinkOutcome, LinkResult, OrderedPair } from '../../ops/net/mesh/link.ts'
import type { MeshReport } from '../../ops/net/mesh/measure-mesh.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'

export type LinkIndex = (from: string, to: string) => LinkOutcome | undefined

export type MeshPicture = {
  readonly title: string
  /** When it was measured. */
  readonly timeMs: number
  readonly report: MeshReport
  readonly names: readonly string[]
  readonly outcome: LinkIndex
  /** The median of all links, in bits a second; undefined: nothing was measured. */
  readonly usual: number | undefined
  /** What colours compare with: as `usualRate`. */
  readonly expected: number | undefined
  readonly findings: readonly NetFinding[]
  /** What it is compared with. */
  readonly before: EarlierLinks | undefined
}

export type PictureState = {
  readonly picture: MeshPicture
  readonly row: number
  readonly column: number
  /** The cell is shown with both directions in place of the matrix. */
  readonly isOpen: boolean
  /** The first row of the words beside the matrix. */
  readonly offset: number
  /** Cells show how they differ from the earlier result. */
  readonly showsChange: boolean
}

function indexLinks(links: readonly LinkResult[]): LinkIndex {
  const index = new Map<string, Map<string, LinkOutcome>>()
  for (const { from, to, outcome } of links) {
    const row = index.get(from) ?? new Map<string, LinkOutcome>()
    row.set(to, outcome)
    index.set(from, row)
  }
  return (from, to) => index.get(from)?.get(to)
}

export function pictureOf(
  report: MeshReport,
  timeMs: number,
  findings: readonly NetFinding[],
  before?: EarlierLinks,
): MeshPicture {
  return {
    title: `mesh of ${report.hosts.length} hosts`,
    timeMs,
    report,
    names: report.hosts.map(({ name }) => name),
    outcome: indexLinks(report.links),
    usual: median(measuredOf(report.links).map(({ outcome }) => outcome.bitsPerSecond)),
    expected: usualRate(report),
    findings,
    before,
  }
}

/** Puts the cursor on the link that needs attention first: the slowest, a failed one, or that of the first finding. */
export function openPicture(picture: MeshPicture): PictureState {
  const [link] = troubled(picture)
  const [from, to] = link === undefined ? (picture.findings[0]?.hosts ?? []) : [link.from, link.to]
  const at = { row: picture.names.indexOf(from ?? ''), column: picture.names.indexOf(to ?? '') }
  const isFound = at.row >= 0 && at.column >= 0
  return { picture, ...(isFound ? at : { row: 0, column: 1 }), isOpen: false, offset: 0, showsChange: false }
}

/** A new picture of the same hosts: the cursor stays. */
export const withPicture = (state: PictureState | undefined, picture: MeshPicture): PictureState =>
  state === undefined ? openPicture(picture) : { ...state, picture }

/** The names of a cell; undefined on the diagonal. */
export function pairAt({ picture, row, column }: PictureState): OrderedPair | undefined {
  const [from, to] = [picture.names[row], picture.names[column]]
  return from === undefined || to === undefined || from === to ? undefined : { from, to }
}

/** The rate in parts of the earlier one; undefined: one of them is unknown. */
export function changeOf({ before, outcome }: MeshPicture, pair: OrderedPair): number | undefined {
  const [now, then] = [outcome(pair.from, pair.to), before?.of(pair)]
  if (now?.kind !== 'measured' || then === undefined) return undefined
  return now.bitsPerSecond / then.bitsPerSecond
}

/** Undefined: it was not measured, or not yet. */
export function heatAt(picture: MeshPicture, pair: OrderedPair, showsChange: boolean): Heat | undefined {
  const outcome = picture.outcome(pair.from, pair.to)
  if (outcome === undefined || (outcome.kind === 'failed' && outcome.cause === 'cancelled')) return undefined
  if (!showsChange) return heatOf(outcome, picture.expected ?? 1)
  const change = changeOf(picture, pair)
  if (change === undefined) return outcome.kind === 'failed' ? 'failed' : undefined
  return change > 1.25 ? 'best' : change >= 0.8 ? 'good' : change >= 0.5 ? 'poor' : 'worst'
}

/** Links that failed first, then the slow ones, slowest first. */
function troubled({ report, expected = 1 }: MeshPicture): readonly LinkResult[] {
  const rank = ({ outcome }: LinkResult) => (outcome.kind === 'measured' ? outcome.bitsPerSecond : -1)
  return report.links
    .filter(({ outcome }) =>
      outcome.kind === 'measured'
        ? ['poor', 'worst'].includes(heatOf(outcome, expected))
        : outcome.cause !== 'cancelled',
    )
    .toSorted((one, other) => rank(one) - rank(other))
}

export const pictureKeys = keyTable<PictureState>()(
  [
    'open',
    'Enter',
    'open',
    'Mesh: show both directions of the selected link, with retransmits and round trips.',
    isMatrix,
  ],
  ['back', 'Esc q', 'matrix', 'Mesh: from a link, go back to the matrix.', ({ isOpen }) => isOpen],
  ['change', 'd', 'compare', 'Mesh: show the change of each link since the earlier result, or its rate.', hasBefore],
  ['next', 'n', 'next slow', 'Mesh: select the next slow or failed link, worst first.', hasTrouble],
  ['left', 'Left h', '', 'Mesh: select the receiver to the left.'],
  ['right', 'Right l', '', 'Mesh: select the receiver to the right.'],
  ['up', 'Up k', '', 'Mesh: select the sender above.'],
  ['down', 'Down j', '', 'Mesh: select the sender below.'],
  ['first', 'Home g', '', 'Mesh: select the first link.'],
  ['last', 'End G', '', 'Mesh: select the last link.'],
  ['words-up', 'PageUp b', '', 'Mesh: scroll the findings up.'],
  ['words-down', 'PageDown Space', '', 'Mesh: scroll the findings down.'],
)

function hasTrouble(state: PictureState): boolean {
  return isMatrix(state) && troubled(state.picture).length > 0
}

function isMatrix({ isOpen }: PictureState): boolean {
  return !isOpen
}

function hasBefore({ picture, isOpen }: PictureState): boolean {
  return picture.before !== undefined && !isOpen
}

/** Of a finding, about. */
const WORD_ROWS = 5

/** Undefined: the key does nothing here. */
export function changePicture(state: PictureState, label: string): PictureState | undefined {
  const { picture, row, column } = state
  const last = Math.max(0, picture.names.length - 1)
  const move = (rows: number, columns: number): PictureState => ({
    ...state,
    row: Math.max(0, Math.min(last, row + rows)),
    column: Math.max(0, Math.min(last, column + columns)),
  })
  switch (commandOf(pictureKeys, label)) {
    case undefined:
      return undefined
    case 'open':
      return pairAt(state) === undefined ? state : { ...state, isOpen: true }
    case 'back':
      return state.isOpen ? { ...state, isOpen: false } : undefined
    case 'change':
      return hasBefore(state) ? { ...state, showsChange: !state.showsChange } : state
    case 'next': {
      const all = troubled(picture)
      const at = all.findIndex(({ from, to }) => from === picture.names[row] && to === picture.names[column])
      const next = all[(at + 1) % Math.max(1, all.length)]
      if (next === undefined) return state
      return { ...state, row: picture.names.indexOf(next.from), column: picture.names.indexOf(next.to) }
    }
    case 'left':
      return move(0, -1)
    case 'right':
      return move(0, 1)
    case 'up':
      return move(-1, 0)
    case 'down':
      return move(1, 0)
    case 'first':
      return { ...state, row: 0, column: Math.min(1, last) }
    case 'last':
      return { ...state, row: last, column: Math.max(0, last - 1) }
    case 'words-up':
      return { ...state, offset: Math.max(0, state.offset - WORD_ROWS) }
    case 'words-down':
      return { ...state, offset: Math.min(picture.findings.length * WORD_ROWS, state.offset + WORD_ROWS) }
  }
}
