import { expect, it } from 'vitest'
import { printable, printableJson, printableLines } from '../../../src/base/printable.ts'

const TAGS = '\u{e0041}\u{e0042}\u{e007f}'
const SCOTLAND = '\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}'

it('makes visible whatever could act on a terminal, hide text or reverse it', () => {
  const unsafe = [
    '\u0000\u001b\u007f\u009b\u061c\u200b\u200e\u202e\u2028\u2060\u2062\u2066\ufeff\ufff9',
    '\u00ad\u034f\u115f\u1160\u17b4\u180b\u180e\u206a\u206f\u2065\u3164\ufe00\uffa0',
    '\u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}\u{e0000}\u{e0001}\u{e0041}\u{e007f}\u{e0100}\u{e01ef}\u{e0fff}',
  ]
  for (const character of unsafe.join('')) {
    expect(printable(`a${character}b`)).toMatch(/^a\\(?:[xu][0-9a-f]+|u\{[0-9a-f]+\})b$/)
  }
  expect(printable(`a${TAGS}b\ud800c\udc00\u{1bca0}`)).toBe('a\\u{e0041}\\u{e0042}\\u{e007f}b\\ud800c\\udc00\\u{1bca0}')
})

it('keeps what text and emoji need', () => {
  for (const text of [
    'Zürich 東京 👩‍💻 ❤️ ☎︎ نامه‌ای क्‍ष ١٢ \u0600١ 한국어',
    `${SCOTLAND} ${SCOTLAND}`,
    'e\u0301 \u{e000}\u{f0001}',
  ])
    expect(printable(text)).toBe(text)
})

it('keeps tags only in a flag', () => {
  const hidden = `\u{1f3f4}${'\u{e0061}'.repeat(7)}\u{e007f}`
  expect(printable(hidden)).toBe(`\u{1f3f4}${'\\u{e0061}'.repeat(7)}\\u{e007f}`)
  expect(printable(`${SCOTLAND}\u{e0061}`)).toBe(`${SCOTLAND}\\u{e0061}`)
})

it('keeps line breaks and tabs of several lines', () => {
  expect(printableLines('a\tb\nc')).toBe('a\tb\nc')
  expect(printableLines('ä\tb\n\r\u00ad')).toBe('ä\tb\n\\x0d\\xad')
  expect(printable('a\tb\n')).toBe('a\\x09b\\x0a')
})

it('writes JSON with the same value and nothing unsafe', () => {
  const value = { [`a${TAGS}`]: `\u0085\u00ad\ud800 ${SCOTLAND}${TAGS}"\\`, plain: 'text' }
  const json = printableJson(value)
  expect(JSON.parse(json)).toEqual(value)
  expect(json.replaceAll(SCOTLAND, '')).toMatch(/^[\x20-\x7e]+$/)
})
