import { expect, it } from 'vitest'
import { AnswerCount } from '../../../src/terminal/answer-count.ts'

/** Whether so many answers have come, without waiting for more. */
async function has(answers: AnswerCount, questions: number): Promise<boolean> {
  let isReached = false
  void answers.reach(questions).then(() => {
    isReached = true
  })
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
  return isReached
}

it.each([
  ['which terminal it is', '\x1b[?62;22c'],
  ['where its cursor is', '\x1b[12;40R'],
  ['whether it is ready', '\x1b[0n'],
])('counts an answer of a terminal that says %s, also one that comes in pieces', async (_, answer) => {
  const answers = new AnswerCount()
  answers.take(Buffer.from(`typed${answer}`))
  for (const byte of Buffer.from(answer)) answers.take(Uint8Array.of(byte))
  expect([await has(answers, 2), await has(answers, 3)]).toEqual([true, false])
})

it('counts no keys', async () => {
  const answers = new AnswerCount()
  answers.take(Buffer.from('\x1b[A\x1b[1;5C\x1b[1;2R\x1bOR\x1b[200~1;1R\x1b[201~n'))
  expect([await has(answers, 0), await has(answers, 1)]).toEqual([true, false])
})
