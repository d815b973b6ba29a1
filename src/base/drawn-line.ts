import { stripVTControlCharacters } from 'node:util'

/** The last text of a line that a program draws over and over, such as a progress bar: what follows the last carriage return. */
export function drawnLine(line: string): string {
  if (!line.includes('\r')) return line
  const drawn = line.trimEnd()
  return drawn.slice(drawn.lastIndexOf('\r') + 1)
}

const TAB = 8

/** A line of output as a terminal would show it, without colours: what was drawn last, and tabs as blanks. */
export function shownLine(line: string): string {
  const [first = '', ...others] = drawnLine(stripVTControlCharacters(line)).split('\t')
  return others.reduce((text, part) => `${text.padEnd((Math.floor(text.length / TAB) + 1) * TAB)}${part}`, first)
}
