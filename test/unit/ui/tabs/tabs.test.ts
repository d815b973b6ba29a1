import { describe, expect, it } from 'vitest'
import { HOSTS as bringUpHosts } from '../../../../src/ui/bring-up/bring-up-table.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { headerBars } from '../../../../src/ui/console/header.ts'
import { CLUSTER, LIST, RANKS, RESULTS, TRIALS } from '../../../../src/ui/jobs/jobs-tables.ts'
import { actionSpecs } from '../../../../src/ui/keys/registry.ts'
import { PROCESSES } from '../../../../src/ui/network/process-table.ts'
import { RESULTS as NETWORK_RESULTS } from '../../../../src/ui/network/results-table.ts'
import { HOSTS as networkHosts } from '../../../../src/ui/network/watch-columns.ts'
import { JOBS as PACKED_JOBS, HOSTS as packingHosts, WAITING } from '../../../../src/ui/packing/packing-input.ts'
import { TABS } from '../../../../src/ui/state/console-state.ts'
import { type ConsoleHarness, createConsoleHarness } from '../console/console-harness.ts'

const LEADER = '\x1d'
const header = ({ console }: ConsoleHarness): string => {
  const { left, right } = headerBars(console.state, themes.none, console.arrangement)
  return [...left, ...right].map(({ text }) => text).join('')
}

it('have tables of their own, each with its own filter', () => {
  const ids = [
    ...[bringUpHosts, networkHosts, PROCESSES, NETWORK_RESULTS],
    ...[packingHosts, WAITING, PACKED_JOBS, LIST, RESULTS, TRIALS, CLUSTER, RANKS],
  ]
  expect(new Set(ids).size).toBe(ids.length)
})

describe('tabs', () => {
  it('have the keys that the table of actions gives them', () => {
    const keys = TABS.map(({ id }) => actionSpecs.find((spec) => spec.id === `tab-${id}`)?.keys[0])
    expect(keys).toEqual(TABS.map(({ key }) => key))
  })

  it('open by their number where keys do not go to hosts, and with the leader everywhere', () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    harness.type('6')
    expect([harness.console.state.tab, harness.fleet.received.get('m1')]).toEqual(['shells', '6'])
    harness.type(`${LEADER}6`)
    expect(harness.console.state.tab).toBe('log')
    expect(header(harness)).toContain('LOG · hosts get no keys')
    harness.type('x1')
    expect(harness.console.state.tab).toBe('shells')
    harness.clock.advance(500)
    expect(header(harness)).toContain('TYPING INTO ALL 2: m[1-2]')
    expect(harness.fleet.received.get('m1')).toBe('6')
  })

  it('have one page each, and its keys reach no host', () => {
    const harness = createConsoleHarness({ hosts: ['m1'] })
    harness.type(`${LEADER}6jk`)
    expect(harness.fleet.received.get('m1')).toBeUndefined()
  })
})
