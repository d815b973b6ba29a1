/**
 * What a host that lies, stutters or is broken makes of a good answer: its bytes cut, repeated, swapped and replaced, in pieces
 * of any size, and another end. Everything follows from the numbers that it is given: the same seed makes the same bytes.
 */

export type HostileEnd = 'well' | 'badly' | 'killed' | 'lost' | 'silent'

export type HostileAnswer = {
  /** As they arrive. */
  readonly pieces: readonly Buffer[]
  /** Comes after the pieces again and again until whoever reads has had enough. */
  readonly endless: Buffer | undefined
  readonly end: HostileEnd
  /** What was done to it, for whoever looks for the cause. */
  readonly how: readonly string[]
}

export class Choice {
  readonly #number: () => number

  /** Numbers from 0 up to but not including 1. */
  constructor(numbers: () => number) {
    this.#number = numbers
  }

  below(limit: number): number {
    return Math.floor(this.#number() * limit)
  }

  one<T>(list: readonly [T, ...T[]]): T
  one<T>(list: readonly T[]): T | undefined
  one<T>(list: readonly T[]): T | undefined {
    return list[this.below(list.length)]
  }

  /** True once in so many times. */
  once(inTimes: number): boolean {
    return this.below(inTimes) === 0
  }
}

const NUMBERS = [
  ...['-1', '0', '1', '1e309', '-1e309', 'NaN', '9007199254740993', '18446744073709551616', '253402300799', '-0'],
  ...[
    '99999999999999999999999999',
    '0x7fffffff',
    '1e-320',
    '4294967296',
    '٣',
    '1.7976931348623157e308',
    '100000000000',
  ],
] as const
/** Together they are what a terminal, a shell, a table or JSON takes for something else. */
const WORDS = [
  ...[
    '\x1b]0;owned\x07',
    '\x1b[2J\x1b[H',
    '\x1bP$q\x1b\\',
    '\x9b31m',
    '\x07',
    '\x00',
    '\r',
    '\r\n',
    '\n',
    '\n\n',
    '\t',
    '\x7f',
  ],
  ...['\xff\xfe', '\xc0\xaf', '\xed\xa0\x80', '\xe2\x80\xae', '\xef\xbb\xbf', '\xf0\x9f\x92\xa9', '\xe2\x80\xa8'],
  ...[
    '../../../../tmp/x',
    '/etc/passwd',
    '..',
    '.',
    '',
    ' ',
    '-rf',
    '$(touch x)',
    '`touch x`',
    "'",
    '"',
    '\\',
    '{',
    '}',
    '[',
  ],
  ...[
    'null',
    'true',
    '[]',
    '{}',
    '""',
    '__proto__',
    'constructor',
    'toString',
    '%s%n',
    ':',
    ',',
    '=',
    '|',
    '\x1f',
    '@',
    '~',
  ],
] as const
const JSON_VALUES = [
  ...[
    'null',
    'true',
    '-1',
    '1e999',
    '9007199254740993',
    '"\\u001b]0;x\\u0007"',
    '"\\ud800"',
    '[]',
    '{}',
    '[[[]]]',
    '[null]',
  ],
  ...[
    '{"length":1e9}',
    '{"toString":1}',
    '["\\u001b[2J"]',
    '{"__proto__":{"x":1}}',
    '"9999-12-31T23:59:59Z"',
    '""',
    '"\\u0000"',
    '[1,"a"]',
  ],
] as const
const LONG_BYTES = [200, 5_000, 70_000, 300_000] as const
const ENDLESS_BYTES = 64 * 1024
/** An endless answer takes long to play. */
const ENDLESS_ONCE_IN = 500
const LONG_ONCE_IN = 25
const MOST_BYTES = 1024 * 1024

type Change = { readonly name: string; make(bytes: Buffer, choice: Choice, foreign: readonly string[]): Buffer }

const latin1 = (text: string) => Buffer.from(text, 'latin1')

function splice(bytes: Buffer, from: number, to: number, instead: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, from), instead, bytes.subarray(to)])
}

/** One of the places that look so, replaced. */
function replaceOne(bytes: Buffer, pattern: RegExp, choice: Choice, instead: string): Buffer {
  const found = [
    ...bytes
      .subarray(0, 64 * 1024)
      .toString('latin1')
      .matchAll(pattern),
  ]
  const match = choice.one(found)
  return match === undefined ? bytes : splice(bytes, match.index, match.index + match[0].length, latin1(instead))
}

function linesOf(bytes: Buffer): string[] {
  return bytes.toString('latin1').split(/(?<=\n)/)
}

