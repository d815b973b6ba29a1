import { expect, it } from 'vitest'
import { choiceOf } from '../../../../src/cli/sessions/attach.ts'

it('attaches the detached console, opens a new one or quits only if that is the answer', () => {
  const answers = ['', ' a ', 'Attach', 'n', 'new', 'q', 'QUIT', 'xyz', 'no', 'aq', '[A']
  expect(answers.map(choiceOf)).toEqual([
    ...['attach', 'attach', 'attach', 'new', 'new', 'quit', 'quit'],
    ...[undefined, undefined, undefined, undefined],
  ])
})
