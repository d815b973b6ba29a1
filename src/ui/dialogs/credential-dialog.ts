/**
 * A password, a passphrase, a one-time code: asked once for all hosts that ask the same. What is typed stays in this
 * closure, is never in the store, the log or a recording, and leaves as a `Secret`.
 */

import { printable } from '../../base/printable.ts'
import { Secret } from '../../base/secret.ts'
import { textWidth, wrapText } from '../../base/text-width.ts'
import type { CredentialRequest } from '../../ssh/credentials.ts'
import { keyLabel } from '../keys/key-label.ts'
import type { Dialog, DialogLine } from './dialog.ts'
import { editLine, emptyLine, insertText, type Line } from './line-editor.ts'

/** A longer prompt is told above, so that there is room for the answer. */
const LABEL_WIDTH = 32
const LINE_WIDTH = 64
/** A server may not push away whom the answer is for. */
const MOST_LINES = 5

export type CredentialOptions = {
  readonly request: CredentialRequest
  readonly hostsText: string
  onAnswer(answers: readonly Secret[]): void
  onDecline(): void
  onClose(): void
  onChange(): void
}

export function createCredentialDialog(options: CredentialOptions): Dialog {
  const { request } = options
  const answers: Secret[] = []
  let line: Line = emptyLine
  let isClosed = false
  const close = (): boolean => {
    if (isClosed) return false
    isClosed = true
    line = emptyLine
    options.onClose()
    return true
  }
  const decline = (): void => {
    if (close()) options.onDecline()
  }
  const prompt = () => request.prompts[answers.length] ?? { text: '', isEchoed: false }
  return {
    view() {
      const { text, isEchoed } = prompt()
      const count = [...line.text].length
      const lines: DialogLine[] = []
      if (request.isRetry) lines.push({ text: 'That was not accepted.', tone: 'error' })
      const about = (told: string, tone: 'muted' | 'plain'): void => {
        for (const line of wrapText(printable(told), LINE_WIDTH).slice(0, MOST_LINES)) lines.push({ text: line, tone })
      }
      if (request.instruction !== '') about(request.instruction, 'muted')
      const question = printable(text.trim())
      const isSentence = textWidth(question) > LABEL_WIDTH
      if (isSentence) about(question, 'plain')
      lines.push({
        text: `For ${request.hosts.length} host${request.hosts.length === 1 ? '' : 's'}: ${options.hostsText}`,
      })
      lines.push({ text: 'Goes to the server that asks, to no shell; nothing keeps it.', tone: 'muted' })
      return {
        id: 'credentials',
        title: request.title,
        input: {
          label: question === '' || isSentence ? 'Answer:' : question,
          text: isEchoed ? line.text : '•'.repeat(count),
          cursor: isEchoed ? line.cursor : count,
        },
        lines,
        keys: [
          ['Enter', 'answer'],
          ['Esc', 'these hosts stay out'],
        ],
      }
    },
    key(event) {
      const label = keyLabel(event.key)
      if (label === 'Esc' || label === 'Ctrl-c') return decline()
      if (label === 'Enter') {
        answers.push(new Secret(line.text))
        line = emptyLine
        if (answers.length < request.prompts.length) return options.onChange()
        if (close()) options.onAnswer(answers)
        return
      }
      const next = editLine(line, event)
      if (!next) return
      // A masked line is edited at its end only: nobody sees where the cursor would be.
      line = prompt().isEchoed ? next : { ...next, cursor: next.text.length }
      options.onChange()
    },
    paste(text) {
      line = insertText(line, text.replace(/[\r\n]+$/, ''))
      options.onChange()
    },
    cancel: decline,
  }
}
