import { expect, test } from 'vitest'
import { doubleTypes, unusedMembers } from '../../../scripts/check-names.ts'

const one = `export type Share = { readonly of: number }

export class Scales {
  weigh(share: Share): number {
    return this.#read(share.of)
  }

  /** tare() is only named here. */
  tare(): void {}

  #read(value: number): number {
    return value
  }

  toJSON(): string {
    return ''
  }
}
`

test('finds a type that two files export', () => {
  const sources = new Map([
    ['src/a.ts', one],
    ['src/b.ts', 'export interface Share {}\nexport const Scales = 1\n'],
  ])
  expect(doubleTypes(sources)).toEqual(['Share is exported as a type by src/a.ts and src/b.ts'])
})

test('finds a method that nothing calls or passes on, and no other', () => {
  const caller = 'import { Scales } from "./a.ts"\n\nconst scales = new Scales()\nscales.weigh({ of: 1 })\n'
  expect(
    unusedMembers(
      new Map([
        ['src/a.ts', one],
        ['src/b.ts', caller],
      ]),
    ),
  ).toEqual(['src/a.ts: nothing but tests calls tare'])
  const taken = 'const { tare, weigh } = scales\n'
  expect(
    unusedMembers(
      new Map([
        ['src/a.ts', one],
        ['src/b.ts', taken],
      ]),
    ),
  ).toEqual([])
})
