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
