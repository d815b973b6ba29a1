/** A table of keys that a view has while keys go to it: its footer, the help and docs/keys.md derive from it. */

/** `S`: what the view is about, where it decides which keys mean anything now. */
export type KeyEntry<S> = {
  readonly id: string
  readonly keys: readonly string[]
  /** A few words for the footer; undefined: not there. */
  readonly title?: string
  readonly help: string
  /** Whether it is in the footer now; always unless given. */
  readonly isMeant?: (state: S) => boolean
}

type KeyRow<S> = readonly [
  id: string,
  /** Separated by blanks; the footer shows the first. */
  keys: string,
  /** Empty: not in the footer. */
  title: string,
  help: string,
  isMeant?: (state: S) => boolean,
]

/** A table written row by row, in the order of the footer: id, keys, footer label, help, when it applies. */
export const keyTable =
  <S>() =>
  <const R extends readonly KeyRow<S>[]>(...rows: R): readonly (KeyEntry<S> & { readonly id: R[number][0] })[] =>
    rows.map(([id, keys, title, help, isMeant]: KeyRow<S>) => ({
      id: id as R[number][0],
      keys: keys.split(' '),
      help,
      ...(title === '' ? {} : { title }),
      ...(isMeant === undefined ? {} : { isMeant }),
    }))

/** Where a key stands for several things, it is the one that is meant now, or else the first. */
export function commandOf<I extends string, S>(
  table: readonly (KeyEntry<S> & { readonly id: I })[],
  label: string,
  state?: S,
): I | undefined {
  const own = table.filter(({ keys }) => keys.includes(label))
  return (own.find(({ isMeant }) => state === undefined || isMeant?.(state) !== false) ?? own[0])?.id
}

/** Key and words, for the footer of now. */
export function hintsOf<S>(table: readonly KeyEntry<S>[], state: S): (readonly [string, string])[] {
  return table.flatMap(({ keys, title, isMeant }) =>
    title === undefined || isMeant?.(state) === false ? [] : [[keys[0] ?? '', title] as const],
  )
}
