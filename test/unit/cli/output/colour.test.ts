/** Who decides about colours, and in which order. */
import { describe, expect, it } from 'vitest'
import { isColoured } from '../../../../src/cli/output/colour.ts'

const ALL = { NO_COLOR: '1', FORCE_COLOR: '1', CLICOLOR_FORCE: '1' }

describe('isColoured', () => {
  it.each([
    ['always', ALL, false, true],
    ['never', { FORCE_COLOR: '1', CLICOLOR_FORCE: '1' }, true, false],
    ['auto', ALL, true, false],
    ['auto', { FORCE_COLOR: '1' }, false, true],
    ['auto', { FORCE_COLOR: '0', CLICOLOR_FORCE: '1' }, true, false],
    ['auto', { FORCE_COLOR: 'false' }, true, false],
    ['auto', { CLICOLOR_FORCE: '1' }, false, true],
    ['auto', { CLICOLOR_FORCE: '0' }, false, false],
    ['auto', { NO_COLOR: '', FORCE_COLOR: '', CLICOLOR_FORCE: '' }, true, true],
    ['auto', {}, false, false],
    [undefined, {}, true, true],
    ['auto', { TERM: 'dumb' }, true, false],
    ['auto', { TERM: 'dumb', FORCE_COLOR: '1' }, true, true],
  ] as const)('--color %s with %j on a terminal (%s): %s', (color, environment, isTerminal, expected) => {
    expect(isColoured(color, environment, isTerminal)).toBe(expected)
  })
})
