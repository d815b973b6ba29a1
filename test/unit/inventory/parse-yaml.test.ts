import { describe, expect, it } from 'vitest'
import { LineCounter } from 'yaml'
import { parseYaml } from '../../../src/inventory/yaml-reader.ts'
import { readInventory } from '../../support/hosts-yaml.ts'

describe('YAML', () => {
  it.each([
    ['maps', `${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`],
    ['lists', `${'['.repeat(20_000)}${']'.repeat(20_000)}`],
    ['block lists', `${'- '.repeat(20_000)}1`],
    ['open brackets', '{'.repeat(20_000)],
  ])('with 20,000 %s is one error with its place', (_, nested) => {
    const text = `hosts:\n  m1: ${nested.startsWith('-') ? `\n    ${nested}` : nested}\n`
    expect(() => readInventory(text, 'hosts.yaml')).toThrow(/hosts\.yaml:[23]:\d+: nested more than 100 levels deep/)
  })

  it('that is nested too deep is refused with the place', () => {
    // Two levels of block maps, so that the 99th bracket is one too many.
    expect(() => readInventory(`hosts:\n  m1: ${'[ '.repeat(20_000)}`, 'f')).toThrow(/^f:2:(?:19[0-9]|20[0-9]): /)
  })

  it('nested as people write it is read as the library reads it', () => {
    const lines = new LineCounter()
    const document = parseYaml(`a:\n${'  '.repeat(1)}b: { c: [1, { d: [[2]] }] }\n`, { lineCounter: lines })
    expect(document.errors).toEqual([])
    expect(document.toJS()).toEqual({ a: { b: { c: [1, { d: [[2]] }] } } })
    expect(lines.lineStarts).toHaveLength(3)
  })
})
