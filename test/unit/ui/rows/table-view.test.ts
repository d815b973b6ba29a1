/** How tables are filtered and sorted. */
import { describe, expect, it } from 'vitest'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import type { KeyEvent } from '../../../../src/ui/keys/decode-input.ts'
import {
  FIRST_TABLE_VIEW,
  filterAfterKey,
  filterRows,
  filterSpans,
  findHost,
  pastedFilter,
  shownRows,
  sortMark,
  type TableColumn,
  type TableView,
  tableAfterKey,
} from '../../../../src/ui/rows/table-view.ts'

type Job = { readonly name: string; readonly host: string; readonly cpu?: number }

const JOBS: readonly Job[] = [
  { name: 'train-1', host: 'm2', cpu: 12 },
  { name: 'Train-2', host: 'm10', cpu: 3 },
  { name: 'eval', host: 'm1' },
]
const COLUMNS: readonly TableColumn<Job>[] = [
  { title: 'NAME', text: ({ name }) => name },
  { title: 'HOST', text: ({ host }) => host },
  { title: 'CPU', text: ({ cpu }) => `${cpu ?? '-'} %`, order: ({ cpu }) => cpu, isDescending: true, isAmount: true },
]
const FRAME = { id: 't', columns: COLUMNS.map(({ title }) => title) }
const hosts = (rows: readonly Job[]) => rows.map(({ host }) => host).join(' ')
const viewOf = (text: string, rest: Partial<TableView> = {}): TableView => ({
  ...FIRST_TABLE_VIEW,
  filter: { text, cursor: text.length },
  ...rest,
})
const press = (view: TableView, text: string, name = text) => {
  const event: KeyEvent = {
    type: 'key',
    key: { name, text, ctrl: false, alt: false, shift: false },
    raw: Buffer.from(''),
  }
  return filterAfterKey(view, text, event)
}

describe('the filter of a table', () => {
  it.each([
    ['', 'm2 m10 m1'],
    ['train', 'm2 m10'],
    ['Train', 'm10'],
    ['train m2', 'm2'],
    ['!train', 'm1'],
    ['! train', 'm2 m10'],
    ['host:m1', 'm10 m1'],
    ['h=m1 !eval', 'm10'],
    ['host: train', 'm2 m10'],
    ['!host:m1', 'm2'],
    // No column has this title.
    ['x:train', ''],
    // A number alone finds an amount only by its title.
    ['12', ''],
    ['cpu:12', 'm2'],
    ['-', 'm2 m10 m1'],
    ['!%', ''],
    ['nowhere', ''],
  ])('“%s” leaves %s', (text, left) => {
    expect(hosts(filterRows(JOBS, COLUMNS, text))).toBe(left)
  })

  it('leaves out no row for what is not shown of it, but finds it', () => {
    const columns = [...COLUMNS, { title: 'COMMAND', text: ({ name }: Job) => `do; done ${name}`, isHidden: true }]
    const left = (text: string) => hosts(filterRows(JOBS, columns, text))
    expect(['done', '!done', '!command:eval'].map(left)).toEqual(['m2 m10 m1', 'm2 m10 m1', 'm2 m10'])
  })

  it('is typed, edited, kept and cleared', () => {
    const typed = [...'m1'].reduce<TableView | undefined>(
      (view, key) => view && press(view, key),
      viewOf('', { isTyping: true }),
    )
    expect(typed).toMatchObject({ filter: { text: 'm1', cursor: 2 }, isTyping: true })
    expect(typed && press(typed, 'Enter', 'enter')).toMatchObject({ filter: { text: 'm1' }, isTyping: false })
    expect(typed && press(typed, 'Esc', 'escape')).toMatchObject({ filter: { text: '' }, isTyping: false })
    expect(tableAfterKey(viewOf('m1'), FRAME, 'Esc')?.filter.text).toBe('')
    // The page goes back.
    expect(tableAfterKey(viewOf(''), FRAME, 'Esc')).toBeUndefined()
    expect(tableAfterKey(viewOf('m1'), FRAME, '/')).toMatchObject({ filter: { text: 'm1', cursor: 2 }, isTyping: true })
  })

  it('takes at most one line of bounded length from a paste', () => {
    const { filter } = pastedFilter(FIRST_TABLE_VIEW, ` a\nb${'x'.repeat(10_000)}`)
    expect(filter.text).toMatch(/^a bx+$/)
    expect(filter.text.length).toBeLessThanOrEqual(200)
    expect(filter.cursor).toBeLessThanOrEqual(filter.text.length)
  })

  it('is shown with its end where it is too long for the frame, in printable characters', () => {
    const shown = (text: string, room: number) =>
      filterSpans({ view: viewOf(text, { isTyping: true }), noun: 'job', all: 3 }, 1, room, themes.none)
        .map((span) => span.text)
        .join('')
    expect(shown('train', 40)).toBe(' /train▏  1 of 3 ')
    expect(shown(`${'x'.repeat(60)}end`, 30)).toMatch(/^ \/…x+end▏ {2}1 of 3 $/)
    expect(shown(`${'x'.repeat(60)}end`, 30)).toHaveLength(30)
    expect(shown('a\u202eb', 40)).not.toContain('\u202e')
  })
})

