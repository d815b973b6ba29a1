import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { TERMINAL } from '../../../../src/cli/output/table.ts'
import { formatRay, formatRayJson } from '../../../../src/cli/pack/ray.ts'
import { parseClusterUsage } from '../../../../src/ops/ray/usage.ts'

const read = (name: string): string => readFileSync(join(import.meta.dirname, '../../../fixtures/ray', name), 'utf8')
const usage = parseClusterUsage({
  nodes: JSON.parse(read('nodes-summary-2.58.json')),
  groups: JSON.parse(read('placement-groups-2.58.json')),
  actors: { data: { result: { result: [{ state: 'ALIVE' }, { state: 'DEAD' }] } } },
  status: { data: { clusterStatus: read('status-v2.txt') } },
})
const NAMES = new Map([
  ['10.77.0.11', 'm10'],
  ['10.77.0.12', 'm8'],
])

describe('what Ray has placed', () => {
  it('is shown as nodes with letters of placement groups, the jobs they belong to, and what waits', () => {
    if (usage === undefined) throw new Error('the fixture is no answer')
    const lines = formatRay(usage, NAMES, ({ name }) => (name === 'keep' ? 17 : undefined), TERMINAL).split('\n')
    expect(lines).toEqual([
      'RAY NODE  GPUS                   CORES             MEMORY                       OF',
      'm10       [········]             ████████████ 4/4  ············ 0 B / 22.6 GiB  B*',
      'm8        [BBBB····] [········]  ███████████· 7/8  ············ 0 B / 22.4 GiB  B*',
      'dead: 10.77.0.13',
      'A placement group pending_pg pending (infeasible: no node has 9 GPU): #0 (9 GPU), #1 (1 GPU) nowhere',
      'B job 17: placement group keep created: #0 (0.5 GPU, 1 CPU) on m8; #1 (1 special_res, 1 CPU) on m10',
      '* tasks and actors in no placement group',
      'actors alive: 1',
      "waits: {'CPU': 3.0}: 6+ pending tasks/actors",
      '',
    ])
  })

  it('is the same in JSON, with the host of each bundle', () => {
    if (usage === undefined) throw new Error('the fixture is no answer')
    const lines = formatRayJson(usage, NAMES, () => undefined)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; name: string })
    expect(lines.map(({ type, name }) => `${type} ${name}`)).toEqual([
      'node m10',
      'node m8',
      'group pending_pg',
      'group keep',
    ])
    expect(lines[1]).toMatchObject({ isHead: false, cpuUsedMilli: 7000, cpuMilli: 8000, gpuUsedMilli: 500 })
    expect(lines[2]).toMatchObject({ state: 'PENDING', bundles: [{ index: 0, host: null }, { host: null }] })
    expect(lines[3]).toMatchObject({
      state: 'CREATED',
      job: null,
      bundles: [
        { index: 0, host: 'm8', resources: { CPU: 1, GPU: 0.5 } },
        { index: 1, host: 'm10', resources: { CPU: 1, special_res: 1 } },
      ],
    })
  })
})
