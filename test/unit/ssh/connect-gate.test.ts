import { describe, expect, it } from 'vitest'
import { ConnectGate } from '../../../src/ssh/connect-gate.ts'

const enterAll = (gate: ConnectGate, names: readonly string[]) => {
  const started: string[] = []
  const leases = names.map((name) => gate.enter(() => started.push(name)))
  return { started, leases }
}

describe('the connect gate', () => {
  it('admits up to its limit, and the next one when one leaves', () => {
    const { started, leases } = enterAll(new ConnectGate(2), ['a', 'b', 'c', 'd'])
    expect(started).toEqual(['a', 'b'])
    leases[1]?.release()
    expect(started).toEqual(['a', 'b', 'c'])
    leases[1]?.release()
    expect(started).toEqual(['a', 'b', 'c'])
  })

  it('never admits one that gave up while it waited', () => {
    const { started, leases } = enterAll(new ConnectGate(1), ['a', 'b', 'c'])
    leases[1]?.release()
    leases[0]?.release()
    expect(started).toEqual(['a', 'c'])
  })

  it('lends a slot to another, and counts it again when it is taken back', () => {
    const { started, leases } = enterAll(new ConnectGate(1), ['a', 'b', 'c'])
    leases[0]?.lend()
    expect(started).toEqual(['a', 'b'])
    leases[0]?.takeBack()
    leases[1]?.release()
    expect(started).toEqual(['a', 'b'])
    leases[0]?.release()
    expect(started).toEqual(['a', 'b', 'c'])
  })
})
