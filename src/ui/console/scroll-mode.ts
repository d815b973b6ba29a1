/** Looking back in one host: what the keys of scroll mode do to a screen's view. Hosts receive nothing meanwhile. */
import type { Screen, SearchHit } from '../../terminal/screen.ts'

export type ScrollState = { readonly needle: string; readonly hits: readonly SearchHit[]; readonly hit: number }

export const noSearch: ScrollState = { needle: '', hits: [], hit: 0 }

const clampOffset = (screen: Screen, offset: number): number => Math.max(0, Math.min(screen.historyLines, offset))

/** Undefined: the key means nothing here. */
export function scrollOffset(screen: Screen, label: string): number | undefined {
  const page = Math.max(1, screen.rows - 1)
  const half = Math.max(1, Math.floor(screen.rows / 2))
  switch (label) {
    case 'Up':
    case 'k':
      return clampOffset(screen, screen.viewOffset + 1)
    case 'Down':
    case 'j':
    case 'Enter':
      return clampOffset(screen, screen.viewOffset - 1)
    case 'PageUp':
    case 'Ctrl-b':
    case 'b':
      return clampOffset(screen, screen.viewOffset + page)
    case 'PageDown':
    case 'Ctrl-f':
    case 'Space':
      return clampOffset(screen, screen.viewOffset - page)
    case 'Ctrl-u':
      return clampOffset(screen, screen.viewOffset + half)
    case 'Ctrl-d':
      return clampOffset(screen, screen.viewOffset - half)
    case 'Home':
    case 'g':
      return screen.historyLines
    case 'End':
    case 'G':
      return 0
    default:
      return undefined
  }
}

/** Searches, and goes to the newest hit at or above the present view. */
export function startSearch(screen: Screen, needle: string): ScrollState {
  const hits = screen.search(needle)
  const bottom = screen.historyLines - screen.viewOffset + screen.rows
  let hit = hits.length - 1
  while (hit > 0 && (hits[hit]?.line ?? 0) >= bottom) hit--
  return { needle, hits, hit: Math.max(0, hit) }
}

/** The hit before (older) or after; goes round. */
export function stepSearch(search: ScrollState, by: -1 | 1): ScrollState {
  if (search.hits.length === 0) return search
  return { ...search, hit: (search.hit + by + search.hits.length) % search.hits.length }
}

/** The view offset that shows the hit, in the middle if it has to move. */
export function offsetOfHit(screen: Screen, search: ScrollState): number {
  const hit = search.hits[search.hit]
  if (!hit) return screen.viewOffset
  const top = screen.historyLines - screen.viewOffset
  if (hit.line >= top && hit.line < top + screen.rows) return screen.viewOffset
  return clampOffset(screen, screen.historyLines - hit.line + Math.floor(screen.rows / 2))
}

/** The hits that are in view, as places on the visible screen. */
export function visibleHits(
  screen: Screen,
  search: ScrollState,
): { row: number; column: number; length: number; isCurrent: boolean }[] {
  const top = screen.historyLines - screen.viewOffset
  return search.hits.flatMap((hit, index) =>
    hit.line >= top && hit.line < top + screen.rows
      ? [{ row: hit.line - top, column: hit.column, length: hit.length, isCurrent: index === search.hit }]
      : [],
  )
}
