import { expect, it } from 'vitest'
import { askedAbout, choiceOf, consoleMeant } from '../../../../src/cli/sessions/attach.ts'

const [lab, gpu] = ['lab', 'gpu'].map((name, index) => ({
  name,
  opened: [`words of ${name}`, `hosts of ${name}`],
  detachedMs: index,
}))
if (lab === undefined || gpu === undefined) throw new Error('no consoles')

it('attaches a detached console, opens a new one or quits only if that is the answer', () => {
  const answers = ['', ' a ', 'Attach', 'n', 'new', 'q', 'QUIT', 'lab', 'gpu ', 'xyz', 'no', 'aq', '[A', 'GPU']
  expect(answers.map((answer) => choiceOf(answer, [gpu, lab]))).toEqual([
    ...[gpu, gpu, gpu, 'new', 'new', 'quit', 'quit', lab, gpu],
    ...[undefined, undefined, undefined, undefined, undefined],
  ])
})

it('asks about the detached consoles on the same hosts, and where nothing else can be opened about the only one', () => {
  expect(askedAbout([lab, gpu], ['other words', 'hosts of gpu'])).toEqual([gpu])
  expect(askedAbout([lab, gpu], ['words of gpu', 'more hosts'])).toEqual([gpu])
  expect(askedAbout([lab], ['words of gpu', 'hosts of gpu'])).toEqual([])
  expect(askedAbout([], undefined)).toEqual([])
  expect(askedAbout([lab], undefined)).toEqual([lab])
  expect(() => askedAbout([lab, gpu], undefined)).toThrow(/no hosts.yaml here, and 2 consoles are detached/)
})

it('names the last of several detached consoles on the same hosts first', () => {
  const later = { ...lab, name: 'lab-2', detachedMs: 7 }
  expect(askedAbout([lab, gpu, later], ['hosts of lab'])).toEqual([later, lab])
})

it('suggests the console of a cluster whose first console has ended, or the name that was misspelt', () => {
  const found = [
    { name: 'bar-2', cluster: 'bar' },
    { name: 'lab', cluster: 'lab' },
  ]
  expect(consoleMeant('bar', found)).toBe('; did you mean bar-2?')
  expect(consoleMeant('lba', found)).toBe('; did you mean lab?')
  expect(consoleMeant('other', found)).toBe('')
})
