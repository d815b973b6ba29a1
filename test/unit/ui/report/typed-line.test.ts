/** Whether a host echoed what was typed. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PLAIN_PEN } from '../../../../src/terminal/pen.ts'
import { asksSecret } from '../../../../src/ui/report/asks-secret.ts'
import { TypedLines } from '../../../../src/ui/report/typed-line.ts'
import { randomRuns } from '../../../support/random-runs.ts'

/** `>` types, `<` prints, a number lets that many milliseconds pass. */
function play(
  before: string,
  steps: readonly (readonly ['>' | '<', string] | number)[],
  { columns = 80, isEditing = false } = {},
) {
  const typed = new TypedLines(before, columns, isEditing)
  let nowMs = 1000
  for (const step of steps) {
    if (typeof step === 'number') nowMs += step
    else if (step[0] === '>') typed.type(Buffer.from(step[1]), nowMs)
    else typed.print(Buffer.from(step[1]))
  }
  return typed.lines.map(({ text, state }) => `${state}: ${text}`)
}

describe('an echo', () => {
  it.each<[string, Parameters<typeof play>[1]]>([
    [
      'key by key',
      [
        ['>', 'ls'],
        ['<', 'l'],
        ['<', 's'],
        ['>', '\r'],
        ['<', '\r\nfile\r\n$ '],
      ],
    ],
    [
      'all at once',
      [
        ['>', 'ls\r'],
        ['<', 'ls\r\nfile\r\n$ '],
      ],
    ],
    ['of a slow host', [['>', 'l'], 400, ['>', 's\r'], 3000, ['<', 'ls\r\nfile\r\n$ ']]],
    [
      'with corrections',
      [
        ['>', 'lx'],
        ['<', 'lx'],
        ['>', '\x7fs\r'],
        ['<', '\b\x1b[Ks\r\n'],
      ],
    ],
    [
      'that a shell redraws, in colours',
      [
        ['>', 'ls\r'],
        ['<', 'l\b\x1b[1ml\x1b[0ms\x1b[90m -la\x1b[39m\b\b\b\b\r\n'],
      ],
    ],
    [
      'after typed blanks',
      [
        ['>', '   ls\r'],
        ['<', '   ls\r\nfile\r\n$ '],
      ],
    ],
    [
      'after a wrapped line that Ctrl-U erases, as readline does it',
      [
        ['>', `${'x'.repeat(70)}\x15`],
        ['<', `${'x'.repeat(68)} \rxx`],
        ['<', '\x1b[A\r\x1b[C\x1b[C\x1b[C\x1b[K\r\n\r\x1b[K\x1b[A\x1b[C\x1b[C\x1b[C'],
        ['>', 'ls\r'],
        ['<', 'ls\r\nfile\r\n'],
      ],
    ],
    [
      'that a screen is cleared after',
      [
        ['>', 'ls\r'],
        ['<', 'ls\r\n\x1b[H\x1b[2J$ '],
      ],
    ],
  ])('is found %s', (_, steps) => {
    expect(play('root@m1:~# ', steps)).toEqual(['echoed: ls'])
  })

  it('is found where a host with a line editor has stalled for a while', () => {
    const steps = [['>', 'uptime'], 5000, ['>', '\r'], ['<', 'uptime\r\nup 3 days\r\n$ ']] as const
    expect(play('$ ', steps, { isEditing: true })).toEqual(['echoed: uptime'])
    expect(play('$ ', [...steps.slice(0, 3), ['<', '\r\n$ ']], { isEditing: true })).toEqual(['hidden: uptime'])
  })

  it('is found over the line breaks of a narrow terminal', () => {
    const text = 'echo one two three four five'
    // As readline does it: at the margin a blank and a return make the terminal wrap.
    const printed = `${text.slice(0, 18)} \r${text.slice(18)}\r\n`
    expect(
      play(
        '$ ',
        [
          ['>', `${text}\r`],
          ['<', printed],
        ],
        { columns: 20 },
      ),
    ).toEqual([`echoed: ${text}`])
  })

  it('is found when the shell prints a line again that was typed while a program ran', () => {
    expect(
      play('', [
        ['>', 'ls\r'],
        ['<', 'l noise\r\nroot@m1:~# ls\r\nfile\r\n'],
      ]),
    ).toEqual(['echoed: ls'])
  })
})

