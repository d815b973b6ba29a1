import { expect, test } from 'vitest'
import { differentRows, groupEqualScreens, type HostText } from '../../../../src/ui/console/comparison.ts'

const host = (name: string, ...rows: string[]): HostText => ({ host: name, names: [name], rows })

test('prompts that differ only in the host name are equal', () => {
  expect(groupEqualScreens([host('m1', 'root@m1:~# ls'), host('m2', 'root@m2:~# ls')])).toEqual([['m1', 'm2']])
})

test('the largest group comes first', () => {
  const texts = [host('m1', 'odd'), host('m2', 'even'), host('m3', 'even')]
  expect(groupEqualScreens(texts)).toEqual([['m2', 'm3'], ['m1']])
})

test('a name inside another word is not the host', () => {
  expect(groupEqualScreens([host('m1', 'm10'), host('m2', 'm20')])).toHaveLength(2)
})

test('blank rows at the end make no difference', () => {
  expect(groupEqualScreens([host('m1', 'a', '', ''), host('m2', 'a')])).toHaveLength(1)
})

test('host names with the characters of a regular expression are taken literally', () => {
  expect(groupEqualScreens([host('a.b', 'at a.b now'), host('axb', 'at a.b now')])).toHaveLength(2)
})

test('rows that differ from the majority are told', () => {
  expect(differentRows(host('m2', 'm2', 'kernel 6.2', 'same'), host('m1', 'm1', 'kernel 6.1', 'same'))).toEqual([1])
})
