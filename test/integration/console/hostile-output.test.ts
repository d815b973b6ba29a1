/**
 * What hosts print acts on their own pane alone. The bytes that leave the program for the user's terminal are held against
 * a strict grammar, the rest of the screen against what it showed before, and replies against the hosts that did not ask.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { findForeignBytes } from '../../support/outer-bytes.ts'

const ESC = '\x1b'
const ST = `${ESC}\\`

const random = (length: number): Uint8Array => {
  let state = 20_261_121
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 24
  })
}

/** Each is printed by one host, followed by what ends any open string and a marker. */
const HOSTILE: readonly (readonly [name: string, bytes: string | Uint8Array])[] = [
  [
    'titles and icon names',
    `${ESC}]0;OWNED\x07${ESC}]2;OWNED${ST}${ESC}]1;OWNED\x07${ESC}kOWNED${ST}${ESC}[22t${ESC}[23t`,
  ],
  ['a title that is asked back', `${ESC}]2;touch OWNED\x07${ESC}[21t${ESC}[20t`],
  ['the clipboard', `${ESC}]52;c;T1dORUQ=\x07${ESC}]52;c;?\x07${ESC}]5522;type=read\x07`],
  [
    'links that hide sequences',
    `${ESC}]8;;file:///x\x1b]52;c;T1dORUQ=\x07\x07link${ESC}]8;;${ST}${ESC}]8;id=\x9b;http://x\x07y`,
  ],
  [
    'queries of every kind',
    `${ESC}[6n${ESC}[?6n${ESC}[5n${ESC}[c${ESC}[>c${ESC}[=c${ESC}Z\x05${ESC}[18t${ESC}[?2026$p${ESC}P$qm${ST}${ESC}P+q544e${ST}`,
  ],
  [
    'questions for colours and palettes',
    `${ESC}]10;?\x07${ESC}]11;?\x07${ESC}]4;1;?\x07${ESC}]4;1;rgb:ff/00/00\x07${ESC}]104\x07${ESC}]12;red\x07`,
  ],
  ['ten megabytes without a newline', 'x'.repeat(10 * 1024 * 1024)],
  [
    'invalid UTF-8',
    Uint8Array.of(
      0xc0,
      0xaf,
      0xed,
      0xa0,
      0x80,
      0xf8,
      0x88,
      0xff,
      0xfe,
      0xe2,
      0x82,
      0x80,
      0x9b,
      0x33,
      0x31,
      0x6d,
      0xf4,
      0x90,
      0x80,
      0x80,
    ),
  ],
  ['C1 controls as UTF-8', '\u009b31m\u009d0;OWNED\u009c\u0090q\u009c\u0085\u008d\u0098x\u009c'],
  [
    'a hundred thousand colours',
    Array.from({ length: 100_000 }, (_, n) => `${ESC}[38;2;${n & 255};${n >> 8};7;4:3;53m`).join(''),
  ],
  ['random bytes', random(300_000)],
  ['resets', `${ESC}c${ESC}[!p${ESC}[?1049h${ESC}[?1049l${ESC}[?5h${ESC}[3J${ESC}#8`],
  [
    'cursor shapes and page sizes',
    `${ESC}[3 q${ESC}[99 q${ESC}[8;5;5t${ESC}[4;900;900t${ESC}[2t${ESC}[9;1t${ESC}[132$|${ESC}[?3h`,
  ],
  [
    'huge counts',
    [`@`, 'A', 'B', 'C', 'E', 'G', 'I', 'J', 'K', 'L', 'M', 'P', 'S', 'T', 'X', 'Z', 'b', 'd', 'g', 'r', 's', 'm']
      .map((final) => `a${ESC}[2147483648${final}${ESC}[99999999999999999999;99999999${final}`)
      .join(''),
  ],
  ['many parameters', `${ESC}[${'1;'.repeat(100_000)}m${ESC}[${'9'.repeat(100_000)}H${ESC}[${'?'.repeat(5000)}h`],
  ['strings that do not end', `${ESC}P${'q'.repeat(200_000)}`],
  [
    'an application command and a private message that do not end',
    `${ESC}_${'x'.repeat(100_000)}${ESC}^${'y'.repeat(100_000)}${ESC}X${'z'.repeat(100_000)}`,
  ],
  [
    'pictures',
    `${ESC}Pq#0;2;0;0;0${'~-'.repeat(5000)}${ST}${ESC}_Ga=T,f=32,s=1,v=1;AAAA${ST}${ESC}]1337;File=inline=1:AAAA\x07`,
  ],
  ['a synchronized update that does not end', `${ESC}[?2026h`],
  [
    'modes of the mouse, the keyboard and the paste',
    `${ESC}[?1000;1002;1003;1005;1006;1015;1016;9;1004h${ESC}[?2004h${ESC}[>4;2m${ESC}[>1u${ESC}[?1h${ESC}=${ESC}[?7l${ESC}[20h${ESC}[4h`,
  ],
  ['a bell flood', '\x07'.repeat(100_000)],
  ['text that turns around', 'a\u202eDENWO\u202c\u2066b\u2069\u200e\u200f\u061c \u05d0\u05d1 \u0627\u0644'],
  [
    'combining floods',
    `Z${'\u0351\u0489\u036f'.repeat(20_000)} e\u200d\u200d\u200d\u{1f469}${'\u200d\u{1f469}'.repeat(5000)} \ufe0f\u20e3\u{e0041}`,
  ],
  ['line drawing and other character sets', `${ESC}(0lqqk${ESC}(B\x0e\x0f${ESC}%@${ESC}%G${ESC}n${ESC}o${ESC}|`],
  ['media copy and tests', `${ESC}[5i${ESC}[4iOWNED${ESC}[?5i${ESC}[2;1y${ESC}[1;1;2;2;1$w`],
  [
    'notifications and working directories',
    `${ESC}]9;OWNED\x07${ESC}]777;notify;OWNED;x\x07${ESC}]7;file://x/\x07${ESC}]133;A\x07${ESC}]99;;OWNED${ST}`,
  ],
]

