/** The last text of a line that a program draws over and over, such as a progress bar: what follows the last carriage return. */
export function drawnLine(line: string): string {
  if (!line.includes('\r')) return line
  const drawn = line.trimEnd()
  return drawn.slice(drawn.lastIndexOf('\r') + 1)
}
