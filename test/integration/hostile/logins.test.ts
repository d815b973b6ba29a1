/** Servers that greet and ask with hostile bytes, over real SSH: what reaches the user is printable and short. */
import { describe, it } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { ConnectError } from '../../../src/ssh/transport.ts'
import { mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'

const MOST_SHOWN = 2_000

describe('a hostile server that asks', () => {
  it('shows nothing that acts on a terminal, and nothing long', async () => {
    await playMutations(
      async ({ choice, note }) => {
        const text = (good: string) => {
          const answer = mutate(Buffer.from(good), choice, ['root@m1', 'm1'])
          note(...answer.how)
          return Buffer.concat(answer.pieces).subarray(0, 20_000).toString('latin1')
        }
        const { endpoint } = await startInProcessServer((attempt) => {
          if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
          attempt.prompt([{ prompt: text('Password: '), echo: false }], text('Login'), text('Enter it'), () =>
            attempt.reject(),
          )
        })
        const shown: string[] = []
        const credentials = {
          ...nobody,
          async keyboardInteractive(_: unknown, instruction: string, prompts: readonly { readonly text: string }[]) {
            shown.push(instruction, ...prompts.map((prompt) => prompt.text))
            return undefined
          },
        }
        const connecting = createSsh2Transport().connect(endpoint(), watchedContext({ credentials }))
        const error: unknown = await connecting.then(
          () => undefined,
          (reason: unknown) => reason,
        )
        if (!(error instanceof ConnectError)) throw new Error(`it ended with ${String(error)}`)
        expectNoDefect(error.failure.reason, 'the reason')
        for (const words of [...shown, error.failure.reason]) {
          expectPrintable(words, 'what is shown')
          if (words.length > MOST_SHOWN) throw new Error(`${words.length} characters are shown`)
        }
      },
      0.02,
      4,
    )
  })
})
