/** A private tmux: one window of a size, on a socket in a directory of its own, and its cells as ours. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  BLINK,
  BOLD,
  DIM,
  INVERSE,
  INVISIBLE,
  ITALIC,
  OVERLINE,
  paletteColour,
  rgbColour,
  STRIKETHROUGH,
  UNDERLINE,
} from '../../../src/terminal/cells.ts'
import { waitUntil } from '../../support/wait-until.ts'

export type Size = { readonly columns: number; readonly rows: number }

/** What shows: a code point with its looks. A row is compared as such a sequence, which does not ask who calls what a cell. */
export type Glyph = { text: string; foreground: number; background: number; attributes: number }

const SEEN_ON_BLANK = UNDERLINE | INVERSE | STRIKETHROUGH | OVERLINE

/** A blank has no attributes but those that are seen on it. */
export function normalGlyph(glyph: Glyph): Glyph {
  if (glyph.text !== ' ') return glyph
  const attributes = glyph.attributes & SEEN_ON_BLANK
  return { ...glyph, attributes, foreground: attributes === 0 ? 0 : glyph.foreground }
}

export class Tmux implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'muster-tmux-'))
  readonly #size: Size

  constructor(command: string, size: Size, environment: Record<string, string>) {
    this.#size = size
    const configuration = join(this.#directory, 'tmux.conf')
    writeFileSync(
      configuration,
      [
        'set -g status off',
        'set -g default-terminal xterm-256color',
        'set -g history-limit 1000',
        // The window stays when its program has ended.
        'set -g remain-on-exit off',
        'set -s escape-time 0',
      ].join('\n'),
    )
    execFileSync(
      'tmux',
      [
        '-u',
        '-S',
        this.#socket,
        '-f',
        configuration,
        'new-session',
        '-d',
        '-x',
        `${size.columns}`,
        '-y',
        `${size.rows}`,
        command,
      ],
      { env: { ...environment, TMUX_TMPDIR: this.#directory }, stdio: ['ignore', 'ignore', 'pipe'] },
    )
  }

  get #socket(): string {
    return join(this.#directory, 's')
  }

  async #tell(...command: string[]): Promise<string> {
    await delay(0)
    return execFileSync('tmux', ['-u', '-S', this.#socket, ...command], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  /** Typed into the program, as bytes. */
  async type(bytes: Uint8Array): Promise<void> {
    await this.#tell('send-keys', '-H', ...Array.from(bytes, (byte) => byte.toString(16)))
  }

  async resize(size: Size): Promise<void> {
    await this.#tell('resize-window', '-x', `${size.columns}`, '-y', `${size.rows}`)
  }

  async rows(): Promise<Glyph[][]> {
    const lines = (await this.#tell('capture-pane', '-p', '-e', '-N')).split('\n')
    return parseCapture(lines.slice(0, this.#size.rows))
  }

  /** The texts of the rows when everything is drawn that was written to this descriptor, which its program copies. */
  async drawnRows(descriptor: number, title: string): Promise<string[]> {
    writeSync(descriptor, `\x1b]2;${title}\x07`)
    await waitUntil(async () => (await this.title()) === title, title)
    return (await this.rows()).map((row) =>
      row
        .map(({ text }) => text)
        .join('')
        .trimEnd(),
    )
  }

  /** As the program in it set it last. */
  async title(): Promise<string> {
    return (await this.#tell('display-message', '-p', '#{pane_title}')).trim()
  }

  /** Column, row, and the modes that typed keys depend on. */
  async state(): Promise<string> {
    const formats = [
      'cursor_x',
      'cursor_y',
      'cursor_flag',
      'alternate_on',
      'keypad_cursor_flag',
      'keypad_flag',
      'mouse_any_flag',
      'mouse_sgr_flag',
    ]
    return (await this.#tell('display-message', '-p', formats.map((name) => `#{${name}}`).join(' '))).trim()
  }

  [Symbol.dispose](): void {
    spawnSync('tmux', ['-S', this.#socket, 'kill-server'])
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** DEC special graphics, which tmux writes with shift out and shift in. */
const LINE_DRAWING: Record<string, string> = Object.fromEntries(
  [...'`afgjklmnopqrstuvwxyz{|}~'].map((character, index) => [
    character,
    [...'◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·'][index] ?? character,
  ]),
)

function parseCapture(lines: readonly string[]): Glyph[][] {
  const pen = { foreground: 0, background: 0, attributes: 0 }
  let isShifted = false
  return lines.map((line) => {
    const glyphs: Glyph[] = []
    for (const token of line.match(/\x1b\[[\d;:]*m|\x0e|\x0f|[^\x1b]/gu) ?? []) {
      if (token.startsWith('\x1b')) applySgr(pen, token.slice(2, -1))
      else if (token === '\x0e' || token === '\x0f') isShifted = token === '\x0e'
      else glyphs.push(normalGlyph({ text: isShifted ? (LINE_DRAWING[token] ?? token) : token, ...pen }))
    }
    return glyphs
  })
}

const ATTRIBUTES: Record<string, number> = {
  '1': BOLD,
  '2': DIM,
  '3': ITALIC,
  '4': UNDERLINE,
  '5': BLINK,
  '7': INVERSE,
  '8': INVISIBLE,
  '9': STRIKETHROUGH,
  '53': OVERLINE,
}

function applySgr(pen: { foreground: number; background: number; attributes: number }, text: string): void {
  const codes = text.split(';')
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as string
    const number = Number.parseInt(code, 10) || 0
    if (number === 0 && !code.includes(':')) Object.assign(pen, { foreground: 0, background: 0, attributes: 0 })
    else if (ATTRIBUTES[code] !== undefined) pen.attributes |= ATTRIBUTES[code]
    else if (code.startsWith('4:')) pen.attributes |= UNDERLINE
    else if (number === 38 || number === 48) {
      const isPalette = codes[at + 1] === '5'
      const values = codes.slice(at + 2, at + (isPalette ? 3 : 5)).map(Number)
      const [red = 0, green = 0, blue = 0] = values
      const colour = isPalette ? paletteColour(red) : rgbColour((red << 16) | (green << 8) | blue)
      pen[number === 38 ? 'foreground' : 'background'] = colour
      at += isPalette ? 2 : 4
    } else if (number === 39) pen.foreground = 0
    else if (number === 49) pen.background = 0
    else if (number >= 30 && number <= 37) pen.foreground = paletteColour(number - 30)
    else if (number >= 40 && number <= 47) pen.background = paletteColour(number - 40)
    else if (number >= 90 && number <= 97) pen.foreground = paletteColour(number - 82)
    else if (number >= 100 && number <= 107) pen.background = paletteColour(number - 92)
    else throw new Error(`tmux gave SGR ${text}`)
  }
}
