/** A temporary directory on a host, in each kind of sh. */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HOST_TEMPORARY } from '../../../src/base/host-temporary.ts'
import { findProgram } from '../../support/requirements.ts'

const SHELLS = [
  ['dash', []],
  ['bash', []],
  ['bash', ['--posix']],
  ['busybox', ['sh']],
  ['zsh', ['--emulate', 'sh']],
] as const
const isRoot = process.getuid?.() === 0
const NOBODY = 65_534

describe.each(
  SHELLS.filter(([name]) => findProgram(name) !== undefined),
)('a temporary directory of %s %s', (shell, words) => {
  let base: string
  let place: string
  beforeEach(() => {
    base = realpathSync(mkdtempSync(join(tmpdir(), 'muster-host-temporary-')))
    place = join(base, 'a * b')
    mkdirSync(place, { mode: 0o700 })
  })
  afterEach(() => rmSync(base, { recursive: true }))

  const make = (path: string) => {
    const script = `${HOST_TEMPORARY.join('; ')}; d=$(temporary "$1") || exit; echo "$d"`
    const { stdout, stderr, status } = spawnSync(shell, [...words, '-c', script, 'sh', path], { encoding: 'utf8' })
    return { made: stdout.trim(), said: stderr, status }
  }

  it.each([
    0o700, 0o755, 0o1777, 0o1775, 0o3775,
  ])('is made in a place where others can replace nothing (%o)', (mode) => {
    chmodSync(place, mode)
    const { made, said, status } = make(place)
    expect([dirname(made), said, status]).toEqual([place, '', 0])
    expect(readdirSync(place)).toHaveLength(1)
  })

  it.each([0o777, 0o2777, 0o757])('is refused where every account can rename it (%o)', (mode) => {
    chmodSync(place, mode)
    const { made, said, status } = make(place)
    expect([made, status]).toEqual(['', 1])
    expect(said).toBe(
      `muster: other accounts can replace files in ${place}. Set TMPDIR to a directory of your own, or run: chmod +t ${place}\n`,
    )
    expect(readdirSync(place)).toEqual([])
  })

  it('is refused where others can rename a directory above it, also behind a link', () => {
    const inner = join(place, 'inner')
    mkdirSync(inner, { mode: 0o700 })
    symlinkSync(inner, join(base, 'link'))
    chmodSync(place, 0o777)
    for (const path of [inner, join(base, 'link')]) {
      expect(make(path).said).toContain(`other accounts can replace files in ${place}. `)
    }
    expect(readdirSync(inner)).toEqual([])
  })

  it.runIf(isRoot).each([0o775, 0o2775])('is refused where members of another group can rename it (%o)', (mode) => {
    chownSync(place, 0, NOBODY)
    chmodSync(place, mode)
    expect(make(place)).toMatchObject({ made: '', status: 1, said: expect.stringContaining('other accounts can') })
  })

  it.runIf(isRoot)('is made in a directory of the group that the account has alone', () => {
    chmodSync(place, 0o775)
    expect(make(place)).toMatchObject({ said: '', status: 0 })
  })

  it.runIf(isRoot)('is refused in a directory of another account', () => {
    chownSync(place, NOBODY, NOBODY)
    expect(make(place)).toMatchObject({
      made: '',
      said: `muster: ${place} belongs to another account. Set TMPDIR to a directory of your own.\n`,
    })
  })

  it('says what to do where there is no place', () => {
    const { said, status } = make(join(base, 'none'))
    expect(status).toBe(1)
    expect(said.split('\n').at(-2)).toBe(
      `muster: cannot make a temporary directory in ${join(base, 'none')}. Set TMPDIR to a directory of your own that has room.`,
    )
  })
})
