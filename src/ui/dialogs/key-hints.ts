/** The keys of a dialog as they are drawn, in one row or two. Pure. */
import { partsWidth } from '../../base/text-width.ts'
import type { DialogView } from './dialog.ts'

/** `press`: the key that a click presses. */
export type KeyHint = { readonly text: string; readonly press?: string }

type Hints = readonly KeyHint[]

const MOST_ROWS = 2

/** Takes two rows only if the dialog has room for them and one row would leave out words. */
export function keyRows(
  { keys, wrapsKeys = false }: Pick<DialogView, 'keys' | 'wrapsKeys'>,
  width: number,
): readonly Hints[] {
  const rows = wrapsKeys ? wrapped(keys.map(hintOf), width) : []
  return rows.length > 0 && rows.length <= MOST_ROWS ? rows : [oneRow(keys, width)]
}

const hintOf = ([key, does]: DialogView['keys'][number]): KeyHint => ({ text: `${key} ${does}`, press: key })

const spaced = (hints: Hints): Hints => hints.flatMap((hint, index) => [{ text: index === 0 ? '  ' : '   ' }, hint])

function wrapped(hints: Hints, width: number): readonly Hints[] {
  const rows: KeyHint[][] = []
  for (const hint of hints) {
    const row = rows.at(-1)
    if (row !== undefined && partsWidth(spaced([...row, hint])) <= width) row.push(hint)
    else rows.push([hint])
  }
  return rows.map(spaced)
}

/** As many whole hints as fit, always with the last one, which closes the dialog. If no other hint fits, the keys without words. */
function oneRow(keys: DialogView['keys'], width: number): Hints {
  const hints = keys.map(hintOf)
  const bare = keys.map(([key]): KeyHint => ({ text: key, press: key }))
  const last = hints.at(-1)
  if (last === undefined) return []
  const whole = hints.slice(0, -1)
  const choices = [
    ...whole.map((_, index) => [...whole.slice(0, whole.length - index), last]),
    [...bare.slice(0, -1), last],
    bare,
    [last],
  ]
  return choices.map(spaced).find((row) => partsWidth(row) <= width) ?? [last]
}
