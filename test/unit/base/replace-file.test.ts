import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { replaceFile } from '../../../src/base/replace-file.ts'

it('replaces a file, and leaves nothing behind where it cannot', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-replace-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'file')
  for (const text of ['one', 'two']) replaceFile(path, text)
  expect(readFileSync(path, 'utf8')).toBe('two')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  mkdirSync(join(directory, 'taken'))
  expect(() => replaceFile(join(directory, 'taken'), 'three')).toThrow()
  expect(readdirSync(directory).sort()).toEqual(['file', 'taken'])
})
