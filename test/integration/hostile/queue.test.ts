/** A host of the queue that lies in its rounds and between them, mark and all: each round ends, and what it tells can be. */
import { setImmediate } from 'node:timers/promises'
import { describe, it } from 'vitest'
import { HostClock, HostLine, type JobShellHandlers } from '../../../src/scheduler/jobs/host-line.ts'
import { parseHostAnswer, type RoundResult } from '../../../src/scheduler/jobs/host-program.ts'
import { untilEnded } from '../../support/hostile-host/hostile-transport.ts'
import { mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, playMutations } from '../../support/hostile-host/play.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const KEY = 'abc-1-1-0'

describe('a hostile host of the queue', () => {
  it('ends each round, within bounds, and has numbers that can be', async () => {
    await playMutations(async ({ choice, note }) => {
      const clock = new ManualClock()
      const hostClock = new HostClock()
      let handlers: JobShellHandlers | undefined
      let [mark, told] = ['', 0]
      const answer = (number: number) => {
        const good = [
          'up 100.25',
          'host 8 16000000',
          `${KEY} begun at=99.5`,
          `+${KEY} exit 0 at=99.5 to=100`,
          `metric ${KEY} 0 0.5`,
          `end ${number}`,
        ]
        const foreign = [
          `${mark}abc-2-1-0 exit 0`,
          `${mark}+abc-9-1-0 gone`,
          `${mark}end ${number}`,
          `${mark}trouble x`,
          mark,
          'm1',
        ]
        const mutated = mutate(Buffer.from(good.map((line) => `${mark}${line}\n`).join('')), choice, foreign)
        note(...mutated.how)
        const own = handlers
        for (const piece of mutated.pieces) own?.onText(piece.toString())
        for (let count = 0; mutated.endless !== undefined && count < 200; count++)
          own?.onText(mutated.endless.toString())
        if (mutated.end !== 'silent' && mutated.end !== 'well') own?.onEnd(`it ended: ${mutated.end}`)
      }
      using line = new HostLine({
        ...{ host: 'm2', clock, hostClock, onLost() {} },
        onNotice(text) {
          told += text.length
          parseHostAnswer(text, (upS) => hostClock.toMs(upS))
        },
        port: {
          open(_, opened) {
            handlers = opened
            return {
              write(text) {
                mark = /mark=([0-9a-f]+);/.exec(text)?.[1] ?? mark
                const number = Number(/round=(\d+);/.exec(text)?.[1])
                queueMicrotask(() => answer(number))
              },
              [Symbol.dispose]() {
                handlers = undefined
              },
            }
          },
        },
      })
      for (let round = 0; round < 2; round++) {
        const asked = line.round({ orders: [{ kind: 'check', key: KEY }], wantsFacts: true, besides: '' })
        const result: RoundResult = await untilEnded(asked, clock, 61_000)
        if (result.kind === 'trouble') {
          expectNoDefect(result.reason, 'the trouble')
          continue
        }
        const { facts, bundles } = parseHostAnswer(result.text, (upS) => hostClock.toMs(upS))
        for (const number of [facts?.cores ?? 0, facts?.memoryBytes ?? 0])
          if (!Number.isSafeInteger(number) || number < 0) throw new Error(`it has ${number}`)
        for (const bundle of bundles.values()) {
          const isReal = Object.values(bundle).every((value) => typeof value !== 'number' || Number.isFinite(value))
          if (!isReal) throw new Error(`its times are ${JSON.stringify(bundle)}`)
        }
        await setImmediate()
      }
      if (told > 8 * 1024 * 1024) throw new Error(`${told} characters of notices`)
    })
  })
})
