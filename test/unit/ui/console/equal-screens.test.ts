import { expect, test } from 'vitest'
import {
  compareScreens,
  differentRows,
  groupEqualScreens,
  type HostText,
  nameInPrompt,
} from '../../../../src/ui/console/comparison.ts'

const host = (name: string, ...rows: string[]): HostText => ({ host: name, names: [name], rows })
const groups = (texts: readonly HostText[]) => groupEqualScreens(compareScreens(texts))

test('treats prompts that differ only in the host name as equal', () => {
  expect(groups([host('m1', 'root@m1:~# ls'), host('m2', 'root@m2:~# ls')])).toEqual([['m1', 'm2']])
})

test('puts the largest group first', () => {
  const texts = [host('m1', 'odd'), host('m2', 'even'), host('m3', 'even')]
  expect(groups(texts)).toEqual([['m2', 'm3'], ['m1']])
})

test('does not treat a name inside another word as the host', () => {
  expect(groups([host('m1', 'm10'), host('m2', 'm20')])).toHaveLength(2)
})

test('ignores blank rows at the end', () => {
  expect(groups([host('m1', 'a', '', ''), host('m2', 'a')])).toHaveLength(1)
})

test('treats characters of a regular expression in host names literally', () => {
  expect(groups([host('a.b', 'at acb now'), host('m1', 'at m1 now')])).toHaveLength(2)
})

test('treats equal rows as equal that name one of the hosts', () => {
  const texts = ['m1', 'm2', 'm3'].map((name) => host(name, 'master: m2', `root@${name}:~#`))
  expect(groups(texts)).toEqual([['m1', 'm2', 'm3']])
  expect(groups([...texts, host('m4', 'master: m4', 'root@m4:~#')])).toEqual([['m1', 'm2', 'm3'], ['m4']])
})

test('treats equal lines as equal that name one of the hosts after the prompt', () => {
  const texts = ['m1', 'm2', 'm3'].map((name) => host(name, `root@${name}:~# ping m1`, `root@${name}:~#`))
  expect(groups(texts)).toEqual([['m1', 'm2', 'm3']])
  const own = ['m1', 'm2', 'm3'].map((name) => host(name, `root@${name}:~# ping ${name}`))
  expect(groups(own)).toEqual([['m1', 'm2', 'm3']])
})

test('tells a host that shows the prompt of another one from the others', () => {
  const texts = [host('m1', 'root@m2:~#'), ...['m2', 'm3', 'm4'].map((name) => host(name, `root@${name}:~#`))]
  expect(groups(texts)).toEqual([['m2', 'm3', 'm4'], ['m1']])
  const compared = compareScreens(texts)
  expect(differentRows(compared.get('m1') ?? [], compared.get('m2') ?? [])).toEqual([0])
})

test('reports rows that differ', () => {
  const texts = [host('m1', 'm1', 'kernel 6.1', 'same'), host('m2', 'm2', 'kernel 6.2', 'same')]
  const compared = compareScreens(texts)
  expect(differentRows(compared.get('m2') ?? [], compared.get('m1') ?? [])).toEqual([1])
})

test('marks an additional line alone, not what it moves, and where a line is missing', () => {
  const rows = ['$ cat app.conf', 'one', 'two', '$ uptime', 'up', '$']
  const more = rows.toSpliced(3, 0, 'three')
  expect(differentRows(more, rows)).toEqual([3])
  expect(differentRows(rows, more)).toEqual([3])
  expect(differentRows(rows.slice(0, -1), rows)).toEqual([4])
  expect(differentRows([], rows)).toEqual([0])
})

test('finds the name that a host has in its prompt', () => {
  const names = {
    ...{ 'root@node7:~#': 'node7', '[ann@node7.lab src]$': 'node7.lab', '(base) ann@node7 ~ %': 'node7' },
    ...{ '[node7 ~]$': 'node7', 'node7%': 'node7', 'node7:/srv>': 'node7', 'рабочий:~$': 'рабочий' },
    ...{ 'sh-5.2$': '', 'bash-5.2#': '', '➜': '', '/srv $': '', '': '' },
  }
  for (const [prompt, name] of Object.entries(names)) expect([prompt, nameInPrompt(prompt)]).toEqual([prompt, name])
})
