import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { MAX_TEXT_BYTES, readBoundedSync } from '../../../src/base/read-bounded.ts'
import { importInventory } from '../../../src/inventory/import/import-inventory.ts'
import { readHostsFile } from '../../../src/inventory/load-inventory.ts'

const directory = mkdtempSync(join(tmpdir(), 'muster-bounded-'))
const file = join(directory, 'file')
afterAll(() => rmSync(directory, { recursive: true }))

it('reads a file of the largest size whole, and refuses one byte more', () => {
  writeFileSync(file, Buffer.alloc(MAX_TEXT_BYTES, 'x'))
  expect(readBoundedSync(file).equals(Buffer.alloc(MAX_TEXT_BYTES, 'x'))).toBe(true)
  writeFileSync(file, Buffer.alloc(MAX_TEXT_BYTES + 1, 'x'))
  expect(() => readBoundedSync(file)).toThrow('it is larger than 4 MiB')
})

it('refuses a device without an end, as a hosts file and as the file of another tool', async () => {
  await expect(readHostsFile('/dev/zero')).rejects.toThrow('it is larger than 4 MiB')
  const source = { kind: 'clusterssh' as const, file: '/dev/zero', cwd: '/', home: '/', env: {} }
  await expect(importInventory(source)).rejects.toThrow('/dev/zero cannot be read: it is larger than 4 MiB')
})

it('refuses a pipe, which could keep it waiting for ever', () => {
  const pipe = join(directory, 'pipe')
  execFileSync('mkfifo', [pipe])
  expect(() => readBoundedSync(pipe)).toThrow('it is a pipe')
})