describe('what is hidden', () => {
  it.each([
    ['stars that fill rows', '*'.repeat(33), '\r\n', '*'.repeat(40)],
    ['a row that ends with one character of it', `${'.'.repeat(32)}h`, '\r\n', 'ok'],
    ['a row that is not filled with its beginning', 'hun', '\r\n', 'ter2-secret'],
    ['a row that is filled with its beginning, and output', 'hunter2-hunter2-hunter2-hunter2-h', '\r\n', 'welcome'],
    ['only blanks', ' '.repeat(33), '\x1b[A\r\r\n', ' '.repeat(20)],
  ])('where a line editor shows %s', (_, first, feed, second) => {
    const password = 'hunter2-hunter2-hunter2-hunter2-hunter2-hunter2'
    const output = ['<', `${first}${feed}${second}\r\n`] as const
    for (const steps of [[['>', `${password}\r`], output] as const, [['>', password], output, ['>', '\r']] as const])
      expect(play('Sesam: ', steps, { columns: 40, isEditing: true })).toEqual([`hidden: ${password}`])
  })

  it.each<[string, string, Parameters<typeof play>[1]]>([
    [
      'a password of ssh',
      "root@m2's password: ",
      [
        ['>', 'hunter2\r'],
        ['<', '\r\nLast login\r\n$ '],
      ],
    ],
    [
      'of sudo',
      '[sudo] password for me: ',
      [
        ['>', 'hunter2\r'],
        ['<', '\r\nSorry, try again.\r\n'],
      ],
    ],
    [
      'of read -s',
      'Say it: ',
      [
        ['>', 'hunter2\r'],
        ['<', '\r\n$ '],
      ],
    ],
    [
      'of read -s, printed by the program on the same line',
      'Say it: ',
      [
        ['>', 'hunter2\r'],
        ['<', 'you said hunter2\r\n'],
      ],
    ],
    [
      'printed on a line of its own',
      'Say it: ',
      [
        ['>', 'hunter2\r'],
        ['<', '\r\nhunter2\r\n'],
      ],
    ],
    [
      'shown as stars',
      'Say it: ',
      [
        ['>', 'hunter2\r'],
        ['<', '*******\r\n'],
      ],
    ],
    [
      'a password that is echoed',
      'Password: ',
      [
        ['>', 'hunter2\r'],
        ['<', 'hunter2\r\n'],
      ],
    ],
    ['echoed too late', 'Say it: ', [['>', 'hunter2'], 5000, ['>', '\r'], ['<', 'hunter2\r\n']]],
    [
      'typed with corrections',
      'Say it: ',
      [
        ['>', 'huntr\x7fer2\r'],
        ['<', '\r\n'],
      ],
    ],
  ])('%s', (_, before, steps) => {
    expect(play(before, steps)).toEqual(['hidden: hunter2'])
  })

  it('is not decided while a shell is silent', () => {
    expect(play('$ ', [['>', 'uptime\r']])).toEqual(['silent: uptime'])
  })

  it('is hidden while a program is silent, if it was entered or is as long as a password', () => {
    expect(play('', [['>', 'hunter2\r']])).toEqual(['hidden: hunter2'])
    expect(play('', [['>', 'hunter2']])).toEqual(['hidden: hunter2'])
    expect(play('', [['>', 'q']])).toEqual(['silent: q'])
    expect(
      play('', [
        ['>', 'hunter2\r'],
        ['<', 'hunter2\r\n'],
      ]),
    ).toEqual(['echoed: hunter2'])
  })
})

