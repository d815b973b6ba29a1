/**
 * The same program, or the same bytes, in a private tmux and in our own terminal at the same size: characters, colours,
 * attributes, cursor and modes have to be equal, cell by cell.
 *
 * Where tmux 3.3a has other ideas of width than our tables (Unicode 15 grapheme clusters), the texts are apart from the
 * comparison, and the last test states each difference:
 *   - a sequence with variation selector 16 (❤️, ☁️): two columns for us, as in the terminals of today; one in tmux;
 *   - an emoji with a skin tone (👍🏽): one cluster for us; two characters of two columns each in tmux;
 *   - a zero-width character right behind a control sequence (at the beginning of a line): a blank cell
 *     for us, since the emulator has nothing to join it to; nothing in tmux.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Pty } from '../../../src/base/pty.ts'
import { createCellGrid } from '../../../src/terminal/cells.ts'
import { createScreen, type Screen } from '../../../src/terminal/headless-screen.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { requirement } from '../../support/requirements.ts'
import { CAPTURES, capture } from '../../unit/terminal/corpus.ts'
import { cellAt } from '../../unit/terminal/screen-harness.ts'
import { type Glyph, normalGlyph, type Size, Tmux } from './tmux.ts'

const SMALL: Size = { columns: 80, rows: 24 }
const LARGE: Size = { columns: 132, rows: 43 }
const DEADLINE_MS = 60_000

let directory: string
let environment: Record<string, string>

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-compare-'))
  environment = {
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    HOME: directory,
    LC_ALL: 'C.UTF-8',
    TERM: 'xterm-256color',
    TZ: 'UTC',
    SHELL: '/bin/sh',
  }
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

class OurTerminal implements Disposable {
  readonly screen: Screen
  readonly chunks: Uint8Array[] = []
  readonly #pty: Pty

  constructor(command: string, size: Size) {
    this.screen = createScreen({
      ...size,
      historyLines: 1000,
      handlers: { onReply: (bytes) => this.#pty.write(bytes) },
    })
    this.#pty = spawnLocalPty(
      { file: '/bin/sh', args: ['-c', command], ...size, term: 'xterm-256color', environment },
      {
        onData: (bytes) => {
          this.chunks.push(bytes)
          this.screen.parse(bytes)
        },
        onExit: () => {},
      },
    )
  }

  type(bytes: Uint8Array): void {
    this.#pty.write(bytes)
  }

  resize(size: Size): void {
    this.screen.resize(size.columns, size.rows)
    this.#pty.resize(size.columns, size.rows)
  }

  rows(): Glyph[][] {
    const { columns, rows } = this.screen
    const grid = createCellGrid(columns, rows)
    this.screen.copyInto(grid, 0, 0, columns, rows)
    return Array.from({ length: rows }, (_, row) =>
      Array.from({ length: columns }, (_, column) => cellAt(grid, column, row)).flatMap((cell) =>
        Array.from(cell.text, (text) => normalGlyph({ ...cell, text })),
      ),
    )
  }

  state(): string {
    const { cursor, modes } = this.screen
    const flag = (isSet: boolean) => (isSet ? '1' : '0')
    return [
      cursor.column,
      cursor.row,
      flag(cursor.isVisible),
      flag(modes.isAlternateScreen),
      flag(modes.isApplicationCursor),
      flag(modes.isApplicationKeypad),
      flag(modes.mouse !== 'none'),
      flag(modes.isMouseSgr),
    ].join(' ')
  }

  [Symbol.dispose](): void {
    this.#pty.close()
    this.screen[Symbol.dispose]()
  }
}

const describeGlyph = ({ text, foreground, background, attributes }: Glyph) =>
  `${text} fg ${foreground.toString(16)} bg ${background.toString(16)} attributes ${attributes}`

const isPlainBlank = (glyph: Glyph) => glyph.text === ' ' && glyph.background === 0 && glyph.attributes === 0

/** Rows end where they are plainly blank. */
function trimmed(row: readonly Glyph[]): Glyph[] {
  return row.slice(0, row.findLastIndex((glyph) => !isPlainBlank(glyph)) + 1)
}

function textOf(rows: readonly Glyph[][]): string {
  return rows
    .map((row) =>
      row
        .map((glyph) => glyph.text)
        .join('')
        .trimEnd(),
    )
    .join('\n')
}

function differences(ours: readonly Glyph[][], theirs: readonly Glyph[][]): string[] {
  return ours.flatMap((row, index) => {
    const our = trimmed(row)
    const their = trimmed(theirs[index] ?? [])
    return Array.from({ length: Math.max(our.length, their.length) }, (_, at) => {
      // capture-pane gives no erased cells after the last character, of whatever background.
      if (at >= (theirs[index]?.length ?? 0) && our[at]?.text === ' ' && our[at].attributes === 0) return []
      const [left, right] = [our[at], their[at]].map((glyph) => (glyph ? describeGlyph(glyph) : 'nothing'))
      return left === right ? [] : [`row ${index}, character ${at}: ours ${left}, tmux ${right}`]
    }).flat()
  })
}

