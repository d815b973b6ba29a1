/** The order in which people count: m2 before m10. */
let collator: Intl.Collator | undefined

export function naturalOrder(one: string, other: string): number {
  // Making it takes a few milliseconds, so it waits until it is needed.
  collator ??= new Intl.Collator('en', { numeric: true })
  return collator.compare(one, other)
}
