import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InventoryError } from '../../../src/inventory/hosts-yaml.ts'
import { readInventory } from '../../support/hosts-yaml.ts'
import { randomRuns } from '../../support/random-runs.ts'

const lab = readFileSync(new URL('../../../docs/examples/lab.yaml', import.meta.url), 'utf8')

/** Reads the text; a refusal must name places inside the text, in lines that a terminal can show. */
function read(text: string): void {
  try {
    readInventory(text, 'hosts.yaml')
  } catch (error) {
    if (!(error instanceof InventoryError)) throw error
    expect(error.problems.length).toBeGreaterThan(0)
    for (const { line, column, message } of error.problems) {
      expect(line).toBeLessThanOrEqual(text.split(/\n/).length)
      expect(column).toBeGreaterThanOrEqual(1)
      expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
    }
  }
}

test('any text gives an inventory or a list of problems with their places', () => {
  const piece = fc.constantFrom(
    ...[
      'hosts',
      'groups',
      'defaults',
      'm1',
      '"m[1-3]"',
      ':',
      ': ',
      '\n',
      '\n  ',
      '{',
      '}',
      '[',
      ']',
      ',',
      '&a ',
      '*a',
      '<<',
      '- ',
      '#',
      '"',
      '%',
      '@',
      '!',
      '|',
      '>',
      '? ',
      '~',
      '\u001b',
      '\u0000',
      '\ud800',
      '---\n',
      '__proto__',
      '1e3',
      '0x1',
    ],
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => read(pieces.join(''))),
    { numRuns: randomRuns(600) },
  )
})

test('so does the example with pieces cut out, doubled or replaced', () => {
  const position = fc.nat(lab.length)
  fc.assert(
    fc.property(position, fc.nat(40), position, fc.nat(40), (to, cut, from, count) => {
      read(lab.slice(0, to) + lab.slice(from, from + count) + lab.slice(to + cut))
    }),
    { numRuns: randomRuns(250) },
  )
})
