/** Tables: aligned for people on a terminal, separated by tabs for scripts. */
import { expect, test } from 'vitest'
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

test('no rows are no table', () => {
  expect([formatTable(HEADER, [], TERMINAL), formatTable(HEADER, [], {})]).toEqual(['', ''])
})
