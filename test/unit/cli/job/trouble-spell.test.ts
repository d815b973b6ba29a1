import { expect, test } from 'vitest'
import { TroubleSpell } from '../../../../src/cli/job/trouble-spell.ts'

test('a full disk is told once for as long as it is met again soon, and once more when there was room meanwhile', () => {
  const spell = new TroubleSpell(10_000)
  expect(spell.meet(0, 1_000)).toBe(true)
  expect(spell.meet(3_000, 3_000)).toBe(false)
  expect(spell.meet(5_000, 14_000)).toBe(false)
  expect(spell.meet(16_000, 26_000)).toBe(true)
  expect(spell.meet(28_000, 28_100)).toBe(false)
})
