/** Tables: aligned for people on a terminal, separated by tabs for scripts. */
import { describe, expect, test } from 'vitest'
import { formatTable, TERMINAL } from '../../../../src/cli/output/table.ts'

const HEADER = ['NAME', 'VIA', 'GROUPS']
const ROWS = [
  ['m8', '', 'all\tthe\nothers'],
  ['gateway', '', ''],
]

test('on a terminal columns are aligned, and empty ones left out', () => {
  expect(formatTable(HEADER, ROWS, TERMINAL)).toBe('NAME     GROUPS\nm8       all\\x09the\\x0aothers\ngateway\n')
})

test('elsewhere a tab stands between two columns, all of them are there, and no text adds one', () => {
  expect(formatTable(HEADER, ROWS, {})).toBe('NAME\tVIA\tGROUPS\nm8\t\tall\\x09the\\x0aothers\ngateway\t\t\n')
})

describe('on a terminal of so many columns', () => {
  const header = ['JOB', 'STATE', 'RAN', 'ASKS FOR', 'NAME']
  const rows = [
    ['7', 'running', '19.8 s', '2 × (1 CPU) SPREAD, at most 1 per host', 'train the large model'],
    ['12345678901', 'done', '1.0 s', '1 CPU', 'short'],
  ]
  const lines = (columns: number) => formatTable(header, rows, { isTTY: true, columns }).trimEnd().split('\n')

  test('the widest texts are shortened until it fits; the first column and numbers are not', () => {
    const whole = formatTable(header, rows, TERMINAL)
    expect(lines(98).join('\n')).toBe(whole.trimEnd())
    expect(lines(80)).toEqual([
      'JOB          STATE    RAN     ASKS FOR                     NAME',
      '7            running  19.8 s  2 × (1 CPU) SPREAD, at mos…  train the large model',
      '12345678901  done     1.0 s   1 CPU                        short',
    ])
    expect(lines(56)[1]).toBe('7            running  19.8 s  2 × (1 CPU)…  train the l…')
  })

  test.each([0, 1, 40])('it stays whole where they cannot be shortened enough: %i', (columns) => {
    expect(lines(columns)).toEqual(lines(1000))
  })

  test('wide characters count as what the terminal shows', () => {
    const table = formatTable(['A', 'WHY'], [['1', '漢字漢字 because of it']], { isTTY: true, columns: 14 })
    expect(table).toBe('A  WHY\n1  漢字漢字 b…\n')
  })

  test('elsewhere it stays whole', () => {
    expect(formatTable(header, rows, { columns: 40 })).toContain('at most 1 per host\ttrain the large model\n')
  })
})

test('no rows are no table', () => {
  expect([formatTable(HEADER, [], TERMINAL), formatTable(HEADER, [], {})]).toEqual(['', ''])
})
