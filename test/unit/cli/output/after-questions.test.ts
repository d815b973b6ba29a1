import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { AfterQuestions } from '../../../../src/cli/output/after-questions.ts'
import type { CredentialRequest } from '../../../../src/ssh/questions.ts'

const request: CredentialRequest = {
  kind: 'password',
  hosts: ['m1'],
  title: 'Password of root on m1',
  instruction: '',
  prompts: [],
  isRetry: false,
}

it('writes nothing onto the line of a question on the terminal, and all of it after the last answer', async () => {
  const { signal } = new AbortController()
  const terminal = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true })
  const pipe = new PassThrough({ encoding: 'utf8' })
  const [password, keys] = [Promise.withResolvers<undefined>(), Promise.withResolvers<ReadonlySet<string>>()]
  const output = new AfterQuestions()
  const dialog = output.watch({ ask: () => password.promise, review: () => keys.promise })
  output.write(terminal, 'before\n')
  const asked = [dialog.ask(request, signal), dialog.review([], signal)]
  for (const stream of [terminal, pipe]) output.write(stream, 'h3: answers\n')
  keys.resolve(new Set())
  await asked[1]
  output.write(terminal, 'job 1: running\n')
  expect([terminal.read(), pipe.read()]).toEqual(['before\n', 'h3: answers\n'])
  password.reject(new Error('no terminal'))
  await expect(asked[0]).rejects.toThrow('no terminal')
  output.write(terminal, 'job 1: done\n')
  expect(terminal.read()).toBe('h3: answers\njob 1: running\njob 1: done\n')
})
