import { describe, expect, it } from 'vitest'
import { wordsOf } from '../../../../src/cli/connect/tty-dialog.ts'

const request = {
  kind: 'keyboard-interactive',
  hosts: ['m1'],
  title: 'Login of root on m1',
  instruction: 'Passphrase of /root/.ssh/id',
  prompts: [{ text: 'Passphrase', isEchoed: false }],
  isRetry: false,
} as const

describe('a question on the terminal', () => {
  it('distinguishes what a server writes from what Muster asks', () => {
    expect(wordsOf(request)).toEqual({
      heading: 'Login of root on m1\nThe server says: Passphrase of /root/.ssh/id\n',
      prompts: ['The server asks: Passphrase '],
    })
  })

  it('of Muster itself is shown unchanged', () => {
    const own = { ...request, kind: 'passphrase', title: 'Passphrase of /k', instruction: '', isRetry: true } as const
    expect(wordsOf(own)).toEqual({
      heading: 'That was not accepted. Passphrase of /k\n',
      prompts: ['Passphrase '],
    })
  })
})
