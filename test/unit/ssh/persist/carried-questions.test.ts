import { expect, it } from 'vitest'
import { Secret } from '../../../../src/base/secret.ts'
import { answerQuestion, carriedQuestions } from '../../../../src/ssh/persist/messages.ts'
import type { CredentialAsker } from '../../../../src/ssh/questions.ts'
import { endpointOf } from '../../../support/endpoint.ts'
import { watchedContext } from '../../../support/ssh-context.ts'

it.each([
  undefined,
  'nobody',
  new Secret('pw'),
] as const)('a question that the keeper carries is answered alike: %s', async (answer) => {
  const list = answer instanceof Secret ? [answer, answer] : answer
  const credentials: CredentialAsker = {
    passphrase: async () => answer,
    password: async () => answer,
    keyboardInteractive: async () => list,
  }
  const { signal } = new AbortController()
  const carried = carriedQuestions(async (what) =>
    JSON.parse(JSON.stringify((await answerQuestion(what, watchedContext({ credentials }), signal)) ?? null)),
  ).credentials
  const m1 = endpointOf('m1')
  expect(await carried.passphrase('/k', m1, false, signal)).toEqual(answer)
  expect(await carried.password(m1, false, signal)).toEqual(answer)
  expect(await carried.keyboardInteractive(m1, '', [], false, signal)).toEqual(list)
})
