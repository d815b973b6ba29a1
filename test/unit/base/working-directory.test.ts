import { afterEach, expect, it, vi } from 'vitest'
import { workingDirectory } from '../../../src/base/working-directory.ts'

afterEach(() => vi.restoreAllMocks())

it('says that the working directory was removed, and what to do', () => {
  expect(workingDirectory()).toBe(process.cwd())
  vi.spyOn(process, 'cwd').mockImplementation(() => {
    throw new Error('ENOENT: process.cwd failed')
  })
  expect(workingDirectory).toThrow('the working directory was removed')
})
