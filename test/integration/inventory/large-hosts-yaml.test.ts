/** hosts.yaml files that are so large that reading them takes seconds. */
import { expect, test } from 'vitest'
import { readInventory } from '../../support/hosts-yaml.ts'

test('refuses multiplying aliases quickly', () => {
  const many = (name: string): string => Array.from({ length: 3000 }, () => `*${name}`).join(', ')
  const text = `x: &a [${'m1, '.repeat(3000)}]\ny: &b { k: *a }\nhosts: { m1: }\ngroups: { ${Array.from({ length: 3000 }, (_, i) => `g${i}: *a`).join(', ')} }\nz: [${many('b')}]`
  expect(() => readInventory(text)).toThrow('aliases make this file too large to read')
})

test('reads ten thousand hosts from one file', () => {
  const text = `hosts:\n${Array.from({ length: 10_000 }, (_, i) => `  m${i}: { address: 10.0.0.1, port: 22 }`).join('\n')}\ngroups: { odd: "m[1-9999/2]" }\n`
  expect(readInventory(text).hosts).toHaveLength(10_000)
})
