/** Groups hosts with equal screens while folding or differences are on: at most four times a second, only changed screens. */

import type { Clock } from '../../base/clock.ts'
import { literalPattern } from '../../base/literal-pattern.ts'
import { textWidth } from '../../base/text-width.ts'
import { diffLines } from '../../ops/run/unified-diff.ts'
import { type PaneView, styleOf, type Theme } from '../compositor/scene.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { ConsoleState } from '../state/console-state.ts'
import type { HostViews } from './host-views.ts'

const COMPARE_EVERY_MS = 250

export type ComparisonOptions = {
  readonly clock: Clock
  readonly views: HostViews
  readonly state: () => ConsoleState
  /** The first prompt of a host's shell, if it was seen. */
  readonly firstPrompt: (host: string) => string | undefined
  onGroups(groups: readonly (readonly string[])[]): void
}

const sameGroups = (a: readonly (readonly string[])[], b: readonly (readonly string[])[]): boolean =>
  a.length === b.length &&
  a.every((group, index) => group.length === b[index]?.length && group.every((host, at) => host === b[index]?.[at]))

export class Comparison implements Disposable {
  readonly #options: ComparisonOptions
  readonly #texts = new Map<string, { revision: number; prompt: string | undefined; text: HostText }>()
  #last: { readonly texts: readonly HostText[]; readonly compared: ComparedScreens } = {
    texts: [],
    compared: new Map(),
  }
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
    const groups = groupEqualScreens(this.#compared())
    if (this.#isShown() && !sameGroups(groups, state().equalGroups)) onGroups(groups)
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
    const compared = this.#compared()
    const own = compared.get(host)
    const theirs = compared.get(lead)
    if (!own || !theirs) return []
    const style = styleOf(theme.matchText, theme.match)
    const shown = this.#text(host)?.rows
    return differentRows(own, theirs).map((row) => ({
      row,
      column: 0,
      length: Math.max(1, textWidth(shown?.[row] ?? '')),
      style,
    }))
  }

  /** Of all screens as they are now. */
  #compared(): ComparedScreens {
    const texts = [...this.#options.state().hosts.keys()].flatMap((host) => this.#text(host) ?? [])
    const { texts: before } = this.#last
    const isSame = texts.length === before.length && texts.every((text, index) => text === before[index])
    if (!isSame) this.#last = { texts, compared: compareScreens(texts) }
    return this.#last.compared
  }

  #text(host: string): HostText | undefined {
    const screen = this.#options.views.screen(host)
    const known = this.#options.state().hosts.get(host)
    if (!screen || !known) return undefined
    const prompt = this.#options.firstPrompt(host)
    const cached = this.#texts.get(host)
    if (cached?.revision === screen.revision && cached.prompt === prompt) return cached.text
    const names = [known.ownName, known.address, this.#shownName(host, prompt)]
    const text: HostText = { host, names, rows: screen.visibleText() }
    this.#texts.set(host, { revision: screen.revision, prompt, text })
    return text
  }

  /** One that shows the name of another host may be that host by mistake, so it differs. */
  #shownName(host: string, prompt = ''): string {
    const name = nameInPrompt(prompt)
    const isOfAnother = [...this.#options.state().hosts.values()].some(
      (other) => other.host !== host && [other.ownName, other.address].includes(name),
    )
    return isOfAnother ? '' : name
  }

  [Symbol.dispose](): void {
    this.#comparing[Symbol.dispose]()
  }
}

/** Behind @, as in `root@node7:~#`, else the first word, as in `[node7 ~]$` and `node7%`. */
const NAMES_IN_PROMPT = [
  /@([\p{L}\p{N}][\p{L}\p{N}_.-]*)/u,
  /^[^\p{L}\p{N}/~]*([\p{L}\p{N}][\p{L}\p{N}_.-]*)[:\s%#$>❯]/u,
]
/** A shell without settings: `sh-5.2$`. */
const SHELL_NAME = /^\w{0,3}sh-[\d.]+$/

/** What a host calls itself: hosts.yaml may have an address, or another name. Empty if its prompt has none. */
export function nameInPrompt(prompt: string): string {
  const name = NAMES_IN_PROMPT.flatMap((pattern) => pattern.exec(prompt)?.[1] ?? [])[0] ?? ''
  return SHELL_NAME.test(name) ? '' : name
}

/** What one host shows, and its names, which may appear in its own prompt. */
export type HostText = { readonly host: string; readonly names: readonly string[]; readonly rows: readonly string[] }

const PLACE = '\u0001'

/**
 * What each row may be compared as: without the host's own names, so that `root@m1:~#` equals `root@m2:~#`; without the first of
 * several, as in `root@m1:~# ping m1`; as it is.
 */
function readingsOf({ names, rows }: HostText): readonly (readonly [string, ...string[]])[] {
  const known = names.filter((name) => name !== '').sort((a, b) => b.length - a.length)
  if (known.length === 0) return rows.map((row) => [row])
  const pattern = `(?<![\\w.-])(?:${known.map(literalPattern).join('|')})(?![\\w-])`
  const [each, first] = [new RegExp(pattern, 'gu'), new RegExp(pattern, 'u')]
  return rows.map((row) => [row.replace(each, PLACE), row.replace(first, PLACE), row])
}

/** By host, its rows as they are compared, without blank ones at the end. */
export type ComparedScreens = ReadonlyMap<string, readonly string[]>

/**
 * A row with a name of its own host is compared without the name, as in a prompt, unless more hosts show the row as it is, or with
 * one after the prompt: `master: m2` is equal everywhere.
 */
export function compareScreens(texts: readonly HostText[]): ComparedScreens {
  const screens = texts.map(({ host, names, rows }) => {
    const shown = rows.map((row) => row.trimEnd())
    shown.length = shown.findLastIndex((row) => row !== '') + 1
    return { host, readings: readingsOf({ host, names, rows: shown }) }
  })
  const counts = new Map<string, number>()
  for (const { readings } of screens)
    for (const row of new Set(readings.flat())) counts.set(row, (counts.get(row) ?? 0) + 1)
  const hostsWith = (row: string) => counts.get(row) ?? 0
  const compared = screens.map(({ host, readings }): [string, readonly string[]] => [
    host,
    readings.map((each) => each.reduce((best, row) => (hostsWith(row) > hostsWith(best) ? row : best))),
  ])
  return new Map(compared)
}

/** Groups of hosts with equal screens, the largest first, otherwise in the given order. */
export function groupEqualScreens(compared: ComparedScreens): string[][] {
  const groups = Map.groupBy(compared, ([, rows]) => rows.join('\n'))
  return [...groups.values()].map((group) => group.map(([host]) => host)).sort((a, b) => b.length - a.length)
}

/** Rows of a screen that another one does not have at this place; where it lacks some and has no other, the row that follows them. */
export function differentRows(own: readonly string[], theirs: readonly string[]): readonly number[] {
  const [more, missing]: [number[], number[]] = [[], []]
  let row = 0
  for (const { kind } of diffLines(theirs, own)) {
    if (kind === '-') missing.push(Math.max(0, Math.min(row, own.length - 1)))
    else if (kind === '+') more.push(row++)
    else row += 1
  }
  return more.length > 0 ? more : [...new Set(missing)]
}
