/** Lines that wait while a question is open on the terminal: they would be written onto its line. */
import type { CredentialDialog, HostKeyReviewer } from '../../ssh/questions.ts'
import type { CliContext } from '../command-line/verb.ts'

export class AfterQuestions {
  readonly #waiting: (() => void)[] = []
  #questions = 0

  /** Lines for a pipe or a file do not wait. */
  write(stream: CliContext['stdout'] | CliContext['stderr'], line: string): void {
    if (this.#questions > 0 && stream.isTTY === true) this.#waiting.push(() => stream.write(line))
    else stream.write(line)
  }

  /** The same questions. */
  watch(dialog: CredentialDialog & HostKeyReviewer): CredentialDialog & HostKeyReviewer {
    const during = async <T>(talk: Promise<T>): Promise<T> => {
      this.#questions += 1
      try {
        return await talk
      } finally {
        this.#questions -= 1
        if (this.#questions === 0) for (const write of this.#waiting.splice(0)) write()
      }
    }
    return {
      ask: (...question) => during(dialog.ask(...question)),
      review: (...question) => during(dialog.review(...question)),
    }
  }
}
