import { describe, expect, it } from 'vitest'
import { knownDashboards } from '../../../../src/cli/forward/known-dashboards.ts'
import type { Inventory } from '../../../../src/inventory/inventory.ts'
import type { Job } from '../../../../src/scheduler/jobs/job.ts'

const inventory: Inventory = { hosts: [], groups: new Map(), sections: new Map() } as never

const running = (id: number, command: string, host = 'm1'): Job =>
  ({ id, spec: { command }, state: { kind: 'running', places: [{ host }] } }) as never

describe('dashboards of running jobs', () => {
  it.each([
    ['tensorboard --logdir runs', 'tensorboard', 6006],
    ['/opt/venv/bin/tensorboard --logdir runs --port=7006', 'tensorboard', 7006],
    ['python -m tensorboard.main --port 7007', 'tensorboard', 7007],
    ['jupyter lab --no-browser --port 9999', 'jupyter', 9999],
    ['optuna-dashboard sqlite:///db.sqlite3 --port $PORT', 'optuna', 8080],
    ['python train.py --tensorboard-dir x', undefined, 0],
    ['jupyter lab --port 99999', 'jupyter', 8888],
  ])('%s', (command, name, port) => {
    const found = knownDashboards(inventory, [running(7, command)])
    const expected = { name, host: 'm1', at: { address: 'localhost', port }, source: 'job 7' }
    expect(found).toEqual(name === undefined ? [] : [expected])
  })

  it('names the newest job first, and no job that waits, or that an engine runs', () => {
    const waiting = { ...running(3, 'jupyter lab'), state: { kind: 'queued' } } as Job
    const { spec, ...job } = running(4, 'jupyter lab', '@slurm')
    const ofEngine = { ...job, spec: { ...spec, engine: 'slurm' } }
    const jobs = [running(1, 'jupyter lab'), running(2, 'jupyter lab', 'm2'), waiting, ofEngine]
    const found = knownDashboards(inventory, jobs)
    expect(found.map(({ source }) => source)).toEqual(['job 2', 'job 1'])
  })
})
