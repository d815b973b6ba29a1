/** A job goes to Slurm once, wherever the scheduler is killed. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Lab } from '../cluster/lab.ts'
import { SLURM_PROGRAMS, type SlurmLab } from '../cluster/slurm-lab.ts'
import type { LabQueue } from '../jobs/lab-queue.ts'
import { slurmQueue } from './slurm-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', ...SLURM_PROGRAMS)

const PLACE = '.local/state/muster/jobs'
/** Stands in for a program of Slurm: before and after it, it waits to be killed where the test says so, but not in a job. */
const STEPPING = (name: string) => `#!/bin/sh
step() {
  [ -z "$SLURM_JOB_ID" ] || return 0
  read -r at < /root/steps/at 2> /dev/null && [ "$at" = "$1" ] || return 0
  rm /root/steps/at
  echo "$1" > /root/steps/reached
  while :; do sleep 1; done
}
step before-${name}
/usr/bin/${name} "$@"
code=$?
step after-${name}
exit $code
`

describe.skipIf(!canRun)('a scheduler that is killed while it speaks to Slurm', { timeout: 240_000 }, () => {
  let lab: Lab
  let slurm: SlurmLab
  let queue: LabQueue

  const submit = async (): Promise<string> =>
    await queue.submit('--engine', 'slurm', '--', 'echo $MUSTER_JOB $SLURM_JOB_ID >> /root/ran; exit 6')
  const stepAt = async (step: string) =>
    await slurm.run(`rm -f steps/reached; echo ${step} > steps/at.new; mv steps/at.new steps/at`)
  const isReached = async () => (await slurm.controller.exec('test -e steps/reached')).code === 0
  const timesRan = async (id: string): Promise<number> => {
    const text = await slurm.run('cat /root/ran 2>/dev/null || :')
    return text.split('\n').filter((line) => line.startsWith(`${id} `)).length
  }

  beforeAll(async () => {
    ;({ lab, slurm, queue } = await slurmQueue({
      section: 'slurm: { login: c1, partition: main, bin: /root/steps }\n',
    }))
    await slurm.run('mkdir steps')
    for (const name of ['flock', 'squeue', 'sbatch', 'scancel'])
      await slurm.run(`cat > steps/${name} << 'PROGRAM'\n${STEPPING(name)}PROGRAM\nchmod 755 steps/${name}`)
  })
  afterEach(async () => {
    await queue?.stop()
  })
  afterAll(async () => {
    await lab?.stop()
  })

  it.each([
    'before-flock',
    'after-flock',
    'before-squeue',
    'after-squeue',
    'before-sbatch',
    'after-sbatch',
  ])('killed %s, it hands the job over once', async (step) => {
    const id = await submit()
    await stepAt(step)
    queue.work()
    await waitUntil(isReached, `the scheduler to be ${step}`, 60_000)
    await queue.stop()
    await queue.work().ended
    expect(await queue.find(id)).toMatchObject({ state: 'failed', attempt: 1, reason: 'exit 6' })
    expect(await timesRan(id)).toBe(1)
  })

  it('reads how the job ended later if it is killed while it reads', async () => {
    const id = await submit()
    queue.work()
    await waitUntil(async () => (await timesRan(id)) === 1, 'the job to run', 60_000)
    await stepAt('after-squeue')
    // It may have read the end before.
    await waitUntil(async () => (await isReached()) || (await queue.find(id)).state === 'failed', 'its end', 60_000)
    await queue.stop()
    await slurm.run('rm -f steps/at')
    await queue.work().ended
    expect(await queue.find(id)).toMatchObject({ state: 'failed', attempt: 1, reason: 'exit 6' })
    expect(await timesRan(id)).toBe(1)
  })

  it('cancels the job later if it is killed while it cancels', async () => {
    const id = await queue.submit('--engine', 'slurm', '--', 'sleep 300')
    queue.work()
    await waitUntil(async () => (await queue.find(id)).state === 'running', 'the job to run', 60_000)
    await stepAt('before-scancel')
    await queue.job('cancel', id)
    await waitUntil(isReached, 'the scheduler to cancel', 60_000)
    await queue.stop()
    await queue.work().ended
    expect(await queue.find(id)).toMatchObject({ state: 'cancelled' })
    expect((await slurm.run('squeue -h')).trim()).toBe('')
  })

  it('does nothing twice if the same submission arrives late and again', async () => {
    const id = await submit()
    await stepAt('before-sbatch')
    queue.work()
    await waitUntil(isReached, 'the scheduler to submit', 60_000)
    await queue.stop()
    const late = `cd ${PLACE}/*-${id}-1-0-* && for n in 1 2 3; do sbatch --parsable --job-name="$(basename "$PWD")" --output=out script; done`
    const ids = (await slurm.run(late)).trim().split('\n')
    expect(ids).toHaveLength(3)
    await queue.work().ended
    await waitUntil(async () => (await slurm.run('squeue -h')).trim() === '', 'all of them to end', 60_000)
    expect(await queue.find(id)).toMatchObject({ state: 'failed', attempt: 1, reason: 'exit 6' })
    expect(await timesRan(id)).toBe(1)
  })

  it('does not start what was cancelled before it arrives', async () => {
    const id = await submit()
    await stepAt('before-sbatch')
    queue.work()
    await waitUntil(isReached, 'the scheduler to submit', 60_000)
    await queue.stop()
    await queue.job('cancel', id)
    await queue.work().ended
    expect((await queue.find(id)).state).toBe('cancelled')
    await slurm.run(`cd ${PLACE}/*-${id}-1-0-* && sbatch --wait --job-name="$(basename "$PWD")" --output=out script`)
    expect(await timesRan(id)).toBe(0)
  })
})
