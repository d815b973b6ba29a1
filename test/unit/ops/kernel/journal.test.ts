import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MusterError } from '../../../../src/base/errors.ts'
import { openJournal } from '../../../../src/ops/kernel/journal.ts'

describe('the journal', () => {
  let state: string
  beforeEach(() => {
    state = mkdtempSync(join(tmpdir(), 'muster-journal-'))
  })
  afterEach(() => {
    rmSync(state, { recursive: true })
  })
  const open = () => openJournal({ environment: { XDG_STATE_HOME: state }, now: () => 0 })

  it('is a file for each month', () => {
    const { directory } = open()
    expect(readdirSync(directory)).toEqual(['1970-01.jsonl'])
    expect(readFileSync(join(directory, '1970-01.jsonl'), 'utf8')).toBe('')
  })

  it('reports before any change that it cannot be written, and what to do', () => {
    writeFileSync(join(state, 'muster'), 'a file is in the way')
    const failure = (() => {
      try {
        return open()
      } catch (error) {
        return error
      }
    })()
    expect(failure).toBeInstanceOf(MusterError)
    expect(failure).toMatchObject({ code: 'configuration', hint: expect.stringContaining('XDG_STATE_HOME') })
    expect((failure as MusterError).message).toMatch(/^cannot write the journal: part of its path is not a directory/)
  })
})
