import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MarkFilter, PromptFilter } from '../../../../src/ssh/exec/filters.ts'

/** The same bytes, cut anywhere. */
function cut(text: string, sizes: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...pieces, bytes.subarray(at)]
}

const sizes = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 10 })

describe('the mark', () => {
  it('separates the output of start-up files from that of the command', () => {
    fc.assert(
      fc.property(sizes, (lengths) => {
        let passed = ''
        let marks = 0
        const filter = new MarkFilter(
          'MARK\n',
          (bytes) => (passed += Buffer.from(bytes)),
          () => (marks += 1),
          () => expect.unreachable(),
        )
        for (const piece of cut('welcome\nMAMARK\nMARK\nrest', lengths)) filter.push(piece)
        filter.flush()
        expect([passed, marks]).toEqual(['MARK\nrest', 1])
      }),
    )
  })

  it("that never comes lets the shell's error message through", () => {
    let passed = ''
    const filter = new MarkFilter(
      'MARK\n',
      (bytes) => (passed += Buffer.from(bytes)),
      () => {},
      () => expect.unreachable(),
    )
    filter.push(Buffer.from('This account is not available.\n'))
    expect(passed).toBe('')
    filter.flush()
    expect(passed).toBe('This account is not available.\n')
  })
})

describe('a mark that is not found', () => {
  it('is given up once, after a limit, and little is held back', () => {
    let floods = 0
    const filter = new MarkFilter('MARK\n', Boolean, Boolean, () => (floods += 1))
    const piece = Buffer.alloc(1024 * 1024, 'y\n')
    for (let count = 0; count < 16; count += 1) filter.push(piece)
    expect(floods).toBe(0)
    for (let count = 0; count < 4; count += 1) filter.push(piece)
    expect(floods).toBe(1)
  })
})

describe('the prompt', () => {
  it('is removed from the output wherever it is, and reported each time', () => {
    fc.assert(
      fc.property(sizes, (lengths) => {
        let passed = ''
        let prompts = 0
        const filter = new PromptFilter(
          'sudo12',
          (bytes) => (passed += Buffer.from(bytes)),
          () => (prompts += 1),
        )
        for (const piece of cut('lecture\nsudo12sorry sudo1\nsudo12sud', lengths)) filter.push(piece)
        filter.flush()
        expect([passed, prompts]).toEqual(['lecture\nsorry sudo1\nsud', 2])
      }),
    )
  })
})
