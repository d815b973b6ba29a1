import { describe, expect, it } from 'vitest'
import { sentencesAbout } from '../../../../src/cli/bring-up/jobs-at-stake.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import type { Job } from '../../../../src/scheduler/jobs/job.ts'

const operation = (id: string, kind: 'steps' | 'nothing' = 'steps'): Operation => {
  const [area = '', rest = ''] = id.split('/')
  const verdict =
    kind === 'steps'
      ? ({ kind, state: 'differs', steps: [] } as const)
      : ({ kind, because: 'nothing of it is there' } as const)
  return { id, area, host: rest.split('@')[1] ?? '', title: rest, after: [], verdict }
}
const job = (id: number, kind: 'pending' | 'running', hosts: readonly string[], engine?: 'ray' | 'slurm'): Job =>
  ({
    id,
    spec: { name: `job-${id}`, ...(engine === undefined ? {} : { engine }) },
    state: { kind, places: hosts.map((host) => ({ host, devices: [] })), bundles: [], startedMs: 0 },
  }) as unknown as Job
const ACTIVE = [
  job(1, 'running', ['@ray'], 'ray'),
  job(2, 'pending', ['@ray'], 'ray'),
  job(3, 'running', ['m8', 'm8', 'm9']),
  job(4, 'running', ['m10']),
]
const AREAS = ['trust', 'nfs', 'env', 'ray'].map((name) => ({ name, isUsedByJobs: name === 'nfs' || name === 'env' }))

const told = (...operations: readonly Operation[]) => sentencesAbout({ direction: 'down', operations }, AREAS, ACTIVE)

describe('jobs of the queue that down affects', () => {
  it('are those on Ray when its cluster is stopped', () => {
    expect(told(operation('ray/worker@m8'), operation('ray/head@m10'))).toEqual([
      'job 1 (job-1) runs on Ray, and ends with it',
      'job 2 (job-2) waits in Ray, which ends',
      'to take them out of the queue afterwards: muster job cancel --forget 1-2',
    ])
    expect(told(operation('ray/worker@m8'), operation('ray/head@m10', 'nothing'))).toEqual([
      'job 1 (job-1) runs on Ray, and may run on m8',
      'job 2 (job-2) waits in Ray, and may start on m8',
    ])
  })

  it('are not those that Ray got in a cluster with another head', () => {
    const at = (id: number, address: string) => {
      const one = job(id, 'running', ['@ray'], 'ray')
      return { ...one, state: { ...one.state, places: [{ host: '@ray', devices: [], address }] } } as Job
    }
    const active = [at(6, 'm1 (10.0.0.1:6379)'), at(7, 'm10 (10.0.0.10:6379)')]
    const operations = [operation('ray/worker@m8'), operation('ray/head@m10')]
    expect(sentencesAbout({ direction: 'down', operations }, AREAS, active)).toEqual([
      'job 7 (job-7) runs on Ray, and ends with it',
      'to take them out of the queue afterwards: muster job cancel --forget 7',
    ])
    expect(sentencesAbout({ direction: 'down', operations: operations.slice(0, 1) }, AREAS, active)).toEqual([
      'jobs 6-7 run on Ray, and may run on m8',
    ])
  })

  it('are those on Slurm when its controller is stopped', () => {
    const active = [job(5, 'running', ['@slurm'], 'slurm')]
    const of = (...ids: readonly string[]) =>
      sentencesAbout({ direction: 'down', operations: ids.map((id) => operation(id)) }, AREAS, active)
    expect(of('slurm/node@m8', 'slurm/controller@m10')).toEqual([
      'job 5 (job-5) runs on Slurm, and ends with it',
      'to take them out of the queue afterwards: muster job cancel --forget 5',
    ])
    expect(of('slurm/node@m8')).toEqual(['job 5 (job-5) runs on Slurm, and may run on m8'])
  })

  it('are those on hosts that lose their environment or their mounts', () => {
    expect(told(operation('env/venv@m8'), operation('env/venv@m9'), operation('nfs/mount@m9'))).toEqual([
      'job 3 (job-3) runs on m[8-9], and may use what is removed there (env, nfs)',
    ])
  })

  it('are none if nothing is removed', () => {
    expect(told(operation('ray/head@m10', 'nothing'), operation('trust/keys@m8'))).toEqual([])
  })

  it('share a sentence where they lose the same, and are named up to twenty', () => {
    const same = Array.from({ length: 25 }, (_, index) => job(index + 1 + Number(index === 24), 'running', ['m8']))
    const hosts = Array.from({ length: 25 }, (_, index) => `w${index}`)
    const active = [...same, ...hosts.map((host, index) => job(index + 50, 'running', [host]))]
    const operations = ['m8', ...hosts].map((host) => operation(`env/venv@${host}`))
    const lines = sentencesAbout({ direction: 'down', operations }, AREAS, active)
    expect(lines[0]).toBe('jobs 1-24,26 run on m8, and may use what is removed there (env)')
    expect(lines).toHaveLength(21)
    expect(lines.at(-1)).toBe('more jobs run there: muster job list')
  })
})
