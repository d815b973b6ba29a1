/** What a host says about its keys. */
import { expect, it } from 'vitest'
import { trustFacts } from '../../../../src/ops/trust/facts.ts'

it('has no more host keys, and no longer ones, than an sshd has', () => {
  const key = (number: number) => `ssh-ed25519 AAAA${String(number).padStart(4, '0')}`
  const told = Array.from({ length: 200 }, (_, number) => `${key(number)} root@m1`)
  const text = [`ssh-rsa ${'A'.repeat(5000)}`, ...told].join('\n')
  const parsed = trustFacts.hostKeys.parse(text, Buffer.from(text))
  expect(parsed).toEqual(Array.from({ length: 16 }, (_, number) => key(number)))
})
