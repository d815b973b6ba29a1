import { expect, test } from 'vitest'
import { parseMemorySize } from '../../../src/inventory/hosts-yaml-schema.ts'

test.each([
  ['4.1GB', 4_100_000_000],
  ['8.2 TB', 8_200_000_000_000],
  ['0.5GiB', 2 ** 29],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ['0.3B', undefined],
  ['1.1KiB', undefined],
  ['9007199254740993', undefined],
  ['4 lumps', undefined],
])('reads %s to the byte', (text, bytes) => {
  expect(parseMemorySize(text)).toBe(bytes)
})