it('a filter of hosts takes host sets as everywhere else, also half of one', () => {
  const columns: readonly TableColumn<string>[] = [
    { title: 'HOST', text: (host) => host, find: findHost((host: string) => host) },
  ]
  const left = (text: string) => filterRows(['m1', 'm2', 'm10', 'gpu1.lan'], columns, text).join(' ')
  expect(
    ['m[1-2]', 'm1,gpu1.lan', '!m[1-2]', 'gpu*', 'host:m*', 'm[1-', 'm1', '*.lan', 'm?', 'm?,*.lan'].map(left),
  ).toEqual([
    'm1 m2',
    'm1 gpu1.lan',
    'm10 gpu1.lan',
    'gpu1.lan',
    'm1 m2 m10',
    '',
    'm1 m10',
    'gpu1.lan',
    'm1 m2',
    'm1 m2 gpu1.lan',
  ])
})

it('a filter of hosts finds them in folded cells, too', () => {
  const columns: readonly TableColumn<string>[] = [
    { title: 'ON', text: (on) => on, find: findHost((on: string) => on) },
    { title: 'TEXT', text: () => 'm2 in a text' },
  ]
  const left = (text: string) => filterRows(['m[1-3,5]', 'm5', 'gpu[1-2],m4', '-'], columns, text).join(' ')
  expect(filterRows(['Slurm n[1-2]', 'Slurm n3', 'n4'], columns, 'on:n2')).toEqual(['Slurm n[1-2]'])
  expect(['on:m2', 'on:m[2-3]', 'on:m*', 'on:gpu2', 'on:m[1-', '!on:m5'].map(left)).toEqual([
    'm[1-3,5]',
    'm[1-3,5]',
    'm[1-3,5] m5 gpu[1-2],m4',
    'gpu[1-2],m4',
    'm[1-3,5]',
    'gpu[1-2],m4 -',
  ])
})

describe('the order of a table', () => {
  const sorted = (sort: string | undefined, isReversed = false) =>
    hosts(shownRows(JOBS, COLUMNS, viewOf('', { sort, isReversed })))

  it('counts in names, puts the largest amount first and rows without a value last', () => {
    expect(sorted('HOST')).toBe('m1 m2 m10')
    expect(sorted('HOST', true)).toBe('m10 m2 m1')
    expect(sorted('CPU')).toBe('m2 m10 m1')
    expect(sorted('CPU', true)).toBe('m10 m2 m1')
    expect(sorted(undefined, true)).toBe('m1 m10 m2')
  })

  it('leaves a table that cannot be sorted in its own order', () => {
    for (const key of ['>', '<']) expect(tableAfterKey(viewOf(''), { id: 't', columns: ['HOST'] }, key)).toBeUndefined()
  })

  it('cycles through the columns and the own order, with a mark at the column', () => {
    const orders = (key: string, frame: Parameters<typeof tableAfterKey>[1]) => {
      let view: TableView = FIRST_TABLE_VIEW
      return [1, 2, 3, 4].map(() => {
        view = tableAfterKey(view, frame, key) ?? view
        return view.sort
      })
    }
    expect(orders('>', FRAME)).toEqual(['NAME', 'HOST', 'CPU', undefined])
    expect(orders('<', FRAME)).toEqual(['CPU', 'HOST', 'NAME', undefined])
    expect(orders('>', { ...FRAME, sorted: 'HOST' })).toEqual(['CPU', 'NAME', 'HOST', 'CPU'])
    const reversed = tableAfterKey(viewOf('', { sort: 'CPU' }), FRAME, 'I') ?? FIRST_TABLE_VIEW
    expect(COLUMNS.map((column) => sortMark(reversed, column))).toEqual(['', '', '▴'])
    expect(sortMark(FIRST_TABLE_VIEW, { title: 'HOST' }, 'HOST')).toBe('▴')
  })
})
