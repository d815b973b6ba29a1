/** The last text of a line that a program draws over and over, such as a progress bar: what follows the last carriage return. */
export function drawnLine(line: string): string {
  if (!line.includes('\r')) return line
  const drawn = line.trimEnd()
  return drawn.slice(drawn.lastIndexOf('\r') + 1)
}

const TAB = 8

/** After Esc: what begins a text that BEL or ST ends (ECMA-48: OSC, DCS, SOS, PM, APC). */
const STRINGS = ']PX^_'
const CSI = /[0-?]*[ -/]*[@-~]?/y
/** Esc and other bytes of a sequence, such as the choice of a character set. */
const OTHER = /[ -/]*[0-~]?/y

/** Without what controls a terminal. Takes time in proportion to the text, whatever is in it; a text that does not end stays. */
export function withoutSequences(line: string): string {
  let shown = ''
  let at = 0
  /** The next end of each kind that was found; -1: there is none. */
  const ends = { '\x07': 0, '\x1b\\': 0 }
  const endAfter = (from: number): number => {
    const found = (['\x07', '\x1b\\'] as const).flatMap((end) => {
      if (ends[end] >= 0 && ends[end] < from) ends[end] = line.indexOf(end, from)
      return ends[end] < 0 ? [] : [ends[end] + end.length]
    })
    return Math.min(...found)
  }
  for (let esc = line.indexOf('\x1b'); esc >= 0; esc = line.indexOf('\x1b', at)) {
    shown += line.slice(at, esc)
    const kind = line[esc + 1] ?? ''
    const end = STRINGS.includes(kind) && kind !== '' ? endAfter(esc + 2) : undefined
    const rest = kind === '[' ? CSI : OTHER
    rest.lastIndex = kind === '[' ? esc + 2 : esc + 1
    rest.test(line)
    at = end === undefined ? Math.max(esc + 1, rest.lastIndex) : Number.isFinite(end) ? end : esc + 2
  }
  return shown + line.slice(at)
}

/** A line of output as a terminal would show it, without colours: what was drawn last, and tabs as blanks. */
export function shownLine(line: string): string {
  const [first = '', ...others] = drawnLine(withoutSequences(line)).split('\t')
  return others.reduce((text, part) => `${text.padEnd((Math.floor(text.length / TAB) + 1) * TAB)}${part}`, first)
}