describe('what a shell shows otherwise than it was typed', () => {
  type Steps = Parameters<typeof play>[1]
  const typedAndShown = (...keys: readonly (readonly [string, string])[]): Steps =>
    keys.flatMap(
      ([key, shown]): Steps => [
        ['>', key],
        ['<', shown],
      ],
    )
  const ENTER = ['\r', '\r\nfile\r\n$ '] as const
  const WORD = [...'main'].map((key) => [key, key] as const)

  it.each<[string, Steps, string]>([
    [
      'an abbreviation that a blank expands',
      typedAndShown(['gco', 'gco'], [' ', '\b\b\bgit checkout '], ...WORD, ENTER),
      'gco main',
    ],
    [
      'history that a blank expands',
      typedAndShown(['ls !$', 'ls !$'], [' ', '\b\b/etc '], ...WORD, ENTER),
      'ls !$ main',
    ],
    ['output in the middle of it', typedAndShown(['ls ', 'ls \r\n[1]+  Done\r\n'], ...WORD, ENTER), 'ls main'],
    [
      'a part of a word that Ctrl-W leaves',
      typedAndShown(['ls /a/b', 'ls /a/b'], ['\x17', '\b\x1b[K'], ...WORD, ENTER),
      'ls main',
    ],
  ])('is echoed: %s', (_, steps, text) => {
    expect(play('$ ', steps)).toEqual([`echoed: ${text}`])
  })

  it.each<[string, boolean, Steps]>([
    ['key by key', false, typedAndShown(['\x1b', ''], ['u', ''], ['p', 'p'], ['time', 'time'], ENTER)],
    ['at once', true, typedAndShown(['\x1b', ''], ['uptime\r', 'ptime\r\nfile\r\n$ '])],
  ])('is echoed after Esc, which takes the first key, %s', (_, isEditing, steps) => {
    expect(play('$ ', steps, { isEditing })).toEqual(['echoed: uptime'])
  })

  it.each<[string, string]>([
    ['as it was typed', '^[uptime\r\nfile\r\n$ ptime\r\n'],
    ['by the line editor alone', 'file\r\n$ ptime\r\n'],
  ])('is echoed after Esc where it is typed before the prompt, %s', (_, output) => {
    const keys: Steps = [
      ['>', '\x1b'],
      ['>', 'uptime\r'],
    ]
    expect(play('', [...keys, ['<', output]])).toEqual(['echoed: uptime'])
  })

  it.each<[string, string, Steps]>([
    ['not shown', 'Say it: ', typedAndShown(['\x1b', ''], ['hunter2', ''], ['\r', '\r\n$ '])],
    [
      'printed by the program',
      'Say it: ',
      typedAndShown(['\x1b', ''], ['hunter2', ''], ['\r', 'you said hunter2\r\n$ ']),
    ],
    ['answered on the same line', 'Say it: ', typedAndShown(['\x1b', ''], ['hunter2', ''], ['\r', ' ok\r\n$ '])],
    ['shown as stars', 'Say it: ', typedAndShown(['\x1b', ''], ['hunter2', '*******'], ['\r', '\r\n$ '])],
    ['typed before it is asked for', '', typedAndShown(['\x1b', ''], ['hunter2\r', 'working\r\nSay it: \r\n$ '])],
    ['recalled into', 'Say it: ', typedAndShown(['\x1b[A', ''], ['hunter2', ''], ['\r', '\r\n$ '])],
  ])('is hidden: a password after a key that edits, %s', (_, before, steps) => {
    expect(play(before, steps)).toEqual(['hidden: hunter2'])
  })

  it('is hidden: a password of which the beginning was typed before the program asked', () => {
    const steps = typedAndShown(['hun', 'hun'], ['ter2', '\r\nSay it: '], ['\r', '\r\n$ '])
    expect(play('', steps)).toEqual(['hidden: hunter2'])
  })

  it('hides a password also as it is without the key that Esc takes on another host', () => {
    const typed = new TypedLines('Password: ', 80)
    for (const keys of ['\x1b', 'hunter2\r']) typed.type(Buffer.from(keys), 0)
    typed.print(Buffer.from('\r\n'))
    expect(typed.hidden).toEqual(['hunter2', 'unter2'])
  })
})

