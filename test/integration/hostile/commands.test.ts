/** Commands on a host that lies about how they began, what they print and how they ended. */
import { describe, it } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import { LinePrefixer } from '../../../src/ops/run/line-prefixer.ts'
import { formatOutcome } from '../../../src/ops/run/outcome.ts'
import { createHostExec, type ExecEnd, type ExecRequest } from '../../../src/ssh/exec/host-exec.ts'
import { wordsFor } from '../../../src/ssh/exec/remote-command.ts'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { createHostileTransport, untilEnded } from '../../support/hostile-host/hostile-transport.ts'
import { mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { nobody } from '../../support/ssh-context.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const TOKEN = '0123456789abcdef'
const READY = `ready${TOKEN}`
/** Of what is printed so much is looked at. */
const MOST_SHOWN = 512 * 1024
const FOREIGN = [READY, 'm1', 'm1: hello', 'exit 0']
const file = {
  sizeBytes: 5,
  async *open() {
    yield Buffer.from('true\n')
  },
}
const REQUESTS: readonly ExecRequest[] = [
  { command: 'echo hello' },
  { command: 'echo hello', isBrief: true, isForSh: true },
  { command: 'echo hello', variables: { A: 'secret' } },
  { command: '', script: { file, interpreter: ['/bin/sh'], args: [] } },
  { command: 'id', sudoPassword: async () => new Secret('hunter2') },
  { command: 'cat', isLasting: true, stdin: file },
]

describe('a hostile host that runs a command', () => {
  it('ends once, never succeeds with a command that did not start, and prints nothing that acts on a terminal', async () => {
    await playMutations(async ({ choice, note }) => {
      const clock = new ManualClock()
      const request = choice.one(REQUESTS) ?? { command: '' }
      const isDelivered = request.variables !== undefined || request.script !== undefined || request.stdin !== undefined
      // Start-up files lie before the program has its word, the program itself afterwards.
      const isEarly = choice.once(3)
      const answerWith = (good: string, foreign: readonly string[]) => {
        const mutated = mutate(Buffer.from(good), choice, [...FOREIGN, ...foreign])
        note(...mutated.how)
        return mutated
      }
      let answer = isEarly ? answerWith(`Welcome\n${READY}\n`, []) : undefined
      const stream = choice.once(10) ? 'stderr' : 'stdout'
      const prompts = request.sudoPassword !== undefined && choice.once(2) ? choice.one([1, 1, 2]) : 0
      const transport = createHostileTransport({
        onExec: (channel) => {
          if (choice.once(3)) channel.say(Buffer.from('bash: \x1b]0;title\x07 warning\n'), 'stderr')
          if (answer === undefined) channel.say(Buffer.from(`Welcome\n${READY}\n`))
          else void channel.play(answer, stream)
        },
        onBytes: (channel, bytes) => {
          if (answer !== undefined) return
          const { begin, prompt, deliver } = wordsFor(Buffer.from(bytes).toString().trim())
          if (prompts > 0) channel.say(Buffer.from(prompt.repeat(prompts)), 'stderr')
          const isLater = isDelivered && request.sudoPassword !== undefined
          const good = `${isLater ? `${deliver}\n` : ''}${begin}\nhello\nw\u00f6rld\n`
          answer = answerWith(good, [begin, prompt, deliver])
          if (answer.end === 'silent' || answer.endless !== undefined) clock.after(60_000, () => running.stop())
          void channel.play(answer, stream)
        },
      })
      const exec = createHostExec({
        transports: { ssh2: transport },
        hostKeys: createHostKeyVerifier(),
        credentials: nobody,
        clock,
        token: TOKEN,
      })
      const ended = Promise.withResolvers<ExecEnd>()
      const prefixers = [true, false].map((isCut) => new LinePrefixer({ prefix: 'm2: ', isCut }))
      let [begins, ends, bytes] = [0, 0, 0]
      const take = (piece: Uint8Array) => {
        if (ends > 0) throw new Error('it prints after its end')
        bytes += piece.length
        if (bytes > MOST_SHOWN) return
        for (const prefixer of prefixers)
          expectPrintable(prefixer.push(piece)?.toString() ?? '', 'the output', { lines: true })
      }
      const running = exec.start(endpointOf('m2', { connectTimeoutMs: 10_000 }), request, {
        onBegin: () => void begins++,
        onStdout: take,
        onStderr: take,
        onEnd: (end) => {
          ends++
          ended.resolve(end)
        },
      })
      // What never ends is stopped by the user.
      if (answer?.end === 'silent' || answer?.endless !== undefined) clock.after(60_000, () => running.stop())
      const end = await untilEnded(ended.promise, clock, 120_000)
      if (ends !== 1 || begins > 1) throw new Error(`${begins} beginnings and ${ends} ends`)
      if (end.kind === 'exit' && end.code === 0 && begins === 0) throw new Error('what never began is a success')
      if (end.kind === 'exit' && end.code === 0 && answer?.end !== 'well')
        throw new Error(`it ended ${answer?.end}, and is a success`)
      const words = formatOutcome(end)
      expectPrintable(words, 'the outcome')
      expectNoDefect(words, 'the outcome')
      if (clock.timerCount > 1) throw new Error(`${clock.timerCount} timers are left`)
      if (bytes > 100 * 1024 * 1024) throw new Error('it is not bounded')
    })
  })
})
