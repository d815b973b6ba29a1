import type { Secret } from '../../base/secret.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { CredentialDialog } from '../../ssh/credentials.ts'

/** The password of sudo: asked when the first host wants it, for all of them. */
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
