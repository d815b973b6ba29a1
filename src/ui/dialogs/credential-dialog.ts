/**
 * Questions of connections, asked once for all hosts that ask the same: a password, a passphrase, a one-time code, new host
 * keys. What is typed stays in a closure and leaves it as a `Secret`; it is never in the store, the log or a recording.
 */
import { naturalOrder } from '../../base/natural-order.ts'
import { Secret } from '../../base/secret.ts'
import { clipName, padEnd, textWidth, wrapText } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { wordsOf } from '../../ssh/question-words.ts'
import type { CredentialRequest, NewHostKey } from '../../ssh/questions.ts'
import {
  closeOnce,
  type DialogFactory,
  type DialogLine,
  editLine,
  emptyLine,
  insertText,
  isCancelKey,
  type Line,
  moreText,
  windowAround,
} from './dialog.ts'

/** A longer question is shown below the input, so that there is room for the answer. */
const LABEL_WIDTH = 40
/** Muster's own labels are never longer. */
const SHORT_LABEL_WIDTH = 12
const ANSWER_WIDTH = 24
const LINE_WIDTH = 64
const WIDTH = 72

/** `onAnswer` gets an answer for each prompt; undefined: the user declined. */
export const credentialDialog =
  (request: CredentialRequest, onAnswer: (answers: readonly Secret[] | undefined) => void): DialogFactory =>
  ({ onClose, onChange }) => {
    const answers: Secret[] = []
    let line: Line = emptyLine
    const close = closeOnce(onClose)
    const finish = (given: readonly Secret[] | undefined): void => {
      line = emptyLine
      if (close()) onAnswer(given)
    }
    const prompt = () => request.prompts[answers.length] ?? { text: '', isEchoed: false }
    const words = wordsOf(request)
    return {
      view({ columns }) {
        const { isEchoed } = prompt()
        const count = [...line.text].length
        const question = words.prompts[answers.length] ?? ''
        const isLong = textWidth(question) > Math.min(LABEL_WIDTH, Math.max(columns - ANSWER_WIDTH, SHORT_LABEL_WIDTH))
        const { hosts } = request
        const room = Math.min(LINE_WIDTH, columns - 2 - AROUND_LINE)
        // Indented, so that no row of what a server says begins like one of Muster's.
        const wrapped = (text: string): DialogLine[] => wrapText(text, room, '  ').map((row) => ({ text: row }))
        return {
          id: 'credentials',
          title: request.title,
          input: {
            label: isLong ? 'Answer:' : question,
            text: isEchoed ? line.text : '•'.repeat(count),
            cursor: isEchoed ? line.cursor : count,
          },
          // On a low screen only the last ones are cut off.
          lines: [
            { text: `For ${hosts.length === 1 ? '' : `${hosts.length} hosts: `}${foldHostSet(hosts)}` },
            ...(request.isRetry ? [{ text: 'That was not accepted.', tone: 'error' as const }] : []),
            ...(isLong ? wrapped(question) : []),
            ...wrapped(words.instruction),
            { text: 'Sent only to the server that asks, never to a shell, and not stored.', tone: 'muted' },
          ],
          keys: [
            ['Enter', 'send'],
            ['Esc', request.kind === 'passphrase' ? 'skip this key' : 'skip these hosts'],
          ],
          width: WIDTH,
        }
      },
      key(label, event) {
        if (isCancelKey(label)) return finish(undefined)
        if (label === 'Enter') {
          answers.push(new Secret(line.text))
          line = emptyLine
          return answers.length < request.prompts.length ? onChange() : finish(answers)
        }
        const next = editLine(line, event)
        if (!next) return
        // A masked line is edited at its end only, as the cursor cannot be seen.
        line = prompt().isEchoed ? next : { ...next, cursor: next.text.length }
        onChange()
      },
      paste(text) {
        line = insertText(line, text.replace(/[\r\n]+$/, ''))
        onChange()
      },
      cancel: () => finish(undefined),
    }
  }

const COMPARE = 'First connection. To compare, run on the host: ssh-keygen -lf /etc/ssh/ssh_host_…_key.pub'
const KEYS_WIDTH = 110
/** The frame, and the room at both ends of a line. */
const AROUND_LINE = 6
/** `SHA256:` and 256 bits. */
const FINGERPRINT_WIDTH = 50
const LEAST_NAME = 8
const LEAST_KEYS = 2