describe('an echo that nobody can see', () => {
  const look = (seen: string) => ({ seen, pen: PLAIN_PEN, savedPen: PLAIN_PEN, backdrop: 'dark' as const })
  const stateAfter = (before: string, printed: readonly [string, ...string[]], seen = before) => {
    const typed = new TypedLines(before, 80, false, look(seen))
    const [first, ...others] = printed
    typed.print(Buffer.from(first))
    const keys = [...'hunter2']
    for (const [index, key] of keys.entries()) {
      typed.type(Buffer.from(key), 0)
      typed.print(Buffer.from((others[0] ?? 'KEY').replace('KEY', keys[index] ?? '')))
    }
    typed.type(Buffer.from('\r'), 0)
    typed.print(Buffer.from('\r\n\x1b[m$ '))
    return typed.lines[0]?.state
  }

  it.each<[string, readonly [string, ...string[]]]>([
    ['concealed', ['\x1b[8m']],
    ['concealed among other parameters', ['\x1b[0;1;8m']],
    ['concealed for each key', ['', '\x1b[8mKEY\x1b[28m']],
    ['concealed by an eight-bit control', ['\u009b8m']],
    ['black on black', ['\x1b[30;40m']],
    ['black on black of another palette', ['\x1b[30;48;5;16m']],
    ['nearly the colour of its background', ['\x1b[38;2;200;40;40;48:2::204:40:40m']],
    ['bright white on bright white', ['\x1b[97;107m']],
    ['in the colour of a dark terminal', ['\x1b[38;5;232m']],
    ['in inverse video', ['\x1b[7;31;41m']],
    ['concealed after the cursor is restored', ['\x1b[8m\x1b7\x1b[m', '\x1b8KEY\x1b7\x1b[m']],
  ])('does not count: %s', (_, printed) => {
    expect(stateAfter('Say it: ', printed)).toBe('hidden')
  })

  it.each<[string, readonly [string, ...string[]]]>([
    ['blue that is nearly black, on black', ['\x1b[38;2;0;0;25;48;2;0;0;0m']],
    ['a dark blue of the palette on a dark terminal', ['\x1b[38;5;17m']],
    ['a dark grey that is dimmed', ['\x1b[2;38;2;60;60;60;48;2;0;0;0m']],
    ['in another character set', ['\x1b(0']],
    ['with a sequence that has a control character in it', ['', '\x1b[\x078mKEY\x1b[m']],
  ])('does not count: %s', (_, printed) => {
    expect(stateAfter('Say it: ', printed)).toBe('hidden')
  })

  it.each<[string, readonly [string, ...string[]]]>([
    ['red', ['\x1b[31m']],
    ['grey on black', ['\x1b[90;40m']],
    ['white on the colour of the terminal', ['\x1b[97m']],
    ['black on white', ['\x1b[30;107m']],
    ['shown again', ['\x1b[8m\x1b[28m']],
    ['reset', ['\x1b[8;30;40m\x1b[m']],
    ['after another sequence of the same letter', ['\x1b[>4;8m\x1b[?8m']],
    ['with an underline in a colour of its own', ['\x1b[4:3;58:2::8:8:8;58;5;8m']],
  ])('counts: %s', (_, printed) => {
    expect(stateAfter('Say it: ', printed)).toBe('echoed')
  })

  it('counts in a whole line only where the pen shows it', () => {
    for (const [pen, state] of [
      ['', 'echoed'],
      ['\x1b[8m', 'hidden'],
    ] as const) {
      const typed = new TypedLines('', 80)
      typed.type(Buffer.from('hunter2\r'), 0)
      typed.print(Buffer.from(`${pen}first\r\nhunter2\r\n`))
      expect(typed.lines[0]?.state).toBe(state)
    }
  })

  it('hides what is typed at a question that ends with text that nobody can see', () => {
    expect(stateAfter('Password:.', [''], 'Password:')).toBe('hidden')
    expect(stateAfter('Say it:.', [''], 'Say it:')).toBe('echoed')
  })
})

