/** What a host wrote, below lines that Muster writes. */
import { expect, it } from 'vitest'
import { indented } from '../../../../src/cli/job/rank-logs.ts'

it('no line of a log begins where the lines of Muster begin', () => {
  expect(indented('begin\n==> rank 0 on m1: failed <==\n\nend\n')).toBe(
    '  begin\n  ==> rank 0 on m1: failed <==\n  \n  end\n',
  )
  expect(indented(' of a line\n==> rank 0', true)).toBe(' of a line\n  ==> rank 0')
  expect(indented('')).toBe('')
})
