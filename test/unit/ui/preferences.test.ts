import { expect, test } from 'vitest'
import { MusterError } from '../../../src/base/errors.ts'
import { defaultPreferences, parsePreferences } from '../../../src/ui/preferences.ts'

const problemsOf = (text: string): string => {
  try {
    parsePreferences(text, 'preferences.yaml')
  } catch (error) {
    expect(error).toBeInstanceOf(MusterError)
    return (error as MusterError).message
  }
  throw new Error('no problem was found')
}

test('uses the defaults for an empty file', () => {
  expect(parsePreferences('', 'p')).toEqual(defaultPreferences)
})

test('uses the leader, keys and macros of the user', () => {
  const preferences = parsePreferences(
    'leader: Ctrl-a\nkeys: { zoom: Z, fold: [e, "="] }\nmacros:\n  - { name: rank, text: "export RANK=%n" }\n',
    'p',
  )
  expect(preferences.leader).toBe('Ctrl-a')
  expect(preferences.keys).toEqual({ zoom: ['Z'], fold: ['e', '='] })
  expect(preferences.macros).toEqual([{ name: 'rank', text: 'export RANK=%n' }])
})

test('reports every mistake with line and column', () => {
  const problems = problemsOf('theme: pink\npane:\n  columns: wide\nkeys:\n  zoom: Strg-z\n')
  expect(problems).toContain('preferences.yaml:1:1: theme')
  expect(problems).toContain('preferences.yaml:3:3: pane.columns')
  expect(problems).toContain('preferences.yaml:5:3: keys.zoom')
})

test('explains what is wrong', () => {
  const problems = problemsOf('leader: 5\ntheme: pink\npane: { columns: 1, rows: 900 }\nmouse: maybe\nhistory: 1.5\n')
  expect(problems.split('\n').toSorted()).toEqual([
    'preferences.yaml:1:1: leader: must be text',
    'preferences.yaml:2:1: theme: must be one of auto, dark, light, none',
    'preferences.yaml:3:21: pane.rows: must be 200 or less',
    'preferences.yaml:3:9: pane.columns: must be 10 or more',
    'preferences.yaml:4:1: mouse: must be true or false',
    'preferences.yaml:5:1: history: must be a whole number',
  ])
  expect(problemsOf('[]\n')).toBe('preferences.yaml:1:1: the file: must be a mapping of `key: value` lines')
})

test('refuses a key for two actions', () => {
  expect(problemsOf('keys: { zoom: [z, z], fold: z }\n')).toBe(
    'preferences.yaml:1:23: keys.fold: z is the key of zoom, too',
  )
  expect(parsePreferences('keys: { zoom: [z, z], fold: e }\n', 'p').keys.fold).toEqual(['e'])
})

test('warns of an action that loses its only key to another one', () => {
  const warningsOf = (text: string) => parsePreferences(`theme: dark\nkeys:\n${text}`, 'p').warnings
  expect(warningsOf('  fold: F7\n  zoom: [q, a]\n')).toEqual([
    'line 4: keys.zoom: a was the key of receive-all, which has none now',
    'line 4: keys.zoom: q was the key of quit, which has none now',
  ])
  expect(warningsOf('  zoom: q\n  receive-all: []\n  quit: F10\n')).toBeUndefined()
})

test('refuses an unknown word', () => {
  expect(problemsOf('leadr: Ctrl-a\n')).toContain('leadr')
})

test('refuses a printable character as leader', () => {
  expect(problemsOf('leader: a\n')).toContain('Ctrl or Alt')
})

test.each([
  ['Ctrl-m', 'Enter', 'Ctrl-m'],
  ['Ctrl-i', 'Tab', 'Ctrl-i'],
  ['Ctrl-[', 'Esc', 'Ctrl-['],
  ['C-m', 'Enter', 'Ctrl-m'],
  ['Ctrl-Alt-m', 'Enter', 'Ctrl-Alt-m'],
  ['Ctrl-Enter', 'Enter', 'Ctrl-Enter'],
  ['Alt-Esc', 'Esc', 'Alt-Esc'],
  ['Ctrl-1', '1', 'Ctrl-1'],
  ['C-1', '1', 'Ctrl-1'],
  ['Ctrl-3', 'Esc', 'Ctrl-3'],
  ['Ctrl-5', 'Ctrl-]', 'Ctrl-5'],
  ['Ctrl-Alt-9', '9', 'Ctrl-Alt-9'],
  ['Ctrl-.', '.', 'Ctrl-.'],
])('refuses a leader that terminals send as another key: %s', (typed, sent, label) => {
  expect(problemsOf(`leader: ${typed}\n`)).toBe(
    `preferences.yaml:1:1: leader: terminals send ${sent} for ${label}; write a key with Ctrl or Alt, or a function key: Ctrl-a, Alt-x, F12`,
  )
})

