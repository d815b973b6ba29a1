import { expect, it } from 'vitest'
import { fileReason, MusterError, sentenceOf } from '../../../src/base/errors.ts'

it('puts a message and what to do next into two sentences', () => {
  const tell = (message: string, hint?: string) => sentenceOf(new MusterError('usage', message, hint ? { hint } : {}))
  expect(tell('there is no group @x', 'Groups are in hosts.yaml.')).toBe(
    'there is no group @x. Groups are in hosts.yaml.',
  )
  expect(tell('did you mean m8?', 'Write m8.')).toBe('did you mean m8? Write m8.')
  expect(tell('there is no host m9')).toBe('there is no host m9')
})

it('says in plain words why a file cannot be used', () => {
  const reasons = ['ENOSPC', 'EDQUOT', 'ELOOP', 'EXDEV'].map((code) =>
    fileReason(Object.assign(new Error(`${code}: as the system says it, write`), { code })),
  )
  expect(reasons).toEqual([
    'no space left on the device',
    'the disk quota is used up',
    'a symbolic link on its path is not followed',
    'EXDEV: as the system says it, write',
  ])
})
