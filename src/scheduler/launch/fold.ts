/** Output of many ranks as one text: what all say is one line with its ranks, what only some say stands out. Pure. */
import { drawnLine } from '../../base/drawn-line.ts'
import { formatNumberSet } from '../../base/number-set.ts'
import { printable } from '../../base/printable.ts'

/** The output of a rank, or a part of it: its stdout and stderr may be two streams, the one that was written to last behind the other. */
export type RankStream = {
  readonly rank: number
  readonly lines: readonly string[]
  /** Set where several hosts say that they have the rank: the one that told this. */
  readonly claimedBy?: string
}

/** A rank as one of several hosts has it that claim it. */
export type RankClaim = { readonly rank: number; readonly host: string }

export type FoldedLine = {
  /** As the lowest of these ranks wrote it. */
  readonly text: string
  /** Another rank wrote other numbers in it. */
  readonly varies: boolean
  /** Ascending; without those that several hosts claim. */
  readonly ranks: readonly number[]
  /** Of ranks that several hosts claim: where this line is from. */
  readonly claims: readonly RankClaim[]
  /** Said by at most half of the ranks, and not by rank 0 alone, which often speaks for all. */
  readonly isOdd: boolean
}

type Node = {
  text: string
  varies: boolean
  lowest: number
  readonly ranks: number[]
  claims?: RankClaim[]
  next: Node | undefined
}
/** All lines of one form; `count`: how many of them the rank that is read now has said. */
type Form = { readonly nodes: Node[]; stream: number; count: number }

/** Of nearly all lines. */
const NONE: readonly RankClaim[] = []
/** Ranks that several hosts claim come last, so that they give no text to lines of the others. */
const CLAIMED = 1_000_000

const NUMBER = /-?(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)/g

/** The n-th line of a form (numbers apart) is the same line on all ranks. Takes time in proportion to the number of lines. */
export function foldLines(streams: readonly RankStream[]): readonly FoldedLine[] {
  const forms = new Map<string, Form>()
  const head: Node = { text: '', varies: false, lowest: 0, ranks: [], next: undefined }
  // Streams of one rank have lost their order among each other: it is taken from ranks that have one stream.
  const parts = Map.groupBy(streams, ({ rank, claimedBy }) => (claimedBy === undefined ? rank : `${rank} ${claimedBy}`))
  const ordered = [...parts.values()].toSorted((one, other) => one.length - other.length)
  for (const [index, own] of ordered.entries()) {
    const { rank = 0, claimedBy } = own[0] ?? {}
    const order = claimedBy === undefined ? rank : CLAIMED + rank
    // Those of the next one come after those of the one before, which was written to last: an error, say, after what led to it.
    let before = head
    for (const { lines } of own)
      for (const line of lines) {
        const form = formOf(forms, line.replace(NUMBER, '#'), index)
        const known = form.nodes[form.count]
        form.count += 1
        const node = known ?? { text: line, varies: false, lowest: order, ranks: [], next: before.next }
        if (known === undefined) {
          before.next = node
          form.nodes.push(node)
        } else {
          node.varies ||= line !== node.text
          if (order < node.lowest) {
            node.lowest = order
            node.text = line
          }
        }
        if (claimedBy === undefined) node.ranks.push(rank)
        else {
          node.claims ??= []
          node.claims.push({ rank, host: claimedBy })
        }
        before = node
      }
  }
  const folded: FoldedLine[] = []
  for (let node = head.next; node !== undefined; node = node.next) {
    const ranks = node.ranks.sort((one, other) => one - other)
    const { text, varies, claims = NONE } = node
    const isOfFirst = claims.length === 0 && ranks.length === 1 && ranks[0] === 0
    const isOdd = ranks.length === 0 || ((ranks.length + claims.length) * 2 <= parts.size && !isOfFirst)
    folded.push({ text, varies, ranks, claims, isOdd })
  }
  return folded
}

function formOf(forms: Map<string, Form>, key: string, stream: number): Form {
  const known = forms.get(key)
  if (known === undefined) {
    const made = { nodes: [], stream, count: 0 }
    forms.set(key, made)
    return made
  }
  if (known.stream !== stream) {
    known.stream = stream
    known.count = 0
  }
  return known
}

/** `0-3,6 2@m1 2@m5`: rank 2 is claimed by two hosts. */
export const formatRanksOf = ({ ranks, claims }: FoldedLine): string =>
  [
    ...(ranks.length === 0 ? [] : [formatNumberSet(ranks)]),
    ...claims.map(({ rank, host }) => `${rank}@${printable(host)}`),
  ].join(' ')

/**
 * The last lines, at most `most`, without their ends; of a line that was drawn again and again (a progress bar), what is seen last.
 * `isCut`: there are more before them. Memory is taken for these lines alone, whatever the text is.
 */
export function lastLines(text: string, most: number): { readonly lines: readonly string[]; readonly isCut: boolean } {
  const end = text.length - (text.endsWith('\n') ? 1 : 0)
  let start = end
  for (let count = 0; count < most && start >= 0; count += 1)
    start = start === 0 ? -1 : text.lastIndexOf('\n', start - 1)
  const lines = text === '' || most === 0 ? [] : text.slice(start + 1, end).split('\n')
  return { lines: lines.map(drawnLine), isCut: start >= 0 }
}
