/** Scroll mode: looks back in one host and searches. Hosts receive no keys meanwhile. */
import { BOLD } from '../../terminal/cells.ts'
import type { Screen, SearchHit } from '../../terminal/headless-screen.ts'
import { type PaneView, styleOf, type Theme } from '../compositor/scene.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import type { PageContext } from '../state/console-state.ts'
import type { HostViews } from './host-views.ts'
import type { TextSelection } from './text-selection.ts'

type Search = { readonly needle: string; readonly hits: readonly SearchHit[]; readonly hit: number }

const noSearch: Search = { needle: '', hits: [], hit: 0 }

/** How far each key moves the view up, in lines, on a screen of `rows` rows. */
const SCROLL_KEYS: readonly { readonly labels: readonly string[]; lines(rows: number): number }[] = [
  { labels: ['Up', 'k'], lines: () => 1 },
  { labels: ['Down', 'j', 'Enter'], lines: () => -1 },
  { labels: ['PageUp', 'Ctrl-b', 'b'], lines: (rows) => Math.max(1, rows - 1) },
  { labels: ['PageDown', 'Ctrl-f', 'Space'], lines: (rows) => -Math.max(1, rows - 1) },
  { labels: ['Ctrl-u'], lines: (rows) => Math.max(1, Math.floor(rows / 2)) },
  { labels: ['Ctrl-d'], lines: (rows) => -Math.max(1, Math.floor(rows / 2)) },
  { labels: ['Home', 'g'], lines: () => Number.POSITIVE_INFINITY },
  { labels: ['End', 'G'], lines: () => Number.NEGATIVE_INFINITY },
]

const clampOffset = (screen: Screen, offset: number): number => Math.max(0, Math.min(screen.historyLines, offset))

export class ScrollMode {
  readonly #context: PageContext
  readonly #views: HostViews
  readonly #selection: TextSelection
  readonly #onView: (host: string) => void
  #search: Search = noSearch

  /** `onView`: another part of the host's screen is in view. */
  constructor(context: PageContext, views: HostViews, selection: TextSelection, onView: (host: string) => void) {
    this.#context = context
    this.#views = views
    this.#selection = selection
    this.#onView = onView
  }

  enter(host: string | undefined): void {
    if (host === undefined) return
    if (this.#views.screen(host) === undefined)
      return this.#context.notice(`nothing to scroll: ${host} has not opened a shell yet`, 'warning', 'key')
    this.#search = noSearch
    this.#show(host)
  }

  leave(): void {
    const { mode } = this.#context.state
    if (mode.kind !== 'scroll') return
    this.#search = noSearch
    this.#selection.clear()
    const screen = this.#views.screen(mode.host)
    if (screen) screen.viewOffset = 0
    this.#context.change(() => ({ mode: { kind: 'typing' } }))
    this.#onView(mode.host)
  }

  /** Moves the view of any host without entering the mode: the wheel. */
  scrollBy(host: string, lines: number): void {
    const screen = this.#views.screen(host)
    if (!screen) return
    screen.viewOffset = clampOffset(screen, screen.viewOffset + lines)
    this.#onView(host)
  }

  handleKey(host: string, label: string): void {
    const screen = this.#views.screen(host)
    const marked = this.#selection.lineOf(host)
    if (label === 'v' || (label === 'Esc' && marked !== undefined)) return this.#mark(host, screen, marked)
    if (label === 'y' && screen) return this.#copy(host, screen)
    if (!screen || label === 'Esc' || label === 'q' || label === 'Ctrl-c') return this.leave()
    if (label === '/') return this.#openSearch(host)
    if (label === 'n' || label === 'N') {
      // Older matches lie above: n goes up from the newest.
      this.#search = stepSearch(this.#search, label === 'n' ? -1 : 1)
      screen.viewOffset = offsetOfHit(screen, this.#search)
      return this.#show(host)
    }
    const lines = SCROLL_KEYS.find(({ labels }) => labels.includes(label))?.lines(screen.rows)
    if (lines === undefined) return
    if (marked === undefined) screen.viewOffset = clampOffset(screen, screen.viewOffset + lines)
    else this.#extend(screen, marked - lines)
    this.#show(host)
  }

  /** Marks lines, starting at the match or the last line in view; a second time unmarks them. */
  #mark(host: string, screen: Screen | undefined, marked: number | undefined): void {
    if (!screen) return
    if (marked !== undefined) this.#selection.clear()
    else {
      const top = screen.historyLines - screen.viewOffset
      const hit = this.#search.hits[this.#search.hit]?.line
      const text = screen.visibleText().findLastIndex((line) => line !== '')
      const line = hit !== undefined && hit >= top && hit < top + screen.rows ? hit : top + Math.max(0, text)
      this.#selection.start(host, screen, { line, column: 0 }, 'line')
    }
    this.#show(host)
  }

  /** The view follows the end of the marked lines. */
  #extend(screen: Screen, wanted: number): void {
    const line = Math.max(0, Math.min(screen.historyLines + screen.rows - 1, wanted))
    this.#selection.extendTo({ line, column: 0 })
    const top = screen.historyLines - screen.viewOffset
    if (line < top) screen.viewOffset = clampOffset(screen, screen.historyLines - line)
    else if (line >= top + screen.rows)
      screen.viewOffset = clampOffset(screen, screen.historyLines - line + screen.rows - 1)
  }

