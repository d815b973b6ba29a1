import { describe, expect, it } from 'vitest'
import { wordsOf } from '../../../src/ssh/question-words.ts'

const request = {
  kind: 'keyboard-interactive',
  hosts: ['m1'],
  title: 'Login of root on m1',
  instruction: 'Passphrase of /root/.ssh/id',
  prompts: [{ text: 'Passphrase', isEchoed: false }],
  isRetry: false,
} as const

describe('a question', () => {
  it('distinguishes what a server writes from what Muster asks', () => {
    expect(wordsOf(request)).toEqual({
      instruction: 'The server says: Passphrase of /root/.ssh/id',
      prompts: ['The server asks: Passphrase'],
    })
  })

  it('of Muster itself is shown unchanged', () => {
    expect(wordsOf({ ...request, kind: 'passphrase', instruction: '' })).toEqual({
      instruction: '',
      prompts: ['Passphrase'],
    })
  })

  it('without words is Muster’s own', () => {
    expect(wordsOf({ ...request, prompts: [{ text: ' ', isEchoed: true }] }).prompts).toEqual(['Answer:'])
  })
})
