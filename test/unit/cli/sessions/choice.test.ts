import { expect, it } from 'vitest'
import { askedAbout, choiceOf } from '../../../../src/cli/sessions/attach.ts'

it('attaches the detached console, opens a new one or quits only if that is the answer', () => {
  const answers = ['', ' a ', 'Attach', 'n', 'new', 'q', 'QUIT', 'xyz', 'no', 'aq', '[A']
  expect(answers.map(choiceOf)).toEqual([
    ...['attach', 'attach', 'attach', 'new', 'new', 'quit', 'quit'],
    ...[undefined, undefined, undefined, undefined],
  ])
})

it('asks about the detached console on the same hosts, and where nothing else can be opened about the only one', () => {
  const [lab, gpu] = ['lab', 'gpu'].map((name) => ({ name, opened: `hosts of ${name}` }))
  if (lab === undefined || gpu === undefined) throw new Error('no consoles')
  expect(askedAbout([lab, gpu], 'hosts of gpu')).toBe(gpu)
  expect(askedAbout([lab], 'hosts of gpu')).toBeUndefined()
  expect(askedAbout([], undefined)).toBeUndefined()
  expect(askedAbout([lab], undefined)).toBe(lab)
  expect(() => askedAbout([lab, gpu], undefined)).toThrow(/no hosts.yaml here, and 2 consoles are detached/)
})
