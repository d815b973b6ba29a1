/** Reads a recording as a player does; a last line that was cut is left out. */
export type Recording = {
  readonly header: { version: number; width: number; height: number; [key: string]: unknown }
  readonly events: readonly (readonly [time: number, kind: string, data: string])[]
}

export function readAsciicast(text: string): Recording {
  const lines = text.split('\n')
  lines.pop()
  const [header, ...events] = lines.map((line) => JSON.parse(line))
  return { header, events }
}
