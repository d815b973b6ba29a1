/** What a slurmctld that is about to restart says of jobs that came after the plan, beside programs that answer as those of Slurm do. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { refuseLoss } from '../../../../src/ops/slurm/daemons.ts'
import { writeProgram } from '../../../support/program.ts'

let bin: string
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'muster-refuse-'))
  // `n[1-2]` and names that stand for themselves.
  writeProgram(join(bin, 'scontrol'), 'case $3 in "n[1-2]") echo n1; echo n2;; *) echo "$3";; esac')
})
afterEach(() => rmSync(bin, { recursive: true }))

function refuse(queue: string) {
  writeProgram(join(bin, 'squeue'), queue)
  const script = `fail() { echo "$*" >&2; exit 1; }\n${refuseLoss({ partition: 'main', nodes: ['n1', 'n2'] })}echo goes on`
  const env = { PATH: `${bin}:/usr/bin:/bin` }
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { env, encoding: 'utf8' })
  return [status, stdout + stderr]
}

it.each([
  ['runs on a node that leaves', '13|main|n3|'],
  ['runs on a node that leaves, too', '13|main|n[1-2] n3|'],
  ['waits for a node that leaves', '13|main||n3'],
  ['is in a partition that goes', '13|other|n1|'],
])('names a job that %s', (_, line) => {
  expect(refuse(`echo '12|main|n[1-2]|'; echo '${line}'`)).toEqual([
    1,
    'jobs that came after the plan would be lost: 13 - run muster up slurm again to see why\n',
  ])
})

it('goes on with jobs that stay, without any, and where squeue does not answer', () => {
  expect(refuse("echo '12|main|n[1-2]|'; echo '13|main||'; echo '14|main||n1'")).toEqual([0, 'goes on\n'])
  expect(refuse('exit 1')).toEqual([0, 'goes on\n'])
})
