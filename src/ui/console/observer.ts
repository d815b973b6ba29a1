/**
 * Tells end-to-end tests when the console is idle and where things are: one JSON line on a Unix socket each time it comes
 * to rest (docs/architecture.md, 'The observer'). Only if MUSTER_OBSERVER names a socket.
 */
import { connect } from 'node:net'
import type { ConsoleApp } from './console-app.ts'

export type ObserverPort = { isIdle(): boolean; observe(): object }

const CHECK_EVERY_MS = 5

export function createObserver(socketPath: string, port: ObserverPort): Disposable {
  const socket = connect(socketPath)
  let last = ''
  socket.on('error', () => socket.destroy())
  const timer = setInterval(() => {
    if (socket.destroyed || socket.connecting || socket.writableNeedDrain || !port.isIdle()) return
    const line = `${JSON.stringify({ type: 'state', idle: true, ...port.observe() })}\n`
    if (line === last) return
    last = line
    socket.write(line)
  }, CHECK_EVERY_MS)
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      socket.destroy()
    },
  }
}

function modeOf({ mode, tab, panel }: ConsoleApp['state']): string {
  if (mode.kind === 'dialog') return `dialog:${mode.dialog.id}`
  if (mode.kind !== 'typing') return mode.kind
  return tab === 'shells' && panel?.hasKeys ? panel.view.kind : tab
}

export function observe({ state, arrangement, views, isInWord }: ConsoleApp) {
  return {
    isInWord,
    isTextHeld: state.held === 'moment',
    hostBytes: views.receivedBytes,
    mode: modeOf(state),
    page: arrangement.page,
    pages: arrangement.pages,
    focus: state.focus,
    receivers: [...state.hosts.keys()].filter((host) => state.receivers.has(host)),
    panes: arrangement.placed.map(({ hosts, rect }) => ({
      host: hosts[0] ?? '',
      hosts,
      column: rect.column + 1,
      row: rect.row + 1,
      width: rect.width - 2,
      height: rect.height - 2,
    })),
    hosts: [...state.hosts.values()].map(({ host, session, shell }) => ({
      host,
      session: session.kind,
      shell: shell.kind,
    })),
  }
}