test.each([
  'Alt-m',
  'Alt-Enter',
  'Alt-1',
  'Ctrl-_',
  'Ctrl-^',
  'Ctrl-]',
  'Ctrl-PageUp',
  'Ctrl-Space',
  'Ctrl-\\\\',
])('takes a leader that terminals send as itself: %s', (leader) => {
  expect(parsePreferences(`leader: "${leader}"\n`, 'preferences.yaml').leader).toBe(leader.replace('\\\\', '\\'))
})

test.each([
  ['leader: C-a', '1:1: leader: is not a key; write Ctrl-a'],
  ['leader: ^B', '1:1: leader: is not a key; write Ctrl-b'],
  ['leader: Ctrl-A', '1:1: leader: is not a key; write Ctrl-a'],
  ['leader: M-x', '1:1: leader: is not a key; write Alt-x'],
  ['leader: ctrl+space', '1:1: leader: is not a key; write Ctrl-Space'],
  ['leader: f', '1:1: leader: must be a key with Ctrl or Alt, or a function key: Ctrl-a, Alt-x, F12'],
  ['keys: { zoom: C-z }', '1:9: keys.zoom.0: is not a key; write Ctrl-z'],
  ['keys: { zoom: pageup }', '1:9: keys.zoom.0: is not a key; write PageUp'],
])('says once how a key is written: %s', (text, problem) => {
  expect(problemsOf(`${text}\n`)).toBe(`preferences.yaml:${problem}`)
})

test('reports broken YAML with its place', () => {
  expect(problemsOf('theme: [dark\n')).toMatch(/preferences\.yaml:\d+:\d+/)
})

test('reports a mistake once, and of many only the first', () => {
  expect(problemsOf('[[[').split('\n')).toEqual([...new Set(problemsOf('[[[').split('\n'))])
  const many = Array.from({ length: 150 }, (_, index) => `k${index}: 1\n`).join('')
  expect(problemsOf(many).split('\n')).toHaveLength(101)
  expect(problemsOf(many)).toMatch(/… and 50 more$/)
  expect(problemsOf(`${'x'.repeat(1000)}: 1\n`).length).toBeLessThan(400)
})

test('reports an unknown word with its place and the nearest valid one', () => {
  const problems = problemsOf('theme: dark\nleeder: Ctrl-a\nkeys:\n  fold: z\n  zooom: z\npane: { colums: 3 }\n')
  expect(problems).toContain('preferences.yaml:2:1: unknown key leeder; did you mean leader?')
  expect(problems).toContain('preferences.yaml:5:3: unknown key zooom; did you mean zoom?')
  expect(problems).toContain('preferences.yaml:6:9: unknown key colums; did you mean columns?')
})

test('says what a wrong key or macro must be', () => {
  const problems = problemsOf('keys: { zoom: 3 }\nmacros: [{ name: z, command: ls }]\n')
  expect(problems).toContain('keys.zoom: must be a key or a list of keys')
  expect(problems).toContain('macros.0: must be { name: …, text: … } or { name: …, command: [program, argument …] }')
})

test('lets nothing of the file act on the terminal', () => {
  expect(problemsOf('"\\e]0;x\\a": 1\n')).toContain('unknown key \\x1b]0;x\\x07')
})

test('refuses multiplying aliases', () => {
  const bomb = [
    'a: &a [x, x, x]',
    ...'bcdefgh'.split('').map((name, index) => `${name}: &${name} [${`*${'abcdefg'[index]}, `.repeat(9)}]`),
  ]
  expect(problemsOf(`${bomb.join('\n')}\n`)).toContain(
    'preferences.yaml:1:1: its aliases (*NAME) stand for too much: write out the values',
  )
})