/** Polls until both show `wanted` and are equal; fails with what differs when they never are. */
async function expectEqual(ours: OurTerminal, tmux: Tmux, wanted: string | RegExp): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS
  for (;;) {
    const ourRows = ours.rows()
    const theirRows = await tmux.rows()
    const isShown = [ourRows, theirRows].every((rows) => textOf(rows).search(wanted) >= 0)
    const different = differences(ourRows, theirRows)
    const states = [ours.state(), await tmux.state()]
    if (isShown && different.length === 0 && states[0] === states[1]) return
    if (Date.now() < deadline) continue
    expect(textOf(ourRows)).toMatch(wanted)
    expect(textOf(ourRows)).toBe(textOf(theirRows))
    expect(different).toEqual([])
    expect(states[0]).toBe(states[1])
    throw new Error('they became equal just after the deadline')
  }
}

async function compare(
  command: string,
  size: Size,
  wanted: string | RegExp,
  keys: readonly (readonly [string, string | RegExp])[] = [],
) {
  using ours = new OurTerminal(command, size)
  using tmux = new Tmux(command, size, environment)
  await expectEqual(ours, tmux, wanted)
  for (const [typed, shown] of keys) {
    ours.type(Buffer.from(typed))
    await tmux.type(Buffer.from(typed))
    await expectEqual(ours, tmux, shown)
  }
}

/** A file whose bytes both get; `read` keeps the terminal open. */
function showing(name: string, text: string | Uint8Array): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return `stty -echo; cat ${path}; read line`
}

const C_SOURCE = `${Array.from(
  { length: 60 },
  (_, index) => `/* function ${index}: 漢字 and é */
static int f${index}(const char *name, unsigned long size)
{
\tif (size > ${index}UL && name[0] == '\\n')
\t\treturn printf("%s: %lu\\n", name, size);
\treturn 0x${index.toString(16)};
}
`,
).join('\n')}`

