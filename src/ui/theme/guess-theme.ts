/** Whether the terminal's background is dark or light: from its environment, and from its answer to OSC 11. Pure. */

/** COLORFGBG (rxvt, Konsole): `foreground;background` as palette indexes. */
export function guessTheme(environment: Readonly<Record<string, string | undefined>>): 'dark' | 'light' {
  const background = environment.COLORFGBG?.split(';').at(-1)
  return background === '7' || background === '15' ? 'light' : 'dark'
}

/** The theme for an answer `OSC 11 ; rgb:RRRR/GGGG/BBBB`; undefined for any other report. */
export function backgroundOf(report: Uint8Array): 'dark' | 'light' | undefined {
  const match = /^\x1b\]11;rgba?:([\da-f]+)\/([\da-f]+)\/([\da-f]+)/i.exec(Buffer.from(report).toString('latin1'))
  if (!match) return undefined
  const [red = 0, green = 0, blue = 0] = match
    .slice(1, 4)
    .map((part) => Number.parseInt(part, 16) / (16 ** part.length - 1))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 ? 'light' : 'dark'
}
