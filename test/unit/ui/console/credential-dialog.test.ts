/** Questions of logins: what a server says is marked as such, and stays below what Muster says. */
import { describe, expect, it } from 'vitest'
import type { CredentialRequest } from '../../../../src/ssh/questions.ts'
import { layoutDialog } from '../../../../src/ui/components/layout-dialog.ts'
import { credentialDialog } from '../../../../src/ui/dialogs/credential-dialog.ts'

const asked = (changes: Partial<CredentialRequest>): CredentialRequest => ({
  kind: 'keyboard-interactive',
  hosts: ['h2'],
  title: 'Login of root on h2',
  instruction: '',
  prompts: [{ text: 'Password:', isEchoed: false }],
  isRetry: false,
  ...changes,
})

function shown(request: CredentialRequest, columns: number, rows: number) {
  const view = credentialDialog(request, () => {})({ onClose() {}, onChange() {} }).view({ columns, rows })
  return { view, label: view.input?.label, body: layoutDialog(view, columns, rows).body.map(({ text }) => text) }
}

describe('a question of a server', () => {
  it('is marked as its words, so that it cannot pass for one of Muster', () => {
    const { label, body } = shown(
      asked({ prompts: [{ text: 'Password for h2 (and all hosts):', isEchoed: false }], instruction: 'For 400 hosts' }),
      80,
      24,
    )
    expect(label).toBe('Answer:')
    expect(body).toEqual([
      'For h2',
      'The server asks: Password for h2 (and all hosts):',
      'The server says: For 400 hosts',
      'Sent only to the server that asks, never to a shell, and not stored.',
    ])
    expect(shown(asked({}), 80, 24).label).toBe('The server asks: Password:')
  })

  it('cannot begin a line of its own by being long', () => {
    const words = `${'x'.repeat(48)} For 400 hosts: m[1-400] ${'y'.repeat(50)} Sent only to all hosts.`
    const { body } = shown(asked({ prompts: [{ text: words, isEchoed: true }], instruction: words }), 80, 24)
    const begins = body.filter((line) => /^(For|Sent)/.test(line))
    expect(begins).toEqual(['For h2', 'Sent only to the server that asks, never to a shell, and not stored.'])
  })

  it('of Muster itself has no such mark', () => {
    const { label } = shown(asked({ kind: 'password', prompts: [{ text: 'Password', isEchoed: false }] }), 80, 24)
    expect(label).toBe('Password')
  })

  it.each([
    [40, 12],
    [30, 8],
    [20, 5],
  ])('leaves the names of the hosts in view at %i×%i, however long it is', (columns, rows) => {
    const words = 'word '.repeat(40).trim()
    const { body } = shown(asked({ prompts: [{ text: words, isEchoed: true }], instruction: words }), columns, rows)
    expect(body[0]).toContain('For h2')
    if (rows > 5) expect(body[1]).toMatch(/^The server asks: word/)
    expect(body.at(-1)).toMatch(/…$/)
  })
})
