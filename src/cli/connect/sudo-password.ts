/** The password of sudo: asked once for all hosts. */
import { MusterError } from '../../base/errors.ts'
import type { Secret } from '../../base/secret.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import type { CredentialDialog } from '../../ssh/questions.ts'

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
    answer ??= dialog.ask(request, new AbortController().signal).then((answers) => answers?.[0])
    return answer
  }
}
