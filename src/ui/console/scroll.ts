/** Scroll mode: looks back in the focused host, searches, and shows the hits. */

import { BOLD } from '../../terminal/cells.ts'
import type { PaneView } from '../compositor/scene.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import type { PageContext } from '../tabs/page-context.ts'
import { styleOf, type Theme } from '../theme/theme.ts'
import type { HostViews } from './host-views.ts'
import {
  noSearch,
  offsetOfHit,
  type ScrollState,
  scrollOffset,
  startSearch,
  stepSearch,
  visibleHits,
} from './scroll-mode.ts'

export class ScrollMode {
  readonly #context: PageContext
  readonly #views: HostViews
  readonly #onView: (host: string) => void
  #search: ScrollState = noSearch

  /** `onView`: another part of the host's screen is in view. */
  constructor(context: PageContext, views: HostViews, onView: (host: string) => void) {
    this.#context = context
    this.#views = views
    this.#onView = onView
  }

  enter(host: string | undefined): void {
    if (host === undefined) return
    this.#search = noSearch
    this.#show(host)
  }

  leave(): void {
    const { mode } = this.#context.state
    if (mode.kind !== 'scroll') return
    this.#search = noSearch
    const screen = this.#views.screen(mode.host)
    if (screen) screen.viewOffset = 0
    this.#context.change(() => ({ mode: { kind: 'typing' } }))
    this.#onView(mode.host)
  }

  /** Moves the view of any host without a mode: the wheel. */
  scrollBy(host: string, lines: number): void {
    const screen = this.#views.screen(host)
    if (!screen) return
    screen.viewOffset = Math.max(0, Math.min(screen.historyLines, screen.viewOffset + lines))
    this.#onView(host)
  }

  handleKey(host: string, label: string): void {
    const screen = this.#views.screen(host)
    if (!screen || label === 'Esc' || label === 'q' || label === 'Ctrl-c') return this.leave()
    if (label === '/') return this.#openSearch(host)
    if (label === 'n' || label === 'N') {
      // Older hits lie above: n goes up from the newest, as in a pager that reads backwards.
      this.#search = stepSearch(this.#search, label === 'n' ? -1 : 1)
      screen.viewOffset = offsetOfHit(screen, this.#search)
      return this.#show(host)
    }
    const offset = scrollOffset(screen, label)
    if (offset === undefined) return
    screen.viewOffset = offset
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
      initial: this.#search.needle,
      submitTitle: 'search backwards',
      help: [{ text: 'Without a capital letter, case makes no difference.', tone: 'muted' }],
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