/** `onAnswer` gets the hosts whose keys are trusted. */
export const hostKeyDialog =
  (given: readonly NewHostKey[], onAnswer: (accepted: ReadonlySet<string>) => void): DialogFactory =>
  ({ onClose, onChange }) => {
    const keys = given.toSorted((one, other) => naturalOrder(one.host, other.host))
    const accepted = new Set(keys.map(({ host }) => host))
    let selected = 0
    let firstShown = 0
    let shownCount = 0
    let linesAbove = 0
    const close = closeOnce(onClose)
    const answer = (hosts: ReadonlySet<string>): void => {
      if (close()) onAnswer(hosts)
    }
    return {
      view({ columns, rows }) {
        const room = Math.min(KEYS_WIDTH, columns - 2) - AROUND_LINE
        const head = wrapText(COMPARE, room).map((text): DialogLine => ({ text, tone: 'muted' }))
        const longest = Math.max(...keys.map(({ host }) => textWidth(host)))
        const nameWidth = Math.min(longest, Math.max(LEAST_NAME, room - FINGERPRINT_WIDTH - '[x]   '.length))
        // The fingerprint is what is compared: everything else gives way to it.
        const texts = keys.map(
          ({ host, fingerprint, algorithm }) =>
            `${accepted.has(host) ? '[x]' : '[ ]'} ${padEnd(clipName(host, nameWidth), nameWidth)}  ${fingerprint}  ${algorithm.replace(/^ssh-/, '')}`,
        )
        const hasRoom = keys.every(
          ({ lookupName }, index) => textWidth(texts[index] ?? '') + textWidth(lookupName) + 3 <= room,
        )
        const details = hasRoom ? [] : detailsOf(keys[selected], room)
        const free = rows - 10 - head.length - details.length - blankBefore(details).length
        // There the text around gives way to the selected key, and to the list.
        const isLow = free < Math.min(keys.length, LEAST_KEYS)
        const height = isLow ? Math.max(1, lowRows(rows) - details.length) : free
        const start = windowAround(selected, keys.length, height)
        firstShown = start
        linesAbove = isLow ? 0 : head.length
        shownCount = height
        const lines = keys.slice(start, start + height).map(
          ({ host, lookupName }, index): DialogLine => ({
            text: texts[start + index] ?? '',
            isSelected: start + index === selected,
            ...(lookupName === host || !hasRoom ? {} : { right: lookupName }),
          }),
        )
        const more = moreText(start, keys.length - start - lines.length)
        return {
          id: 'host-keys',
          title: [`New host keys: ${keys.length}`, ...(more === '' ? [] : [more])].join('   '),
          lines: isLow ? [...lines, ...details, ...head] : [...head, ...lines, ...blankBefore(details), ...details],
          keys: [
            ['y', `trust ${accepted.size} and record`],
            ['Space', 'toggle'],
            ['Esc', 'trust none'],
          ],
          tone: 'danger',
          width: KEYS_WIDTH,
        }
      },
      pick(line) {
        const row = line - linesAbove
        const host = row >= 0 && row < shownCount ? keys[firstShown + row]?.host : undefined
        if (host === undefined) return
        selected = firstShown + row
        if (!accepted.delete(host)) accepted.add(host)
        onChange()
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

const blankBefore = (lines: readonly DialogLine[]): readonly DialogLine[] => (lines.length === 0 ? [] : [{ text: '' }])

/** Of the dialog's lines, those that a low screen shows: without the margins, the frame, the title, the keys and blank lines. */
const lowRows = (rows: number): number => (rows < 12 ? rows : rows - 2) - 4 - (rows >= 18 ? 2 : 0)

/** The key whole, where its line has no room for all of it. */
function detailsOf(key: NewHostKey | undefined, room: number): readonly DialogLine[] {
  if (key === undefined) return []
  const { host, lookupName, algorithm, fingerprint } = key
  const name = lookupName === host ? host : `${host} (${lookupName})`
  const words = `${name}: ${algorithm.replace(/^ssh-/, '')} ${fingerprint}`
  return wrapText(words, room).map((text) => ({ text }))
}
