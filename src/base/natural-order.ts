/** The order in which people count: m2 before m10. */
let collator: Intl.Collator | undefined

export function naturalOrder(one: string, other: string): number {
  // Making it takes some milliseconds, which not every start has to pay.
  collator ??= new Intl.Collator('en', { numeric: true })
  return collator.compare(one, other)
}
