/**
 * Questions of connections (passwords, new host keys) for verbs without a console: asked on the terminal itself, as ssh does, so
 * that stdin and stdout stay free.
 */

import { openSync } from 'node:fs'
import tty from 'node:tty'
import { onAbort } from '../../base/abort.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { Secret } from '../../base/secret.ts'
import { wrapText } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import { wordsOf } from '../../ssh/question-words.ts'
import type { Answered, CredentialDialog, CredentialRequest, HostKeyReviewer, NewHostKey } from '../../ssh/questions.ts'
import { keepToAscii } from '../output/ascii-output.ts'

const INTERRUPT = '\u0003'
const END = '\u0004'
const ESC = '\u001b'

export class TtyDialog implements CredentialDialog, HostKeyReviewer {
  /** Questions come one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** By Ctrl-C, which ends the verb: nothing more is asked. */
  #isInterrupted = false

  ask(request: CredentialRequest, signal: AbortSignal): Promise<Answered<readonly Secret[]>> {
    const unasked = { nobody: 'nobody', interrupted: undefined } as const
    return this.#inTurn<Answered<readonly Secret[]>>(unasked, async (terminal) => {
      const { instruction, prompts } = wordsOf(request)
      terminal.write(`${request.isRetry ? 'That was not accepted. ' : ''}${printable(request.title)}\n`)
      if (instruction !== '') terminal.write(`${terminal.wrap(instruction)}\n`)
      const answers: Secret[] = []
      for (const [index, { isEchoed }] of request.prompts.entries()) {
        const answer = await terminal.readLine(`${prompts[index]} `, isEchoed, signal)
        if (answer === undefined) return undefined
        answers.push(new Secret(answer))
      }
      return answers
    })
  }

  /** Undefined: there is no terminal. */
  review(keys: readonly NewHostKey[], signal: AbortSignal): Promise<ReadonlySet<string> | undefined> {
    const unasked = { nobody: undefined, interrupted: new Set<string>() }
    return this.#inTurn<ReadonlySet<string> | undefined>(unasked, async (terminal) => {
      terminal.write(`New host keys: ${keys.length}\n`)
      for (const key of keys) terminal.write(`  ${key.host}  ${key.lookupName}  ${key.algorithm}  ${key.fingerprint}\n`)
      const names = keys.map(({ host }) => host)
      const answer = await terminal.readLine(`Trust ${foldHostSet(names)} and remember? (yes/no) `, true, signal)
      return new Set(/^y(es)?$/i.test(answer?.trim() ?? '') ? names : [])
    })
  }

  /** Undefined: there is no terminal. */
  confirm(question: string, signal: AbortSignal): Promise<boolean | undefined> {
    return this.#inTurn<boolean | undefined>({ nobody: undefined, interrupted: false }, async (terminal) => {
      const answer = await terminal.readLine(`${printable(question)} (yes/no) `, true, signal)
      return /^y(es)?$/i.test(answer?.trim() ?? '')
    })
  }

  /** Undefined: there is no terminal, or no answer. */
  line(question: string, signal: AbortSignal): Promise<string | undefined> {
    const unasked = { nobody: undefined, interrupted: undefined }
    return this.#inTurn<string | undefined>(unasked, (terminal) => terminal.readLine(question, true, signal))
  }

  /** `unasked`: the results where there is no terminal, and after Ctrl-C at an earlier question. */
  #inTurn<T>(
    unasked: { readonly nobody: T; readonly interrupted: T },
    talk: (terminal: Terminal) => Promise<T>,
  ): Promise<T> {
    const turn = this.#last.then(async () => {
      if (this.#isInterrupted) return unasked.interrupted
      let terminal: Terminal
      try {
        terminal = new Terminal(() => {
          this.#isInterrupted = true
        })
      } catch {
        return unasked.nobody
      }
      try {
        return await talk(terminal)
      } finally {
        terminal[Symbol.dispose]()
      }
    })
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

class Terminal implements Disposable {
  readonly #input: tty.ReadStream
  readonly #output: tty.WriteStream
  readonly #onInterrupt: () => void

