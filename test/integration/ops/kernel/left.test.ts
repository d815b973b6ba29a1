/** What is left on a host, from its answer to what may be removed: an answer is not believed, and names of files mean nothing. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { LeftKind } from '../../../../src/base/left.ts'
import { known } from '../../../../src/ops/kernel/fact.ts'
import { decodeWord, type LeftAnswer, leftFact, leftoversOf, setPath } from '../../../../src/ops/kernel/left.ts'

const fact = leftFact(':', [])
const read = (...lines: readonly string[]): LeftAnswer | undefined => {
  const text = ['self 1000 5000', ...lines, 'end'].join('\n')
  return fact.parse(text, Buffer.from(text))
}
const KINDS: Readonly<Record<string, LeftKind>> = {
  part: { title: 'unfinished copy' },
  new: { title: 'unfinished file', isOfRoot: true, isBrief: true },
  queue: { title: 'queue', keep: 'it is yours' },
}
const statesOf = (...lines: readonly string[]) => {
  const answer = read(...lines)
  if (answer === undefined) throw new Error('no answer')
  return leftoversOf(known(answer), KINDS).map(({ what, state }) => [
    what,
    state.kind,
    'because' in state ? state.because : '',
  ])
}

describe('what a host reports about leftovers', () => {
  it('has one record per line, and other lines are ignored', () => {
    const answer = read(
      'part =/root/.muster-01 1 1000 4000 4 - =',
      'part =/x$(reboot) 1 0 1 1 - =',
      'PART =/x 1 1 1 1 - =',
      'x',
    )
    expect(answer?.records).toEqual([
      { kind: 'part', path: '/root/.muster-01', count: 1, uid: 1000, changedS: 4000, bytes: 4096 },
    ])
  })

  it('is unknown if it is cut', () => {
    const text = 'self 1000 5000\npart =/a 1 1000 4000 4 - ='
    expect(fact.parse(text, Buffer.from(text))).toBeUndefined()
  })

  it('is bounded, and says so', () => {
    const answer = read(...Array.from({ length: 1000 }, (_, index) => `part =/a${index} 1 1000 4000 4 - =`))
    expect([answer?.records.length, answer?.isCut]).toEqual([400, true])
  })

  it('keeps every byte of a name on its way to the host and back', () => {
    const name = 'a \'b" $(touch c)\\ \n\u001b[31m ü'
    const word = [...Buffer.from(name)].map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('')
    expect(decodeWord(word)).toBe(name)
    expect(execFileSync('sh', ['-c', `${setPath(word)}; printf %s "$p"`], { encoding: 'utf8' })).toBe(name)
  })
})

describe('what may be removed', () => {
  it('excludes what a process uses, what is kept, and what another account owns', () => {
    expect(
      statesOf(
        'part =/a 1 1000 4000 4 17 =',
        'part =/b 1 1000 4000 4 - =a\\0040job',
        'part =/c 1 1001 4000 4 - =',
        'part =/d 1 0 4000 4 - =',
        'queue =/e 1 1000 4000 4 - =',
        'new =/f 1 1000 4995 4 - =',
        'other =/g 1 1000 4995 4 - =',
        'part =/h 1 - - 4 - =',
      ),
    ).toEqual([
      ['unfinished copy: /a', 'used', 'process 17 uses it'],
      ['unfinished copy: /b', 'used', 'a job'],
      ['unfinished copy: /c', 'kept', 'it belongs to another account (1001)'],
      ['unfinished copy: /d', 'kept', 'it belongs to root'],
      ['queue: /e', 'kept', 'it is yours'],
      ['unfinished file: /f', 'used', 'it has just changed'],
      ['unfinished copy: /h', 'unknown', 'could not be determined: its owner'],
    ])
  })

  it('is checked again right before, as root if root owns it', () => {
    const answer = read('new =/etc/.muster-new-fstab 1 0 4000 4 - =')
    const [item] = answer === undefined ? [] : leftoversOf(known(answer), KINDS)
    const [step] = item?.state.kind === 'left' ? item.state.steps : []
    expect(step).toMatchObject({
      title: 'remove the unfinished file',
      changes: ['- /etc/.muster-new-fstab'],
      run: { asRoot: true },
    })
    expect(step?.run.script).toContain('held=$(left_holder "$p")')
  })

  it('stays if another account has it by then', () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-left-'))
    const uid = process.getuid?.() ?? 0
    const remove = (owner: number) => {
      const answer = fact.parse(`self ${owner} 5000\npart =${place}/x 1 ${owner} 4000 4 - =\nend`, Buffer.alloc(0))
      const [item] = answer === undefined ? [] : leftoversOf(known(answer), KINDS)
      const [step] = item?.state.kind === 'left' ? item.state.steps : []
      // The parts of the shell itself, which name the file, are no processes that use it.
      return spawnSync('sh', ['-c', `id() { echo ${owner}; }\n${step?.run.script}`], { encoding: 'utf8' })
    }
    writeFileSync(join(place, 'x'), '')
    expect(remove(uid + 1)).toMatchObject({ status: 1, stderr: `${place}/x belongs to another account\n` })
    expect(existsSync(join(place, 'x'))).toBe(true)
    expect(remove(uid)).toMatchObject({ status: 0, stderr: '' })
    expect(existsSync(join(place, 'x'))).toBe(false)
    rmSync(place, { recursive: true })
  })

  it('is reported as unknown if the search was cut', () => {
    expect(statesOf('cut').map(([, state]) => state)).toEqual(['unknown'])
  })
})
