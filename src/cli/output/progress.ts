/** `examined 2 of 3, waiting for h3`: a live line about hosts. */
import { foldHostSet } from '../../inventory/host-set.ts'

const MOST_NAMES = 8

export function progressOf(done: string, waiting: readonly string[], count: number): string {
  const names = waiting.length > MOST_NAMES ? `${waiting.length} hosts` : foldHostSet(waiting)
  return `${done} ${count - waiting.length} of ${count}${waiting.length === 0 ? '' : `, waiting for ${names}`}`
}
