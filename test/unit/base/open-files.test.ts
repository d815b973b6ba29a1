import { expect, it } from 'vitest'
import { raiseFilesCommand } from '../../../src/base/open-files.ts'

it('names a command with which this account can raise the limit of open files', () => {
  expect(raiseFilesCommand(4096, 0, 'linux')).toBe('ulimit -n 4096')
  expect(raiseFilesCommand(4096, 1000, 'linux')).toBe('sudo prlimit --pid $$ --nofile=4096')
  expect(raiseFilesCommand(4096, 501, 'darwin')).toBe('ulimit -n 4096')
})
