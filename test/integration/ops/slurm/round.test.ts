/** The program of a round with Slurm, run by a real shell beside programs that answer as those of Slurm do at some sites. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { parseRound, roundProgram } from '../../../../src/ops/slurm/job-engine.ts'
import { writeProgram } from '../../../support/program.ts'

const KEY = 'abc-1-1-0'
const SLURM = { login: 'c1', partition: 'main', coreMemoryBytes: 2 ** 30, options: [], directory: 'jobs' }

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-round-'))
  for (const folder of ['bin', `jobs/${KEY}`]) mkdirSync(join(home, folder), { recursive: true })
  for (const name of ['sbatch', 'scancel', 'squeue']) program(name, ':')
})
afterEach(() => rmSync(home, { recursive: true }))

function program(name: string, script: string): void {
  writeProgram(join(home, 'bin', name), script)
}

function reported(): unknown {
  const orders = [{ kind: 'check', key: KEY }] as const
  const env = { HOME: home, PATH: `${home}/bin:/usr/bin:/bin` }
  const text = execFileSync('sh', ['-c', roundProgram(SLURM, orders)], { cwd: home, env, stdio: ['ignore', 'pipe', 2] })
  const { reports, trouble } = parseRound(orders, text.toString())
  return trouble ?? reports.get(KEY)
}

const shown = (id: string, name: string, state: string) =>
  `[ "$*" = '--oneliner show job ${id}' ] && echo 'JobId=${id} JobName=${name} UserId=ann(7) JobState=${state} Reason=None'`

it.each([
  ['claim', '7', 'PENDING'],
  ['claim', '7', 'RUNNING'],
  ['slurm-id', '7', 'SUSPENDED'],
  ['slurm-id', '7;cluster', 'COMPLETING'],
])('does not take a job with a %s of %s for lost that squeue does not list, but scontrol as %s', (file, id, state) => {
  writeFileSync(join(home, 'jobs', KEY, file), `${id}\n`)
  program('scontrol', shown('7', KEY, state))
  expect(reported()).toBeUndefined()
})

it.each([
  ['claim', shown('7', KEY, 'COMPLETED'), 'lost'],
  ['claim', shown('7', 'other', 'RUNNING'), 'lost'],
  ['claim', 'echo slurm_load_jobs error: Invalid job id specified >&2; exit 1', 'lost'],
  ['slurm-id', 'exit 1', 'forgotten'],
])('knows by a %s what became of a job that neither lists: %s', (file, scontrol, report) => {
  writeFileSync(join(home, 'jobs', KEY, file), '7\n')
  program('scontrol', scontrol)
  expect(reported()).toBe(report)
})

it('knows from its own note how a job ended that squeue no longer lists', () => {
  writeFileSync(join(home, 'jobs', KEY, 'claim'), '7\n')
  writeFileSync(join(home, 'jobs', KEY, 'end'), 'exit 3\n')
  program('scontrol', shown('7', KEY, 'RUNNING'))
  expect(reported()).toEqual({ kind: 'exit', code: 3 })
})
