import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shellQuote } from '../../../../src/base/shell-quote.ts'
import { expandCommand, expandWord, parseInterpreter, replacedIn } from '../../../../src/ops/run/command-template.ts'
import { anyCharacter } from '../../../support/any-character.ts'

const m8 = { host: 'm8', number: 3, user: 'ann' }

describe('the template of a command', () => {
  it('expands name, number and user', () => {
    expect(expandCommand('echo %h %n %u', m8)).toBe('echo m8 3 ann')
  })

  it('leaves other percent signs alone', () => {
    expect(expandCommand("date +%s; printf '100%%'; echo %%h", m8)).toBe("date +%s; printf '100%%'; echo %h")
  })

  it.each([
    [['stat', '-c', '%n', '/'], "%n stands for each host's number; for a literal %n write %%n, or pass --raw"],
    [['squeue -o "%u %h"'], "%h and %u stand for each host's name and user; for a literal %h write %%h, or pass --raw"],
    [
      ['echo %u', '%n %h %%u'],
      "%h, %n and %u stand for each host's name, number and user; for a literal %h write %%h, or pass --raw",
    ],
    [['date +%s; echo %%h 100%'], undefined],
  ])('says what it replaced in %j', (words, expected) => {
    expect(replacedIn(words)).toBe(expected)
  })

  it('quotes a value that the shell would interpret, but not for an argument of a script', () => {
    const odd = { ...m8, user: 'a; rm x' }
    expect(expandCommand('id %u', odd)).toBe("id 'a; rm x'")
    expect(expandWord('%u', odd)).toBe('a; rm x')
  })

  it('quotes any text as one word of the shell', () => {
    const text = fc
      .string({ unit: anyCharacter, maxLength: 40 })
      .filter((each) => !each.includes('\0') && each.isWellFormed())
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), (words) => {
        const script = `printf '%s\\0' ${words.map(shellQuote).join(' ')}`
        const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8' })
        expect(stdout.split('\0').slice(0, -1)).toEqual(words)
      }),
      { numRuns: 8 },
    )
  })
})

describe('the interpreter of a script', () => {
  it.each([
    ['#!/bin/sh\necho', ['/bin/sh']],
    ['#! /usr/bin/env python3\r\n', ['/usr/bin/env', 'python3']],
    ['#!/usr/bin/awk -f -v x\n', ['/usr/bin/awk', '-f -v x']],
    ['echo hi\n', []],
    ['', []],
  ])('of %j is %j', (head, expected) => {
    expect(parseInterpreter(head)).toEqual(expected)
  })
})
