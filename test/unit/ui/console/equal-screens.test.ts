import { expect, test } from 'vitest'
import { differentRows, groupEqualScreens, type HostText } from '../../../../src/ui/console/comparison.ts'

const host = (name: string, ...rows: string[]): HostText => ({ host: name, names: [name], rows })

test('treats prompts that differ only in the host name as equal', () => {
  expect(groupEqualScreens([host('m1', 'root@m1:~# ls'), host('m2', 'root@m2:~# ls')])).toEqual([['m1', 'm2']])
})

test('puts the largest group first', () => {
  const texts = [host('m1', 'odd'), host('m2', 'even'), host('m3', 'even')]
  expect(groupEqualScreens(texts)).toEqual([['m2', 'm3'], ['m1']])
})

test('does not treat a name inside another word as the host', () => {
  expect(groupEqualScreens([host('m1', 'm10'), host('m2', 'm20')])).toHaveLength(2)
})

test('ignores blank rows at the end', () => {
  expect(groupEqualScreens([host('m1', 'a', '', ''), host('m2', 'a')])).toHaveLength(1)
})

test('treats characters of a regular expression in host names literally', () => {
  expect(groupEqualScreens([host('a.b', 'at a.b now'), host('axb', 'at a.b now')])).toHaveLength(2)
})

test('reports rows that differ from the majority', () => {
  expect(differentRows(host('m2', 'm2', 'kernel 6.2', 'same'), host('m1', 'm1', 'kernel 6.1', 'same'))).toEqual([1])
})
