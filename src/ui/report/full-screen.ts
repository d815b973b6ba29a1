/** Where output enters and leaves the screen of full-screen programs. Pure. */

/** Modes that are set or reset, and a reset of the terminal. Not one pattern for the mode: it would try each place of a long list of modes. */
const MODES = /\x1b\[\?([\d;]*)([hl])|\x1bc/g
const RESET = '\x1bc'
const FULL_SCREEN: ReadonlySet<string> = new Set(['47', '1047', '1049'])
/** Longer than a sequence that enters or leaves it. */
export const SWITCH_BYTES = 16

type Switch = { readonly enters: boolean; readonly begin: number; readonly end: number }

function switchesIn(bytes: Buffer): readonly Switch[] {
  // Nearly all output, and much of it where a host floods.
  if (!bytes.includes('\x1b[?') && !bytes.includes(RESET)) return []
  return [...bytes.toString('latin1').matchAll(MODES)].flatMap(({ index, 0: whole, 1: modes = '', 2: letter }) =>
    whole === RESET || modes.split(';').some((mode) => FULL_SCREEN.has(mode))
      ? [{ enters: letter === 'h', begin: index, end: index + whole.length }]
      : [],
  )
}

export const entersFullScreen = (bytes: Buffer): boolean => switchesIn(bytes).some(({ enters }) => enters)

/** Whether a full-screen program draws after these bytes; undefined: they do not tell. */
export const endsInFullScreen = (bytes: Buffer): boolean | undefined => switchesIn(bytes).at(-1)?.enters

/** Without what full-screen programs draw. `isInside`: it begins in one. */
export function withoutFullScreen(bytes: Buffer, isInside = false): Buffer {
  const kept: Buffer[] = []
  let from = isInside ? undefined : 0
  for (const { enters, begin, end } of switchesIn(bytes)) {
    if (enters && from !== undefined) {
      kept.push(bytes.subarray(from, end))
      from = undefined
    } else if (!enters) from ??= begin
  }
  if (from !== undefined) kept.push(bytes.subarray(from))
  return Buffer.concat(kept)
}
