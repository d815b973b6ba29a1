import { expect, it } from 'vitest'
import { MusterError, sentenceOf } from '../../../src/base/errors.ts'

it('puts a message and what to do next into two sentences', () => {
  const tell = (message: string, hint?: string) => sentenceOf(new MusterError('usage', message, hint ? { hint } : {}))
  expect(tell('there is no group @x', 'Groups are in hosts.yaml.')).toBe(
    'there is no group @x. Groups are in hosts.yaml.',
  )
  expect(tell('did you mean m8?', 'Write m8.')).toBe('did you mean m8? Write m8.')
  expect(tell('there is no host m9')).toBe('there is no host m9')
})
