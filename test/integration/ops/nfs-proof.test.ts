/** What root writes to prove that an NFS mount works, where another account moves its directory meanwhile. */
import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { writeScript } from '../../../src/ops/nfs/verify.ts'
import { writeProgram } from '../../support/program.ts'

let base: string
let share: string
let other: string
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'muster-nfs-proof-')))
  share = join(base, "it's")
  other = join(base, 'other')
  for (const each of [share, other]) mkdirSync(each, { mode: 0o700 })
  writeFileSync(join(other, 'host'), 'mine', { mode: 0o600 })
})
afterEach(() => rmSync(base, { recursive: true }))

const write = () =>
  spawnSync('/bin/sh', ['-c', writeScript(share, 'm1')], {
    env: { PATH: `${join(base, 'programs')}:${process.env.PATH}` },
    encoding: 'utf8',
  })
/** `swap`: what the other account does right after the directory was made. */
const swapped = (swap: string) =>
  writeProgram(
    join(base, 'programs', 'mktemp'),
    `PATH=\${PATH#*:}; d=$(mktemp "$@"); mv "$d" "$d.moved"; ${swap}; echo "$d"`,
  )
const modeOf = (path: string) => statSync(path).mode & 0o777

it('writes files that the other hosts can read', () => {
  const { stdout, stderr } = write()
  expect(stdout).toMatch(/^\.muster-proof-\S+ \d+ bytes .*\nsmall 3 bytes .*\n$/)
  expect(stderr).toBe('')
  const proof = join(share, readdirSync(share)[0] ?? '')
  expect(readFileSync(join(proof, 'host'), 'utf8')).toBe('m1\n')
  expect([modeOf(proof), modeOf(join(proof, 'host'))]).toEqual([0o755, 0o644])
})

it.each([
  ['a link', 'ln -s "$0.other" "$d"', 'another account has replaced'],
  ['a directory with links', 'mkdir "$d"; ln -s "$0.other/host" "$d/host"', 'host'],
])('writes to nothing else through %s in its place', (_, swap, reason) => {
  swapped(swap.replaceAll('$0.other', other))
  const { status, stdout, stderr } = write()
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toContain(reason)
  expect(readdirSync(other)).toEqual(['host'])
  expect(readFileSync(join(other, 'host'), 'utf8')).toBe('mine')
  expect([modeOf(other), modeOf(join(other, 'host'))]).toEqual([0o700, 0o600])
})
