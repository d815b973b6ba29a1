import { expect, it } from 'vitest'
import { VERB_NAMES } from '../../../src/cli/verb-names.ts'
import { VERBS } from '../../../src/cli/verbs.ts'

it('lists every verb, so that no verb is mistaken for a host', () => {
  expect([...VERB_NAMES].sort()).toEqual([...Object.keys(VERBS), 'help'].sort())
})
