import { expect, it } from 'vitest'
import { Faults } from '../../../../src/ui/console/faults.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

function plantFaults() {
  const clock = new ManualClock()
  const logged: string[] = []
  const noticed: string[] = []
  const context = {
    log: (_host: string, text: string) => void logged.push(text),
    notice: (text: string) => void noticed.push(text),
  }
  return { clock, logged, noticed, faults: new Faults(context, clock) }
}

it('names an error once, and no more of them than a Log can hold', () => {
  const { logged, noticed, faults } = plantFaults()
  const error = new Error('the same')
  for (let count = 0; count < 5; count++) faults.note(error)
  expect(logged).toHaveLength(1)
  expect(noticed).toHaveLength(5)
  for (let count = 0; count < 10_000; count++) faults.note(`error ${count}`)
  expect(logged).toHaveLength(100)
})

it('gives up after more than 10 uncaught errors within 10 seconds', () => {
  const { clock, faults } = plantFaults()
  for (let count = 0; count < 100; count++) {
    expect(faults.noteUncaught(new Error('now and then'))).toBe(true)
    clock.advance(1_000)
  }
  const usable = Array.from({ length: 20 }, () => faults.noteUncaught(new Error('often')))
  expect(usable.at(0)).toBe(true)
  expect(usable.at(-1)).toBe(false)
})
