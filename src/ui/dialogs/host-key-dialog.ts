/** Keys that no known_hosts file names yet, reviewed together: each can be left out before the rest is trusted. */
import type { NewHostKey } from '../../ssh/questions.ts'
import { closeOnce, type DialogFactory, type DialogLine, isCancelKey, windowAround } from './dialog.ts'

const COMPARE = 'First connection. To compare, run on the host: ssh-keygen -lf /etc/ssh/ssh_host_…_key.pub'

/** `onAnswer` gets the hosts whose keys are trusted. */
export const hostKeyDialog =
  (keys: readonly NewHostKey[], onAnswer: (accepted: ReadonlySet<string>) => void): DialogFactory =>
  ({ onClose, onChange }) => {
    const accepted = new Set(keys.map(({ host }) => host))
    let selected = 0
    const close = closeOnce(onClose)
    const answer = (hosts: ReadonlySet<string>): void => {
      if (close()) onAnswer(hosts)
    }
    return {
      view({ rows }) {
        const height = Math.max(2, rows - 11)
        const start = windowAround(selected, keys.length, height)
        const nameWidth = Math.max(...keys.map(({ host }) => host.length))
        const lines: DialogLine[] = keys.slice(start, start + height).map((key, index) => ({
          text: `${accepted.has(key.host) ? '[x]' : '[ ]'} ${key.host.padEnd(nameWidth)}  ${key.algorithm.replace(/^ssh-/, '')}  ${key.fingerprint}`,
          isSelected: start + index === selected,
          ...(key.lookupName === key.host ? {} : { right: key.lookupName }),
        }))
        return {
          id: 'host-keys',
          title: `New host keys: ${keys.length}`,
          lines: [{ text: COMPARE, tone: 'muted' }, ...lines],
          keys: [
            ['y', `trust ${accepted.size} and record`],
            ['Space', 'toggle'],
            ['Esc', 'trust none'],
          ],
          tone: 'danger',
          width: 110,
        }
      },
      key(label) {
        if (label === 'y' || label === 'Y') return answer(accepted)
        if (isCancelKey(label) || label === 'n') return answer(new Set())
        if (label === 'Down' || label === 'j') selected = Math.min(keys.length - 1, selected + 1)
        else if (label === 'Up' || label === 'k') selected = Math.max(0, selected - 1)
        else if (label === 'Space') {
          const host = keys[selected]?.host
          if (host !== undefined && !accepted.delete(host)) accepted.add(host)
        } else return
        onChange()
      },
      cancel: () => answer(new Set()),
    }
  }
