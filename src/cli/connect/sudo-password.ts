/** The password of sudo where work begins again and again: asked once for all hosts, and again when it was void. */
import { MusterError } from '../../base/errors.ts'
import type { Secret } from '../../base/secret.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import type { CredentialDialog } from '../../ssh/credentials.ts'
import { askSudoOnce } from './ask-sudo-once.ts'

export class SudoPassword {
  readonly #dialog: CredentialDialog
  #ask: (() => Promise<Secret | undefined>) | undefined
  /** It was refused, or nobody gave one. */
  #isVoid = false

  constructor(dialog: CredentialDialog) {
    this.#dialog = dialog
  }

  /** Something new begins on these hosts: who gave no password, or a wrong one, is asked again. */
  begin(names: readonly string[]): void {
    if (this.#ask !== undefined && !this.#isVoid) return
    this.#ask = askSudoOnce(this.#dialog, names)
    this.#isVoid = false
  }

  async ask(): Promise<Secret | undefined> {
    if (this.#ask === undefined) throw new MusterError('internal', 'nothing was begun')
    const answer = await this.#ask()
    if (answer === undefined) this.#isVoid = true
    return answer
  }

  /** The hosts, with an eye on whether one refuses. */
  watch(hosts: OpsHosts): OpsHosts {
    return {
      exec: async (host, script, options) => {
        const result = await hosts.exec(host, script, options)
        if (options.asRoot === true && result.outcome.kind === 'refused') this.#isVoid = true
        return result
      },
    }
  }
}
