/** Echoes after the prompts of lines that continue a command, recorded on terminals of real programs. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TypedLines } from '../../../../src/ui/report/typed-line.ts'
import { randomRuns } from '../../../support/random-runs.ts'

type Steps = readonly (readonly ['<' | '>', string])[]
const RECORDINGS = Object.entries(
  JSON.parse(readFileSync('test/fixtures/continued-echoes.json', 'utf8')) as Record<string, Steps>,
)
const EDITOR_STARTS = '\x1b[?2004h'

function replay([first, ...steps]: Steps, pieceBytes: number): TypedLines {
  const start = first?.[1] ?? ''
  const before = start.replace(/\x1b(?:\[[?\d;]*[A-Za-z]|[=>])|\n/g, '')
  const typed = new TypedLines(before, 80, start.includes(EDITOR_STARTS))
  for (const [direction, text] of steps) {
    const bytes = Buffer.from(text)
    if (direction === '>') typed.type(bytes, 0)
    else for (let at = 0; at < bytes.length; at += pieceBytes) typed.print(bytes.subarray(at, at + pieceBytes))
  }
  return typed
}

/** What was typed, without the marks of a paste and the last Enter. */
const sentLines = (steps: Steps): readonly string[] =>
  steps
    .flatMap(([direction, text]) => (direction === '>' ? [text] : []))
    .join('')
    .replace(/\x1b\[20[01]~/g, '')
    .trimEnd()
    .split('\r')

it.each(RECORDINGS)('is found, and the lines are as they were typed: %s', (_, steps) => {
  for (const pieceBytes of [1, 7, 100_000]) {
    const { lines } = replay(steps as Steps, pieceBytes)
    expect(lines.map(({ state }) => state)).toEqual(lines.map(() => 'echoed'))
    expect(lines.flatMap(({ blanks, shown }) => [...Array(blanks).fill(''), shown])).toEqual(sentLines(steps as Steps))
  }
})

const statesOf = (before: string, keys: string, output: string): readonly string[] => {
  const typed = new TypedLines(before, 80)
  typed.type(Buffer.from(keys), 0)
  typed.print(Buffer.from(output))
  return typed.lines.map(({ text, state }) => `${state}: ${text}`)
}

it.each(['... ', '    ...: ', '   ...: ', 'In [3]: ', '  -> ', 'quote> ', 'for> '])('is found after %j', (prompt) => {
  const output = `if a:\r\n${prompt}  call\r\n${prompt}  done\r\nanswer\r\n>>> `
  const states = statesOf('>>> ', 'if a:\r  call\r  done\r', output)
  expect(states).toEqual(['echoed: if a:', 'echoed: call', 'echoed: done'])
})

it('is found after the prompts of R and Node', () => {
  for (const prompt of ['+ ', '| '])
    expect(statesOf('> ', 'f(\r1)\r', `f(\r\n${prompt}1)\r\n[1] 1\r\n> `)).toEqual(['echoed: f(', 'echoed: 1)'])
  expect(statesOf('$ ', 'f\rhunter2\r', 'f\r\n+ hunter2\r\n$ ')[1]).toBe('hidden: hunter2')
})

it('is found where Tab was pasted before the line', () => {
  const states = statesOf('>>> ', 'if a:\r\tcall\r', 'if a:\r\n...     call\r\n')
  expect(states).toEqual(['echoed: if a:', 'echoed: call'])
})

describe('a password among lines that are typed at once is hidden', () => {
  const KEYS = 'read -s pw\rhunter2\recho "... $pw"\r'
  it.each([
    ['printed after the echo of a later line', `read -s pw\r\n# echo "... $pw"\r\n... hunter2\r\n# `],
    ['printed as a row', `read -s pw\r\n# echo "... $pw"\r\nhunter2\r\n# `],
    ['printed at the start of a row', `read -s pw\r\n# echo "... $pw"\r\nhunter2 is it\r\n# `],
    ['printed after a question', `read -s pw\r\nPassword: \r\n... hunter2\r\n# echo "... $pw"\r\n# `],
    ['printed within a row', `read -s pw\r\nread ... hunter2\r\n# echo "... $pw"\r\n# `],
    ['printed with more', `read -s pw\r\n... hunter2!\r\n# echo "... $pw"\r\n# `],
    ['shown as stars', `read -s pw\r\n... *******\r\n# echo "... $pw"\r\n# `],
    ['concealed', `read -s pw\r\n... \x1b[8mhunter2\x1b[m\r\n# echo "... $pw"\r\n# `],
  ])('%s', (_, output) => {
    expect(statesOf('# ', KEYS, output)[1]).toBe('hidden: hunter2')
  })

  it('whatever is printed after later lines were echoed', () => {
    const prompt = fc.constantFrom('', '  ', '... ', '...: ', '-> ', '# ')
    const rows = fc.array(fc.tuple(fc.constantFrom('', '  ', '... ', '    ...: '), fc.constantFrom('hunter2', 'x', '')))
    fc.assert(
      fc.property(prompt, rows, (each, output) => {
        const printed = output.map(([before, text]) => `${before}${text}\r\n`).join('')
        const states = statesOf('# ', KEYS, `read -s pw\r\n${each}echo "... $pw"\r\n${printed}# `)
        expect(states[1]).toBe('hidden: hunter2')
      }),
      { numRuns: randomRuns(200) },
    )
  })

  it('also where an editor draws a paste without it', () => {
    const typed = new TypedLines('>>> ', 80, true)
    typed.type(Buffer.from('\x1b[200~one two\rhunter2\rthree four\x1b[201~'), 0)
    typed.print(Buffer.from('one two\r\n... *******\r\n... three four'))
    typed.type(Buffer.from('\r'), 0)
    typed.print(Buffer.from('\r\n\x1b[?2004l\rhunter2\r\n'))
    expect(typed.lines[1]?.state).toBe('hidden')
  })
})