it('never finds the pieces of a line that was not echoed', () => {
  const word = fc.stringMatching(/^[a-m]{1,12}$/)
  const secret = fc.stringMatching(/^[n-z]{4,15}$/)
  const piece = fc.record({ from: fc.nat(14), to: fc.nat(14), end: fc.oneof(fc.constant(''), word) })
  const rows = fc.array(fc.oneof(word, piece), { maxLength: 30 })
  fc.assert(
    fc.property(word, secret, rows, (line, hidden, output) => {
      const text = output.map((row) =>
        typeof row === 'string'
          ? `# ${row}\r\n`
          : `${hidden.slice(row.from, Math.min(row.to, hidden.length - 1))} ${row.end}\r\n`,
      )
      const states = play('# ', [
        ['>', `${line}\r${hidden}\recho end\r`],
        ['<', `${line}\r\n${text.join('')}# echo end\r\n`],
      ])
      expect(states[1]).toBe(`hidden: ${hidden}`)
    }),
    { numRuns: randomRuns(300) },
  )
})

describe('an echo that does not last', () => {
  const SECRET = 'hunter2'
  /** For each key, what the host prints in one or more packets. */
  const stateAfter = (before: string, packets: (key: string, text: string) => readonly string[], isEditing = false) => {
    const typed = new TypedLines(before, 80, isEditing)
    for (let length = 1; length <= SECRET.length; length++) {
      typed.type(Buffer.from(SECRET[length - 1] ?? ''), 0)
      for (const packet of packets(SECRET[length - 1] ?? '', SECRET.slice(0, length))) typed.print(Buffer.from(packet))
    }
    const early = typed.lines[0]?.state
    typed.type(Buffer.from('\r'), 0)
    typed.print(Buffer.from('\r\n$ '))
    return [early, typed.lines[0]?.state]
  }
  const n = (text: string) => text.length

  it.each<[string, (key: string, text: string) => readonly string[]]>([
    ['erased with ECH', (_, text) => [`${text}\x1b[${n(text)}D\x1b[${n(text)}X`]],
    ['erased with ED', (_, text) => [`${text}\x1b[${n(text)}D\x1b[J`]],
    ['erased with EL', (_, text) => [`${text}\x1b[${n(text)}D\x1b[1K\x1b[K`]],
    ['on a line that is deleted', (_, text) => [`${text}\x1b[${n(text)}D\x1b[M`]],
    ['on a line that is pushed down', (_, text) => [`\r${text}\x1b[L`]],
    ['on a screen that is scrolled', (_, text) => [`\r${text}\x1b[99S`]],
    ['overwritten after the cursor was saved', (_, text) => [`\x1b7${text}\x1b8${' '.repeat(n(text))}\x1b8`]],
    ['overwritten at a place', (_, text) => [`\x1b[5;9H${text}\x1b[5;9f${' '.repeat(n(text))}\x1b[5d\x1b[9G`]],
    ['overwritten after a tab', (_, text) => [`\r\t${text}\r\t${' '.repeat(n(text))}\r\t`]],
    ['on the row above, which is erased', (_, text) => [`${text}\r\n\x1b[A\x1b[2K`]],
    ['on a screen that is reset', (_, text) => [`${text}\x1bc`]],
    ['on the other screen', (_, text) => [`\x1b[?1049h${text}\x1b[?1049l`]],
    ['erased a moment later', (key) => [key, '\b \b']],
    ['erased a moment later, all of it', (_, text) => [text, `\x1b[${n(text)}D\x1b[${n(text)}X`]],
    ['concealed a moment later', (key) => [key, `\b\x1b[8m${key}\x1b[m`]],
    ['covered with a star a moment later', (key) => [key, '\b*']],
    ['erased when the next key comes', (key, text) => [n(text) > 1 ? `\b \b${key}` : key]],
    ['covered with a star when the next key comes', (key, text) => [n(text) > 1 ? `\b*${key}` : key]],
  ])('does not count: %s', (_, packets) => {
    for (const before of ['Losung: ', 'root = ']) expect(stateAfter(before, packets)).toEqual(['hidden', 'hidden'])
  })

  it.each<[string, (key: string, text: string) => readonly string[]]>([
    ['a moment later', (key) => [key, '\b \b']],
    ['at once', (_, text) => [`${text}\x1b[${n(text)}D\x1b[${n(text)}X`]],
    ['with stars', (key) => [key, '\b*']],
    ['with a star when the next key comes', (key, text) => [n(text) > 1 ? `\b*${key}` : key]],
    ['with other signs when the next key comes', (key, text) => [n(text) > 1 ? `\b${'#*+-'[n(text) % 4]}${key}` : key]],
  ])('does not count where a program pretends to be a shell, and erases it %s', (_, packets) => {
    for (const isEditing of [false, true]) expect(stateAfter('Losung $ ', packets, isEditing)[1]).toBe('hidden')
  })

  it('does not count where it came after Enter and is erased a moment later, with or without a line feed', () => {
    for (const end of ['', '\r\n']) {
      const typed = new TypedLines('Losung: ', 80)
      typed.type(Buffer.from(`${SECRET}\r`), 0)
      typed.print(Buffer.from(`${SECRET}${end}`))
      typed.print(Buffer.from(`${end && '\x1b[A'}\x1b[2K\r\n$ `))
      expect(typed.lines[0]?.state).toBe('hidden')
    }
  })

  it('does not count without a question before it, if the row is printed and erased at once', () => {
    const erasing = (rows: number) => `\x1b[${rows}A\x1b[J`
    expect(
      play('', [
        ['>', `${SECRET}\r`],
        ['<', `${SECRET}\r\n${erasing(1)}`],
      ]),
    ).toEqual([`hidden: ${SECRET}`])
    const two: Parameters<typeof play>[1] = [
      ['>', `${SECRET}\rhunter33\r`],
      ['<', `${SECRET}\r\nhunter33\r\n`],
    ]
    expect(play('', two)).toEqual([`echoed: ${SECRET}`, 'echoed: hunter33'])
    const [typed, printed] = two as [['>', string], ['<', string]]
    const isErased = play('', [typed, ['<', `${printed[1]}${erasing(2)}`]])
    expect(isErased).toEqual([`hidden: ${SECRET}`, 'hidden: hunter33'])
  })

  it('counts without a question before it, if much follows or it is erased later', () => {
    const rows = 'row\r\n'.repeat(900)
    expect(
      play('', [
        ['>', 'make\r'],
        ['<', `make\r\n${rows}`],
      ]),
    ).toEqual(['echoed: make'])
    expect(
      play('', [
        ['>', 'make\r'],
        ['<', 'make\r\n'],
        ['<', '\x1b[H\x1b[2J'],
      ]),
    ).toEqual(['echoed: make'])
  })

  it('counts where a program clears the line after Enter', () => {
    const typed = new TypedLines('Name: ', 80)
    for (const key of SECRET) {
      typed.type(Buffer.from(key), 0)
      typed.print(Buffer.from(key))
    }
    typed.type(Buffer.from('\r'), 0)
    typed.print(Buffer.from('\r\x1b[2K\x1b[H\x1b[2J$ '))
    expect(typed.lines[0]?.state).toBe('echoed')
  })
})

