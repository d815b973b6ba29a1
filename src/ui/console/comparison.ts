/** Groups hosts with equal screens while folding or differences are on: at most four times a second, only changed screens. */
import type { Clock } from '../../base/clock.ts'
import { textWidth } from '../../base/text-width.ts'
import { type PaneView, styleOf, type Theme } from '../compositor/scene.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { ConsoleState } from '../state/console-state.ts'
import type { HostViews } from './host-views.ts'

const COMPARE_EVERY_MS = 250

export type ComparisonOptions = {
  readonly clock: Clock
  readonly views: HostViews
  readonly state: () => ConsoleState
  onGroups(groups: readonly (readonly string[])[]): void
}

const sameGroups = (a: readonly (readonly string[])[], b: readonly (readonly string[])[]): boolean =>
  a.length === b.length &&
  a.every((group, index) => group.length === b[index]?.length && group.every((host, at) => host === b[index]?.[at]))

export class Comparison implements Disposable {
  readonly #options: ComparisonOptions
  readonly #texts = new Map<string, { revision: number; text: HostText }>()
  readonly #comparing: ThrottledAction

  constructor(options: ComparisonOptions) {
    this.#options = options
    const { clock } = options
    this.#comparing = new ThrottledAction({ clock, everyMs: 0, gatherMs: COMPARE_EVERY_MS }, () => void this.refresh())
  }

  /** No changed screen waits to be compared. */
  get isIdle(): boolean {
    return !this.#comparing.isWaiting
  }

  /** A screen changed: compares soon if the comparison is shown. */
  noteChange(): void {
    if (this.#isShown()) this.#comparing.soon()
  }

  /** Compares now and returns the groups. Marks panes only while the comparison is shown, because only then is it repeated. */
  refresh(): readonly (readonly string[])[] {
    const { state, onGroups } = this.#options
    const current = state()
    const groups = groupEqualScreens([...current.hosts.keys()].flatMap((host) => this.#text(host) ?? []))
    if (this.#isShown() && !sameGroups(groups, current.equalGroups)) onGroups(groups)
    return groups
  }

  #isShown(): boolean {
    const { isFolded, showsDifferences } = this.#options.state()
    return isFolded || showsDifferences
  }

  /** Marks the rows in which a host differs from the majority. */
  highlights(host: string, theme: Theme): PaneView['highlights'] {
    const [majority, second] = this.#options.state().equalGroups
    // Where no two screens are equal, the first host is compared with the next one.
    const lead = majority?.length === 1 && majority[0] === host ? second?.[0] : majority?.[0]
    if (lead === undefined || (lead !== second?.[0] && majority?.includes(host))) return []
    const own = this.#text(host)
    const theirs = this.#text(lead)
    if (!own || !theirs) return []
    const style = styleOf(theme.matchText, theme.match)
    return differentRows(own, theirs).map((row) => ({
      row,
      column: 0,
      length: Math.max(1, textWidth(own.rows[row] ?? '')),
      style,
    }))
  }

  #text(host: string): HostText | undefined {
    const screen = this.#options.views.screen(host)
    const known = this.#options.state().hosts.get(host)
    if (!screen || !known) return undefined
    const cached = this.#texts.get(host)
    if (cached?.revision === screen.revision) return cached.text
    const text: HostText = { host, names: [host, known.address], rows: screen.visibleText() }
    this.#texts.set(host, { revision: screen.revision, text })
    return text
  }

  [Symbol.dispose](): void {
    this.#comparing[Symbol.dispose]()
  }
}

/** What one host shows, and its names, which may appear in its own prompt. */
export type HostText = { readonly host: string; readonly names: readonly string[]; readonly rows: readonly string[] }

const PLACE = '\u0001'

const escapeForRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/** Replaces the host's own names and drops blank rows at the end, so that `root@m1:~#` equals `root@m2:~#`. */
function normaliseScreen({ names, rows }: HostText): string[] {
  const known = names.filter((name) => name !== '').sort((a, b) => b.length - a.length)
  const pattern =
    known.length === 0
      ? undefined
      : new RegExp(`(?<![\\w.-])(?:${known.map(escapeForRegExp).join('|')})(?![\\w-])`, 'g')
  const result = rows.map((row) => (pattern ? row.replace(pattern, PLACE) : row).trimEnd())
  while (result.length > 0 && result.at(-1) === '') result.pop()
  return result
}

/** Groups of hosts with equal screens, the largest first, otherwise in the given order. */
export function groupEqualScreens(texts: readonly HostText[]): string[][] {
  const groups = Map.groupBy(texts, (text) => normaliseScreen(text).join('\n'))
  return [...groups.values()].map((group) => group.map(({ host }) => host)).sort((a, b) => b.length - a.length)
}

/** Rows of `text` that differ from the same row of `majority`. */
export function differentRows(text: HostText, majority: HostText): number[] {
  const own = normaliseScreen(text)
  const theirs = normaliseScreen(majority)
  const rows: number[] = []
  for (let row = 0; row < Math.max(own.length, theirs.length); row++) if (own[row] !== theirs[row]) rows.push(row)
  return rows
}
