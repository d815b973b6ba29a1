/** Keys that no known_hosts file names yet, reviewed together: each can be taken out before the rest is trusted. */
import type { NewHostKey } from '../../ssh/host-keys.ts'
import { keyLabel } from '../keys/key-label.ts'
import type { Dialog, DialogLine } from './dialog.ts'

export type HostKeyOptions = {
  readonly keys: readonly NewHostKey[]
  onAnswer(accepted: ReadonlySet<string>): void
  onClose(): void
  onChange(): void
}

export function createHostKeyDialog(options: HostKeyOptions): Dialog {
  const accepted = new Set(options.keys.map(({ host }) => host))
  let selected = 0
  let isClosed = false
  const answer = (hosts: ReadonlySet<string>): void => {
    if (isClosed) return
    isClosed = true
    options.onClose()
    options.onAnswer(hosts)
  }
  return {
    view({ rows }) {
      const height = Math.max(2, rows - 11)
      const start = Math.min(Math.max(0, selected - Math.floor(height / 2)), Math.max(0, options.keys.length - height))
      const nameWidth = Math.max(...options.keys.map(({ host }) => host.length))
      const lines: DialogLine[] = [
        {
          text: 'First connection. Compare with: ssh-keygen -lf /etc/ssh/ssh_host_…_key.pub on the machine.',
          tone: 'muted',
        },
        ...options.keys.slice(start, start + height).map((key, index) => ({
          text: `${accepted.has(key.host) ? '[x]' : '[ ]'} ${key.host.padEnd(nameWidth)}  ${key.algorithm.replace(/^ssh-/, '')}  ${key.fingerprint}`,
          isSelected: start + index === selected,
          ...(key.lookupName === key.host ? {} : { right: key.lookupName }),
        })),
      ]
      return {
        id: 'host-keys',
        title: `New host keys: ${options.keys.length}`,
        lines,
        keys: [
          ['y', `trust ${accepted.size} and remember`],
          ['Space', 'take out'],
          ['Esc', 'trust none'],
        ],
        tone: 'danger',
        width: 110,
      }
    },
    key(event) {
      const label = keyLabel(event.key)
      if (label === 'y' || label === 'Y') return answer(accepted)
      if (label === 'Esc' || label === 'n' || label === 'Ctrl-c') return answer(new Set())
      if (label === 'Down' || label === 'j') selected = Math.min(options.keys.length - 1, selected + 1)
      else if (label === 'Up' || label === 'k') selected = Math.max(0, selected - 1)
      else if (label === 'Space') {
        const host = options.keys[selected]?.host
        if (host !== undefined && !accepted.delete(host)) accepted.add(host)
      } else return
      options.onChange()
    },
    paste() {
      // A paste never answers a question.
    },
    cancel: () => answer(new Set()),
  }
}