  /** What is marked, or else all that is in view. */
  #copy(host: string, screen: Screen): void {
    const isMarked = this.#selection.host === host
    const marked = isMarked ? this.#selection.text() : undefined
    if (isMarked && marked === undefined) {
      this.#selection.clear()
      this.#context.notice('nothing copied: the marked text is gone; mark it again', 'warning')
      return this.#show(host)
    }
    const top = screen.historyLines - screen.viewOffset
    const [from, to] = [top, top + screen.rows - 1]
    const text =
      marked ?? screen.textBetween({ line: from, column: 0 }, { line: to, column: screen.columns - 1 }).trimEnd()
    if (text === '') return this.#context.notice('nothing to copy', 'warning')
    if (this.#context.copyText(text, `from ${host}`)) this.#selection.clear()
    this.#show(host)
  }

  highlights(host: string, theme: Theme): PaneView['highlights'] {
    const { mode } = this.#context.state
    const screen = this.#views.screen(host)
    if (!screen || this.#search.hits.length === 0 || mode.kind !== 'scroll' || mode.host !== host) return []
    return visibleHits(screen, this.#search).map(({ isCurrent, ...place }) => ({
      ...place,
      style: isCurrent ? styleOf(theme.receivingText, theme.receiving, BOLD) : styleOf(theme.matchText, theme.match),
    }))
  }

  #openSearch(host: string): void {
    const dialog = promptDialog({
      id: 'search',
      title: `Search in ${host}`,
      label: 'Search:',
      ...(this.#search.needle === '' ? {} : { fallback: this.#search.needle }),
      submitTitle: 'search backwards',
      help: [{ text: 'Ignores case unless you type a capital letter.', tone: 'muted' }],
      onSubmit: (needle) => {
        const screen = this.#views.screen(host)
        if (!screen) return
        this.#search = startSearch(screen, needle)
        screen.viewOffset = offsetOfHit(screen, this.#search)
        this.#show(host)
      },
    })
    this.#context.openDialog((report) =>
      dialog({
        ...report,
        onClose: () => {
          report.onClose()
          this.#show(host)
        },
      }),
    )
  }

  #show(host: string): void {
    const { needle, hit, hits } = this.#search
    this.#context.change(() => ({ mode: { kind: 'scroll', host, needle, hit, hits: hits.length } }))
    this.#onView(host)
  }
}

/** Searches, and goes to the newest match at or above the current view. */
function startSearch(screen: Screen, needle: string): Search {
  const hits = screen.search(needle)
  const bottom = screen.historyLines - screen.viewOffset + screen.rows
  let hit = hits.length - 1
  while (hit > 0 && (hits[hit]?.line ?? 0) >= bottom) hit--
  return { needle, hits, hit: Math.max(0, hit) }
}

/** The previous (older) or next match; wraps around. */
function stepSearch(search: Search, by: -1 | 1): Search {
  if (search.hits.length === 0) return search
  return { ...search, hit: (search.hit + by + search.hits.length) % search.hits.length }
}

/** The view offset that shows the match, in the middle if the view has to move. */
function offsetOfHit(screen: Screen, search: Search): number {
  const hit = search.hits[search.hit]
  if (!hit) return screen.viewOffset
  const top = screen.historyLines - screen.viewOffset
  if (hit.line >= top && hit.line < top + screen.rows) return screen.viewOffset
  return clampOffset(screen, screen.historyLines - hit.line + Math.floor(screen.rows / 2))
}

/** The matches in view, as places on the visible screen. */
function visibleHits(
  screen: Screen,
  search: Search,
): { row: number; column: number; length: number; isCurrent: boolean }[] {
  const top = screen.historyLines - screen.viewOffset
  return search.hits.flatMap((hit, index) =>
    hit.line >= top && hit.line < top + screen.rows
      ? [{ row: hit.line - top, column: hit.column, length: hit.length, isCurrent: index === search.hit }]
      : [],
  )
}