  constructor(onInterrupt: () => void) {
    this.#onInterrupt = onInterrupt
    this.#input = new tty.ReadStream(openSync('/dev/tty', 'r'))
    this.#output = new tty.WriteStream(openSync('/dev/tty', 'w'))
    keepToAscii(this.#output, process.env)
  }

  write(text: string): void {
    this.#output.write(text)
  }

  /** With further rows indented: where the terminal broke them, a server's words could pass for a line of Muster. */
  wrap(text: string): string {
    return wrapText(text, (this.#output.columns || 80) - 1, '  ').join('\n')
  }

  /** Undefined: declined (Esc, Ctrl-C, Ctrl-D, the question became void). */
  readLine(prompt: string, isEchoed: boolean, signal: AbortSignal): Promise<string | undefined> {
    // First: what is typed at the prompt is not to be echoed, and Ctrl-C is for this question.
    this.#input.setRawMode(true)
    this.#input.setEncoding('utf8')
    this.#output.write(`${this.wrap(prompt.trimEnd())} `)
    let line = ''
    return new Promise((resolve) => {
      const close = (): void => {
        this.#input.off('data', handleData)
        abort?.[Symbol.dispose]()
        this.#input.pause()
        this.#input.setRawMode(false)
        this.#output.write('\n')
      }
      const end = (answer: string | undefined): void => {
        close()
        resolve(answer)
      }
      let abort: Disposable | undefined
      const handleData = (text: string): void => {
        if (text === ESC) return end(undefined)
        // An arrow or another key that a line does not know.
        if (text.startsWith(ESC)) return
        for (const character of text) {
          if (character === '\r' || character === '\n') return end(line)
          if (character === INTERRUPT) {
            close()
            this.#onInterrupt()
            return void interrupt().then(() => resolve(undefined))
          }
          if (character === END && line === '') return end(undefined)
          if (character === '\u007f' || character === '\b') {
            if (line !== '' && isEchoed) this.#output.write('\b \b')
            line = [...line].slice(0, -1).join('')
          } else if (character >= ' ') {
            line += character
            if (isEchoed) this.#output.write(character)
          }
        }
      }
      this.#input.on('data', handleData)
      abort = onAbort(signal, () => end(undefined))
    })
  }

  [Symbol.dispose](): void {
    this.#input.destroy()
    this.#output.destroy()
  }
}

/** Signals the whole job, as the terminal does with Ctrl-C unless a line is read. Resolves when this process has noticed. */
function interrupt(): Promise<void> {
  return new Promise((resolve) => {
    // Where nothing listens any more, the signal ends the process.
    if (process.listenerCount('SIGINT') > 0) process.once('SIGINT', () => resolve())
    process.kill(0, 'SIGINT')
  })
}

/** For work that starts again and again: the password is asked for once, and again after it was refused or not given. */
export class SudoPassword {
  readonly #dialog: CredentialDialog
  #ask: (() => Promise<Secret | undefined>) | undefined
  /** It was refused, or none was given. */
  #isVoid = false

  constructor(dialog: CredentialDialog) {
    this.#dialog = dialog
  }

  /** Something new starts on these hosts: a password that was refused or not given is asked for again. */
  begin(names: readonly string[]): void {
    if (this.#ask !== undefined && !this.#isVoid) return
    this.#ask = askSudoOnce(this.#dialog, names)
    this.#isVoid = false
  }

  async ask(): Promise<Secret | undefined> {
    if (this.#ask === undefined) throw new MusterError('internal', 'nothing was started')
    const answer = await this.#ask()
    if (answer === undefined) this.#isVoid = true
    return answer
  }

  /** The same hosts, while this notices whether one refuses the password. */
  watch(hosts: OpsHosts): OpsHosts {
    return {
      ...defined({ deliver: hosts.deliver?.bind(hosts), connectSocket: hosts.connectSocket?.bind(hosts) }),
      exec: async (host, script, options) => {
        const result = await hosts.exec(host, script, options)
        if (options.asRoot === true && result.outcome.kind === 'refused') this.#isVoid = true
        return result
      },
    }
  }
}

/** Asks when the first host wants the password, for all of them. */
export function askSudoOnce(dialog: CredentialDialog, names: readonly string[]) {
  let answer: Promise<Secret | undefined> | undefined
  return (): Promise<Secret | undefined> => {
    const request = {
      kind: 'password' as const,
      hosts: names,
      title: `sudo on ${foldHostSet(names)}`,
      instruction: '',
      prompts: [{ text: 'Password:', isEchoed: false }],
      isRetry: false,
    }
    answer ??= dialog
      .ask(request, new AbortController().signal)
      .then((answers) => (answers === 'nobody' ? undefined : answers?.[0]))
    return answer
  }
}
