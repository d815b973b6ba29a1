/** A heap by time; of equal times, what was added first. */

type Entry<T> = { readonly timeS: number; readonly order: number; readonly value: T }

export class TimeQueue<T> {
  readonly #heap: Entry<T>[] = []
  #added = 0

  first(): { readonly timeS: number; readonly value: T } | undefined {
    return this.#heap[0]
  }

  add(timeS: number, value: T): void {
    const heap = this.#heap
    const entry = { timeS, order: this.#added++, value }
    let at = heap.push(entry) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent] as Entry<T>
      if (!isBefore(entry, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = entry
  }

  removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry<T>, heap[child] as Entry<T>)) child++
      const below = heap[child] as Entry<T>
      if (!isBefore(below, last)) break
      heap[at] = below
      at = child
    }
    heap[at] = last
  }
}

function isBefore(one: Entry<unknown>, other: Entry<unknown>): boolean {
  return one.timeS < other.timeS || (one.timeS === other.timeS && one.order < other.order)
}