describe('a question for a password', () => {
  it.each([
    'P\u0430ssword: ',
    'Ρassωord: ',
    'Ｐａｓｓｗｏｒｄ：',
    'Pa\u200bssword: ',
    'Pássword: ',
    'Kennwort: ',
    'Paßwort für ada: ',
    'Mot de passe : ',
    'Contraseña: ',
    '[sudo] senha para root: ',
    '[sudo] пароль для root: ',
    '[sudo] パスワード root: ',
    '[sudo] hasło użytkownika root: ',
    '[sudo] root 암호: ',
    '[sudo] lösenord för root: ',
    '[sudo] adgangskode for root: ',
    '[sudo] password di root: ',
    '[sudo] heslo pro root: ',
    '[sudo] root parolası: ',
    'Κωδικός πρόσβασης: ',
    '密碼：',
    'Contrasen\u0303a: ',
    'Clave: ',
    'Wachtwoord: ',
    'Password for root =  ',
    'enter passphrase ',
    '[Kennwort] ',
  ])('is known: %s', (text) => {
    expect(asksSecret(text)).toBe(true)
  })

  it.each([
    'Паспорт: ',
    'Name: ',
    'enclave: ',
    'ls ~/passwords # ',
    '~/passwords ❯ ',
    'm1# cat passwords',
  ])('is not seen in %s', (text) => {
    expect(asksSecret(text)).toBe(false)
  })
})

