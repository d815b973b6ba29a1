import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { TERMINAL } from '../../../../src/cli/output/table.ts'
import { formatUsage } from '../../../../src/cli/ray/watch.ts'
import { parseClusterUsage, parseDemands, parseNodeUsages } from '../../../../src/ops/ray/usage.ts'

const read = (name: string): string => readFileSync(join(import.meta.dirname, '../../../fixtures/ray', name), 'utf8')
/** What the dashboard of one cluster said, with each of Ray's autoscalers. */
const bodies = (autoscaler: 'v1' | 'v2') => JSON.parse(read(`usage-2.58-autoscaler-${autoscaler}.json`))
const usage = parseClusterUsage({
  nodes: JSON.parse(read('nodes-summary-2.58.json')),
  groups: JSON.parse(read('placement-groups-2.58.json')),
  actors: { data: { result: { result: [{ state: 'ALIVE' }, { state: 'DEAD' }, { state: 'ALIVE' }] } } },
  status: { data: { clusterStatus: read('status-v2.txt') } },
})

describe('the state of a cluster', () => {
  it('is shown by node, with what waits and why', () => {
    if (usage === undefined) throw new Error('the fixture is no answer')
    expect(formatUsage(usage, new Map([['10.77.0.11', 'm10']]), TERMINAL).split('\n')).toEqual([
      'NODE        CPU  GPU    MEMORY        SPECIAL_RES  OBJECTS       BUSY  USED MEMORY',
      'm10 (head)  4/4  0/1    0 B/22.6 GiB  1/2          0 B/95.4 MiB  26 %  1.5 GiB/23.5 GiB',
      '10.77.0.12  7/8  0.5/2  0 B/22.4 GiB               0 B/95.4 MiB  41 %  1.6 GiB/23.5 GiB',
      'dead: 10.77.0.13: Unexpected termination: health check failed due to missing too many heartbeats',
      'placement group pending_pg pending (infeasible: no node has 9 GPU): #0 (9 GPU), #1 (1 GPU) nowhere',
      'placement group keep created: #0 (0.5 GPU, 1 CPU) on 10.77.0.12; #1 (1 special_res, 1 CPU) on m10 (head)',
      'actors alive: 2',
      "waits: {'CPU': 3.0}: 6+ pending tasks/actors",
      "waits: {'GPU': 9.0} * 1, {'GPU': 1.0} * 1 (SPREAD): 1+ pending placement groups",
      '',
    ])
  })

  it('counts what placement groups hold as used, whether or not anything runs in them', () => {
    const text = `Total Usage:
 1.0/4.0 CPU (0.0 used of 1.0 reserved in placement groups)
 1.5/8.0 GPU (0.5 used of 2.0 reserved in placement groups)
 1.00GiB/8.00GiB memory (0B used of 512.00MiB reserved in placement groups)
 0.0/2.0 scratch`
    const summary = [{ raylet: { nodeId: 'a', state: 'ALIVE' } }]
    const [node] = parseNodeUsages({ data: { summary, nodeLogicalResources: { a: text } } })
    expect(Object.fromEntries(node?.logical ?? [])).toEqual({
      CPU: { used: 2, total: 4 },
      GPU: { used: 3, total: 8 },
      memory: { used: 1.5 * 1024 ** 3, total: 8 * 1024 ** 3 },
      scratch: { used: 0, total: 2 },
    })
  })

  it('is the same with both autoscalers', () => {
    const [one = [], other = []] = (['v1', 'v2'] as const).map((autoscaler) => {
      const found = parseClusterUsage(bodies(autoscaler))
      if (found === undefined) throw new Error('the fixture is no answer')
      // The order of groups and resources is nobody's promise, and the load went on.
      const text = formatUsage(found, new Map([['10.77.0.11', 'm10']]), TERMINAL).replaceAll(/ \d+ %/g, ' n %')
      return text.replace('1 CPU, 0.5 GPU', '0.5 GPU, 1 CPU').split('\n').toSorted()
    })
    expect(one).toEqual(other)
    expect(one).toContain('actors alive: 1')
    expect(one.filter((line) => line.startsWith('placement group '))).toHaveLength(2)
    expect(one.filter((line) => line.startsWith('waits: '))).toHaveLength(2)
    expect(one.filter((line) => /^(m10|10\.77)/.test(line))).toHaveLength(2)
  })

  it('has the same pending requests with both autoscalers, and none if nothing waits', () => {
    expect(parseDemands(read('status-v1.txt'))).toEqual(parseDemands(read('status-v2.txt')))
    expect(parseDemands('Resources\nDemands:\n (no resource demands)\n')).toEqual([])
    expect(parseDemands('')).toEqual([])
  })

  it('is read as far as it is reported', () => {
    expect(parseClusterUsage(undefined)).toBeUndefined()
    expect(parseClusterUsage({ error: 'refused' })).toBeUndefined()
    const odd = { nodes: { data: { summary: [{ raylet: { nodeId: 'a', state: 'ALIVE' }, mem: 'x' }, 7] } }, groups: [] }
    expect(parseClusterUsage(odd)).toMatchObject({ nodes: [{ id: 'a', isAlive: true, gpuPercents: [] }], groups: [] })
  })
})
