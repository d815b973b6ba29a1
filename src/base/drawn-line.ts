/** What is seen last of a line that was drawn again and again (a progress bar): a carriage return begins it anew. */
export function drawnLine(line: string): string {
  if (!line.includes('\r')) return line
  const drawn = line.trimEnd()
  return drawn.slice(drawn.lastIndexOf('\r') + 1)
}