describe('output of a hostile host', () => {
  let directory: string
  let console: ConsoleDriver
  let checked = 0

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-hostile-'))
    for (const [index, [, bytes]] of HOSTILE.entries()) writeFileSync(join(directory, String(index)), bytes)
    console = await openConsole({ args: ['demo', '--count', '2'], size: [120, 30] })
    await console.expectReady()
    // Whatever another host's reply were typed into would show it.
    await console.receivers('m2')
    await console.type('echo rea""dy; cat -v\r')
    await console.expectOn('m2', /^ready$/m)
    await console.receivers('m1')
    await console.type("PS1='> '; clear\r")
    await console.expectOn('m1', /^>$/m)
  })

  afterAll(async () => {
    await console?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const expectClean = () => {
    const output = console.output()
    expect(findForeignBytes(output.subarray(checked))).toBeUndefined()
    checked = output.length
  }

  it.each(HOSTILE.map(([name], index) => [name, index] as const))('%s: nothing but cells', async (_, index) => {
    const other = console.cells(console.pane('m2'))
    // The replies are eaten by the shell that asked, up to the one to a question of its own.
    const file = join(directory, String(index))
    await console.type(
      `stty -echo -icanon; cat ${file}; printf '\\030\\033\\\\\\033c\\033[7;13H\\033[6n'; until [[ $REPLY == *'[7;13' ]]; do read -r -d R; done; REPLY=; clear; stty echo icanon; echo mar''ker-${index}\r`,
    )
    await console.expectOn('m1', new RegExp(`^marker-${index}$`, 'm'))
    await console.expectPrompts('m1')
    expectClean()
    expect(console.cells(console.pane('m2'))).toEqual(other)
    expect(console.screen().at(-1)).not.toContain('OWNED')
    expect(console.modes).toMatchObject({ isAlternateScreen: true, isBracketedPaste: true, isFocusReporting: false })
  })

  it('changes neither the other host nor the console', async () => {
    await console.receivers('m2')
    await console.type('still here\r')
    await console.expectOn('m2', /^still here\nstill here$/m)
    expect(await console.quit()).toEqual({ code: 0 })
    expectClean()
  })
})