const CHANGES: readonly [Change, ...Change[]] = [
  {
    name: 'flipped bits',
    make(bytes, choice) {
      const own = Buffer.from(bytes)
      for (let count = 1 + choice.below(8); count > 0 && own.length > 0; count--) {
        const at = choice.below(own.length)
        own[at] = (own[at] ?? 0) ^ (1 << choice.below(8))
      }
      return own
    },
  },
  { name: 'cut', make: (bytes, choice) => bytes.subarray(0, choice.below(bytes.length + 1)) },
  { name: 'beheaded', make: (bytes, choice) => bytes.subarray(choice.below(bytes.length + 1)) },
  {
    name: 'a part left out',
    make(bytes, choice) {
      const from = choice.below(bytes.length + 1)
      return splice(bytes, from, Math.min(bytes.length, from + choice.below(200)), Buffer.alloc(0))
    },
  },
  {
    name: 'a part repeated',
    make(bytes, choice) {
      const from = choice.below(bytes.length + 1)
      const part = bytes.subarray(from, from + 1 + choice.below(400))
      const times = choice.one([1, 2, 50])
      return splice(bytes, from, from, Buffer.concat(Array.from({ length: times }, () => part)))
    },
  },
  {
    name: 'lines in another order',
    make(bytes, choice) {
      const lines = linesOf(bytes)
      for (let count = 1 + choice.below(5); count > 0; count--) {
        const [line = ''] = lines.splice(choice.below(lines.length), 1)
        lines.splice(choice.below(lines.length + 1), 0, line)
      }
      return latin1(lines.join(''))
    },
  },
  {
    name: 'a line twice',
    make(bytes, choice) {
      const lines = linesOf(bytes)
      lines.splice(choice.below(lines.length), 0, choice.one(lines) ?? '')
      return latin1(lines.join(''))
    },
  },
  { name: 'everything twice', make: (bytes) => Buffer.concat([bytes, bytes]) },
  { name: 'another number', make: (bytes, choice) => replaceOne(bytes, /-?\d+(\.\d+)?/g, choice, choice.one(NUMBERS)) },
  { name: 'another word', make: (bytes, choice) => replaceOne(bytes, /[\w.-]+/g, choice, choice.one(WORDS)) },
  {
    name: 'a foreign word',
    make: (bytes, choice, foreign) => replaceOne(bytes, /[\w.-]+/g, choice, choice.one(foreign) ?? 'm9'),
  },
  {
    name: 'a foreign line',
    make(bytes, choice, foreign) {
      const lines = linesOf(bytes)
      lines.splice(choice.below(lines.length + 1), 0, `${choice.one(foreign) ?? 'm9'}\n`)
      return latin1(lines.join(''))
    },
  },
  {
    name: 'another value of JSON',
    make: (bytes, choice) =>
      replaceOne(
        bytes,
        /(?<=: ?|, ?|\[)("[^"\n]*"|-?\d+(\.\d+)?|true|false|null|\[\]|\{\})/g,
        choice,
        choice.one(JSON_VALUES),
      ),
  },
  {
    name: 'other brackets',
    make: (bytes, choice) => replaceOne(bytes, /\[[^[\]{}\n]*\]|\{[^[\]{}\n]*\}/g, choice, choice.one(JSON_VALUES)),
  },
  {
    name: 'hostile bytes put in',
    make(bytes, choice) {
      const at = choice.below(bytes.length + 1)
      return splice(bytes, at, at, latin1(choice.one(WORDS)))
    },
  },
  {
    name: 'noise put in',
    make(bytes, choice) {
      const at = choice.below(bytes.length + 1)
      return splice(bytes, at, at, noise(choice, 1 + choice.below(300)))
    },
  },
  {
    name: 'a long run',
    make(bytes, choice) {
      const at = choice.below(bytes.length + 1)
      const length = choice.once(LONG_ONCE_IN) ? choice.one(LONG_BYTES) : choice.one([200, 5_000])
      return splice(bytes, at, at, Buffer.alloc(length, choice.one(['x', '9', '[', '\n', '\0', ' ', '\xff', 'a b '])))
    },
  },
  { name: 'CRLF', make: (bytes) => latin1(bytes.toString('latin1').replaceAll('\n', '\r\n')) },
  { name: 'no line ends', make: (bytes) => latin1(bytes.toString('latin1').replaceAll('\n', ' ')) },
  { name: 'noise instead', make: (_, choice) => noise(choice, choice.below(2000)) },
]

function noise(choice: Choice, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => choice.below(256)))
}

/** `foreign`: words and lines about what is not this host's: other hosts, keys, jobs, paths. */
export function mutate(answer: Buffer, choice: Choice, foreign: readonly string[] = []): HostileAnswer {
  const how: string[] = []
  let bytes = answer
  for (let count = choice.one([0, 1, 1, 1, 1, 2, 2, 3, 5]); count > 0; count--) {
    const change = choice.one(CHANGES)
    how.push(change.name)
    bytes = change.make(bytes, choice, foreign).subarray(0, MOST_BYTES)
  }
  const endless = choice.once(ENDLESS_ONCE_IN) ? endlessBytes(choice) : undefined
  const end = choice.one(['well', 'well', 'well', 'badly', 'killed', 'lost', 'silent'] as const)
  if (endless !== undefined) how.push('without end')
  return { pieces: inPieces(bytes, choice), endless, end, how: [...how, `end: ${end}`] }
}

function endlessBytes(choice: Choice): Buffer {
  const pattern = choice.one(['y\n', 'x', '\n', '\0', '{"', '\x1b[A', '='])
  return Buffer.alloc(ENDLESS_BYTES, pattern, 'latin1')
}

/** Whole, halved anywhere, or a byte at a time where it is short. */
function inPieces(bytes: Buffer, choice: Choice): Buffer[] {
  const way = choice.below(4)
  if (way < 2 || bytes.length === 0) return bytes.length === 0 ? [] : [bytes]
  if (way === 2 && bytes.length <= 400) return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + choice.below(Math.ceil(bytes.length / 3))
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}