describe.skipIf(!requirement('tmux'))('a pane looks like tmux', () => {
  describe.each([SMALL, LARGE])('at $columns × $rows', (size) => {
    it.skipIf(!requirement('vim'))(
      'vim with colours, line numbers, a search, a split and a resize of the text',
      async () => {
        const path = join(directory, 'source.c')
        writeFileSync(path, C_SOURCE)
        const vim = `vim -u NONE -i NONE -N -n -c 'set t_RV= t_u7= nu hlsearch ruler showcmd background=dark' -c 'syntax on' ${path}`
        await compare(vim, size, /function 0/, [
          ['/return\r', '/return'],
          ['Gzz', 'f59'],
          [':split\r', /source\.c[\s\S]*source\.c/],
          ['ggOnew text with 漢字 and émojis\x1b', 'new text'],
          ['\x1b:set list cursorline\r', /\^I/],
        ])
      },
    )

    it.skipIf(!requirement('less'))('less with colours, a search and its line at the bottom', async () => {
      const path = join(directory, 'coloured.txt')
      const lines = Array.from(
        { length: 200 },
        (_, index) =>
          `\x1b[3${index % 8};${index % 3}mline ${index}\x1b[0m of \x1b[4mtext\x1b[24m 漢字 ${'x'.repeat(index)}`,
      )
      writeFileSync(path, `${lines.join('\n')}\n`)
      await compare(`less -R ${path}`, size, 'line 0', [
        ['/line 9\r', 'line 9'],
        ['G', '(END)'],
        ['gjj', 'line 2 '],
      ])
    })

    it.skipIf(!requirement('mc'))('mc with its panels', async () => {
      const place = join(directory, 'place')
      const configuration = join(directory, '.config', 'mc')
      mkdirSync(place, { recursive: true })
      mkdirSync(configuration, { recursive: true })
      for (const name of ['readme.txt', 'run.sh', '漢字.md', 'archive.tar.gz']) {
        writeFileSync(join(place, name), name.repeat(10))
        utimesSync(join(place, name), 1_700_000_000, 1_700_000_000)
      }
      chmodSync(join(place, 'run.sh'), 0o755)
      utimesSync(place, 1_700_000_000, 1_700_000_000)
      utimesSync(directory, 1_700_000_000, 1_700_000_000)
      writeFileSync(
        join(configuration, 'ini'),
        '[Midnight-Commander]\nauto_save_setup=false\n\n[Layout]\nmessage_visible=false\nfree_space=false\n',
      )
      await compare(`cd ${place} && exec mc --nosubshell --color ${place} ${place}`, size, '10Quit')
    })

    it.skipIf(!requirement('htop'))('the screen of htop', async () => {
      const bytes = await recordUntil('htop --delay=100 --readonly', size, /F10\S*Quit/)
      await compare(showing('htop.bin', bytes), size, /F10\S*Quit/)
    })

    it('a progress bar that repaints its line', async () => {
      const steps = Array.from(
        { length: 101 },
        (_, percent) =>
          `\r\x1b[K\x1b[32m${'█'.repeat(Math.floor(percent / 4))}\x1b[90m${'░'.repeat(25 - Math.floor(percent / 4))}\x1b[m ${percent}% \x1b[1m${percent * 7} MB/s\x1b[m`,
      )
      await compare(showing('progress', steps.join('')), size, '100%')
    })

    it('Chinese, Japanese, Korean, accents and plain emoji, also where they wrap', async () => {
      const text = [
        '你好，世界！这是一个很长的句子，它会在终端的右边缘换行，因为每个字符占两列。'.repeat(3),
        'x日本語のテキストと半角ｶﾅ、全角ＡＢＣ。'.repeat(4),
        '한국어 텍스트와 조합형 문자. '.repeat(6),
        'e\u0301 a\u0308 o\u0302 n\u0303 Ä é ñ ß ł ğ',
        '😀😃🚀🔥✅❌🎉 text 🐧🦀🐍 end',
        '🇩🇪 🇫🇷 flags, ½ ™ © → ← ≠ ≤ ─│┌┐└┘ █▓▒░',
      ].join('\r\n')
      await compare(showing('cjk', text), size, 'flags')
    })

    it('all colours and attributes, and the erasures that keep a background', async () => {
      const palette = Array.from({ length: 256 }, (_, index) => `\x1b[38;5;${index}m#\x1b[48;5;${index}m.\x1b[m`).join(
        '',
      )
      const attributes = [1, 2, 3, 4, 5, 7, 8, 9].map((code) => `\x1b[${code}mattribute ${code}\x1b[m`).join(' ')
      const gradient = Array.from({ length: 64 }, (_, index) => `\x1b[38;2;${index * 4};${255 - index * 4};128m@`).join(
        '',
      )
      const erased =
        '\x1b[44mto the end\x1b[K\x1b[m\r\n\x1b[41mabcdefgh\x1b[4D\x1b[2X\x1b[m\r\n\x1b[42m\x1b[1;5H\x1b[2L\x1b[m'
      await compare(
        showing('colours', `\r\n\r\n${palette}\r\n${attributes}\r\n${gradient}\x1b[m\r\n${erased}\x1b[20;1Hend`),
        size,
        'end',
      )
    })

    it('regions, tabs, insertions, deletions and reverse index', async () => {
      const text = [
        Array.from({ length: 30 }, (_, index) => `row ${index}\ta\tb`).join('\r\n'),
        '\x1b[5;15r\x1b[15;1Hscrolled\r\nwithin\r\nthe region\x1b[5;1H\x1bM\x1bMreversed\x1b[r',
        '\x1b[3;3H\x1b[4hinserted\x1b[4l\x1b[4;1H\x1b[3P\x1b[2@\x1b[18;1H\x1b[2M\x1b[2L\x1b(0lqqk\x1b(B',
        '\x1b[20;70Hend',
      ].join('')
      await compare(showing('regions', text), size, 'end')
    })
  })

  it.each(CAPTURES.filter((name) => name !== 'text'))('the captured bytes of %s', async (name) => {
    await compare(showing(`${name}.bin`, capture(name)), SMALL, /\w/)
  })

  it('differs in width only where the list at the top says so', async () => {
    const texts = { selector: '❤️☁️', tone: '👍🏽', space: 'a\u200bb', mark: '\r\u200bab', joined: '👨‍👩‍👧', keycap: '1️⃣' }
    const columns: Record<string, readonly [ours: number, tmux: number]> = {}
    for (const [name, text] of Object.entries(texts)) {
      const command = showing(name, `${text}\x1b]2;shown\x07`)
      using ours = new OurTerminal(command, SMALL)
      using tmux = new Tmux(command, SMALL, environment)
      const column = (state: string) => Number(state.split(' ')[0])
      const deadline = Date.now() + DEADLINE_MS
      const isShown = async () => column(await tmux.state()) > 0 && column(ours.state()) > 0
      while (!(await isShown()) && Date.now() < deadline);
      columns[name] = [column(ours.state()), column(await tmux.state())]
    }
    expect(columns).toEqual({
      selector: [4, 2],
      tone: [2, 4],
      space: [2, 2],
      mark: [3, 2],
      joined: [2, 2],
      keycap: [2, 1],
    })
  })
})

/** What a program writes until the screen shows something: complete, since a terminal's output comes in order. */
async function recordUntil(command: string, size: Size, wanted: RegExp): Promise<Uint8Array> {
  using ours = new OurTerminal(command, size)
  const deadline = Date.now() + DEADLINE_MS
  while (!wanted.test(ours.screen.visibleText().join('\n'))) {
    if (Date.now() > deadline) throw new Error(`${command} never showed ${wanted}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return Buffer.concat(ours.chunks)
}