it.each([
  ['unseen', 'its beginning', '$ ', 'cat fi'],
  ['unseen', 'its beginning after the prompt, which is drawn again', '$ ', '\r\x1b[K\r$ cat fi'],
  ['hidden', 'nothing', '$ ', ''],
  ['hidden', 'one character', '$ ', 'c'],
  ['hidden', 'stars', '$ ', '***'],
  ['hidden', 'other text', '$ ', 'cart'],
  ['hidden', 'its beginning after a question for a password', 'Password: ', 'cat fi'],
  ['hidden', 'its beginning where no line editor reads', 'Give: ', 'cat fi'],
])('is %s where a terminal that gets another size showed %s', (state, _, before, shown) => {
  const typed = new TypedLines(before, 80, before !== 'Give: ')
  typed.type(Buffer.from('cat file\r'), 0)
  typed.print(Buffer.from(shown))
  typed.resize(before.length, 24)
  typed.print(Buffer.from('le\r\nanswer\r\n'))
  expect(typed.lines.map((line) => line.state)).toEqual([state])
})

it('takes hostile output without an end', () => {
  const typed = new TypedLines('$ ', 80)
  typed.type(Buffer.from('ls\r'), 0)
  for (const text of ['\x1b]0;', 'x'.repeat(100_000), '\x1b[999999999@\x1b[999999999C\x1b[-5D', '\x1b['.repeat(10_000)])
    typed.print(Buffer.from(text))
  expect(typed.lines).toHaveLength(1)
})

it('finds the same echoes in plain rows as in rows with sequences', () => {
  const row = fc.array(fc.constantFrom('ls', 'm1:~# ', '$ ', 'é', '語', ' ', 'x'), { maxLength: 6 })
  const typed = fc.constantFrom('ls', 'x', 'é', 'ls x', 'cat')
  fc.assert(
    fc.property(typed, fc.array(row, { maxLength: 8 }), fc.constantFrom('', '\r'), (text, rows, carriage) => {
      const states = ['', '\x1b[m'].map((sequence) => {
        const lines = new TypedLines('m1:~# ', 80)
        for (const key of [...text, '\r']) lines.type(Buffer.from(key), 0)
        lines.print(
          Buffer.from(`${rows.map((words) => `${sequence}${words.join('')}${carriage}\n`).join('')}end of it`),
        )
        return lines.lines
      })
      expect(states[0]).toEqual(states[1])
    }),
    { numRuns: randomRuns(300) },
  )
})

describe('a line that was not echoed is hidden although the host then prints what begins with it', () => {
  it.each([
    ['the prompt', 'root', '\r\nroot@m1:~# '],
    ['the prompt in pieces', 'root', '\r\nroot', '@m1:~# '],
    ['a greeting', 'welcome', '\r\nwelcome back\r\n$ '],
    ['the next command', 'pass', '\r\nroot@m1:~# ', 'passwd -S root\r\n'],
  ])('%s', (_, password, ...printed) => {
    const steps = printed.map((text) => ['<', text] as const)
    expect(play('', [['>', `${password}\r`], ...steps])[0]).toBe(`hidden: ${password}`)
  })

  it('but an echo with its end is one, at once or before Enter', () => {
    expect(
      play('', [
        ['>', 'make\r'],
        ['<', 'make\r\nmake: nothing to do\r\n'],
      ])[0],
    ).toBe('echoed: make')
    expect(
      play('', [
        ['>', 'make'],
        ['<', 'make'],
        ['>', '\r'],
        ['<', ' …\r\n'],
      ])[0],
    ).toBe('echoed: make')
  })
})
