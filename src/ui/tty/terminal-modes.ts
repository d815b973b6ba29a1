/** The modes of the user's terminal that a console needs, as the sequences that switch them on and off again. */

export type TerminalFeatures = { readonly mouse: boolean }

/** Alternate screen, no attributes, empty; paste in brackets; buttons, drags and wheel in SGR form; no cursor. */
export function enterSequence({ mouse }: TerminalFeatures): Buffer {
  return Buffer.from(`\x1b[?1049h\x1b[0m\x1b[H\x1b[2J\x1b[?2004h${mouse ? '\x1b[?1002h\x1b[?1006h' : ''}\x1b[?25l`)
}

/**
 * Undoes `enterSequence` and whatever a frame that was cut in the middle left behind: the synchronized update first, or
 * the terminal would hold back all the rest; the alternate screen last, so that nothing of it shows on the other one.
 */
export function leaveSequence({ mouse }: TerminalFeatures): Buffer {
  const mouseOff = mouse ? '\x1b[?1006l\x1b[?1002l' : ''
  return Buffer.from(`\x1b[?2026l\x1b[0m\x1b[?25h\x1b[0 q${mouseOff}\x1b[?2004l\x1b[?1004l\x1b[?1049l`)
}
