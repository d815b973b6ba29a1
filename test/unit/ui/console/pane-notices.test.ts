/** What a pane without a live shell says, as far as it has room. */
import { expect, it } from 'vitest'
import type { ConnectFailure } from '../../../../src/ssh/transport.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { paneView } from '../../../../src/ui/console/pane-view.ts'
import { createConsoleHarness } from './console-harness.ts'

function noticeOf(failure: ConnectFailure, width: number, height: number): readonly string[] {
  const { console, fleet } = createConsoleHarness()
  fleet.events.emit({ type: 'session', host: 'm1', state: { kind: 'failed', failure, sinceMs: 0 } })
  const rect = { column: 0, row: 0, width, height }
  const { notice } = paneView({
    ...{ state: console.state, theme: themes.none, hosts: ['m1'], rect },
    ...{ screen: undefined, highlights: [] },
  })
  for (const row of notice) expect(row.map(({ text }) => text).join('').length).toBeLessThanOrEqual(width - 2)
  return notice.map((row) => row.map(({ text }) => text.trim()).join(''))
}

const FINGERPRINT = 'SHA256:KmSdwdY1ZQMbRtOXBT3tRL+CmYTarlRvHrBakx0123w'
const refusedKey: ConnectFailure = {
  kind: 'host-key',
  phase: 'host-key',
  reason: `cannot trust root@10.81.0.2:22: its new key was not accepted: the ed25519 key ${FINGERPRINT} of 10.81.0.2`,
  hint: 'Reconnect to review the key again.',
}

it('a cause that is too long loses its end, not what it begins with', () => {
  expect(noticeOf(refusedKey, 40, 7)).toEqual([
    'cannot trust root@10.81.0.2:22: its',
    'new key was not accepted: the',
    'ed25519 key…',
    'Reconnect to review the key again.',
    'Ctrl-] r reconnects',
  ])
})

it('advice that is too long keeps its end, where the command is', () => {
  const refusedLogin: ConnectFailure = {
    kind: 'authentication',
    phase: 'authentication',
    reason: 'root@10.81.0.2:22 refused every key',
    hint: 'Check the user name, or install your key with: ssh-copy-id -p 2222 root@10.81.0.2',
  }
  const lines = noticeOf(refusedLogin, 40, 5)
  expect(lines).toEqual([
    'root@10.81.0.2:22 refused every key',
    '…ssh-copy-id -p 2222 root@10.81.0.2',
    'Ctrl-] r reconnects',
  ])
  expect(noticeOf(refusedLogin, 40, 3)).toHaveLength(1)
  expect(noticeOf(refusedLogin, 40, 2)).toEqual([])
})

it('why a lost host does not come back is kept in a low pane before how it was lost', () => {
  const { console, fleet } = createConsoleHarness()
  const lost = { kind: 'lost', attempt: 1, reason: 'the server closed the connection', sinceMs: 0 } as const
  const reason = 'root@10.81.0.4:22 sent no SSH banner within 10 s'
  const waiting = { kind: 'waiting', attempt: 3, reason, retryAtMs: 1000, sinceMs: 0 } as const
  for (const state of [lost, waiting]) fleet.events.emit({ type: 'session', host: 'm1', state })
  const { notice } = paneView({
    ...{ state: console.state, theme: themes.none, hosts: ['m1'], rect: { column: 0, row: 0, width: 40, height: 7 } },
    ...{ screen: undefined, highlights: [] },
  })
  const text = notice.map((row) => row.map((span) => span.text.trim()).join('')).join(' ')
  expect(text).toContain('no connection: root@10.81.0.4:22 sent no SSH banner within 10 s')
})

it('what the server says during a login is shown as its words, and bounded', () => {
  const { console, fleet } = createConsoleHarness()
  const rowsOf = (says: string, height: number) => {
    fleet.events.emit({ type: 'session', host: 'm1', state: { kind: 'authenticating', attempt: 1, sinceMs: 0, says } })
    const rect = { column: 0, row: 0, width: 40, height }
    const { notice } = paneView({
      ...{ state: console.state, theme: themes.none, hosts: ['m1'], rect },
      ...{ screen: undefined, highlights: [] },
    })
    return notice.map((row) => row.map(({ text }) => text.trim()).join(''))
  }
  expect(rowsOf('A push was sent to your phone, approve it', 8)).toEqual([
    'The server says: A push was sent to',
    'your phone, approve it',
    'authenticating as root …',
  ])
  expect(rowsOf('word '.repeat(80).trim(), 5).at(-1)).toBe('authenticating as root …')
})
