import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { answerLine, areSame, parseRequest, valuesOf } from '../../../../src/scheduler/study/program-lines.ts'
import { makeSpace, parseParameter } from '../../../../src/scheduler/study/space.ts'

describe('a request of a program', () => {
  it.each([
    ['{"ask":"wf"}', { kind: 'ask', study: 'wf', isKept: false }],
    ['{"ask":"wf","keep":true,"expires":3600}', { kind: 'ask', study: 'wf', isKept: true, expiresS: 3600 }],
    ['{"hold":"wf","trial":3,"token":"a"}', { kind: 'hold', study: 'wf', trial: 3, token: 'a' }],
    [
      '{"step":"wf","trial":3,"token":"a","at":12,"value":0.5}',
      { kind: 'step', study: 'wf', trial: 3, token: 'a', step: 12, value: 0.5 },
    ],
    [
      '{"tell":"wf","trial":3,"values":{"acc":0.93},"host":"m1\\u001b[31m"}',
      { kind: 'tell', study: 'wf', trial: 3, told: { kind: 'values', values: { acc: 0.93 } }, host: 'm1\\x1b[31m' },
    ],
    [
      '{"tell":"wf","trial":3,"values":NaN}',
      { kind: 'tell', study: 'wf', trial: 3, told: { kind: 'values', values: null } },
    ],
    [
      '{"tell":"wf","trial":3,"failed":"out of memory"}',
      { kind: 'tell', study: 'wf', trial: 3, told: { kind: 'failed', reason: 'out of memory' } },
    ],
    ['{"best":"wf"}', { kind: 'best', study: 'wf' }],
    ['{"tell":"wf","trial":3,"pruned":true}', { kind: 'tell', study: 'wf', trial: 3, told: { kind: 'pruned' } }],
  ])('is read: %s', (line, request) => expect(parseRequest(line)).toEqual(request))

  it.each([
    ['', 'a line must be a JSON object'],
    ['[1]', 'a line must be a JSON object'],
    ['{"asks":"wf"}', 'one of these is missing: ask, tell'],
    ['{"ask":7}', '"ask" must be the name of a study'],
    ['{"ask":"wf","expires":-1}', '"expires" must be a number of seconds'],
    ['{"ask":"wf","expires":"soon"}', '"expires" must be a number of seconds'],
    ['{"tell":"wf","values":1}', '"trial" must be a number of a trial'],
    ['{"tell":"wf","trial":1.5,"values":1}', '"trial" must be a number of a trial'],
    ['{"step":"wf","trial":1,"at":1}', '"at" must be the number of the step'],
  ])('is refused in words: %s', (line, words) => expect(parseRequest(line)).toContain(words))

  it('never throws, whatever the line is', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (line) => void parseRequest(line)))
  })
})

describe('told values', () => {
  const metrics = [{ name: 'acc', isMost: true }, { name: 'loss' }]

  it.each<[unknown, object]>([
    [{ acc: 0.9, loss: 1 }, { values: { acc: '0.9', loss: '1' } }],
    [[0.9, 1e-7], { values: { acc: '0.9', loss: '1e-7' } }],
    [0.9, { wrong: 'the value of loss is missing' }],
    [[1, 2, 3], { wrong: 'its metrics are: acc, loss' }],
    [{ acc: 1, loss: 2, f1: 3 }, { wrong: 'its metrics are: acc, loss, not f1' }],
    [{ acc: 1, loss: null }, { failed: 'its loss was not a number' }],
    [[null, 1], { failed: 'its acc was not a number' }],
  ])('%j', (told, found) => expect(valuesOf(told, metrics)).toEqual(found))

  it('may be one number where there is one metric, and nothing where there is none', () => {
    expect(valuesOf(0.5, metrics.slice(0, 1))).toEqual({ values: { acc: '0.5' } })
    expect(valuesOf(undefined, [])).toEqual({ values: {} })
  })

  it('are the same as numbers', () => {
    expect(areSame({ acc: '0.9' }, { acc: '0.90' })).toBe(true)
    expect(areSame({ acc: '0.9' }, { acc: '0.91' })).toBe(false)
    expect(areSame({ acc: '0.9' }, {})).toBe(false)
  })
})

describe('the answer to a program', () => {
  it('has numbers as numbers, texts as texts, and both exactly as the trial has them', () => {
    const space = makeSpace(
      ['lr=log:1e-9:1e-1', 'size=int:1:9', 'opt=adam,sgd', 'batch=8,16', 'drop=none,0.5'].map(parseParameter),
    )
    const parameters = { lr: '1.5e-9', size: '3', opt: 'adam', batch: '16', drop: '0.5' }
    expect(answerLine({ trial: 3, token: 'a', parameters, space })).toBe(
      '{"trial":3,"token":"a","parameters":{"lr":1.5e-9,"size":3,"opt":"adam","batch":16,"drop":"0.5"}}\n',
    )
  })

  it('has the best trials in the same way', () => {
    const space = makeSpace(['lr=log:1e-9:1e-1', 'opt=adam,sgd'].map(parseParameter))
    const best = [{ trial: 3, parameters: { lr: '1.5e-9', opt: 'adam' }, values: [0.5, Number.POSITIVE_INFINITY] }]
    expect(answerLine({ best, directions: ['maximize', 'minimize'], space })).toBe(
      '{"best":[{"trial":3,"parameters":{"lr":1.5e-9,"opt":"adam"},"values":[0.5,null]}],"directions":["maximize","minimize"]}\n',
    )
  })

  it('leaves out parameters that the trial does not have', () => {
    const space = makeSpace(['opt=adam,sgd', 'size=int:1:9'].map(parseParameter))
    expect(answerLine({ trial: 0, token: 'a', parameters: { opt: 'sgd' }, space })).toBe(
      '{"trial":0,"token":"a","parameters":{"opt":"sgd"}}\n',
    )
  })
})
