/** Why facts are unknown. */
import { expect, it } from 'vitest'
import { type Fact, gatherFacts } from '../../../../src/ops/kernel/fact.ts'
import { MOST_STDOUT_BYTES, type OpsHosts, type ScriptResult } from '../../../../src/ops/kernel/host-port.ts'

const text: Fact<unknown> = { script: ':', parse: (said) => said }
const facts = { first: text, second: text, beside: { ...text, mayHang: true }, third: text }
const BEGINNING = '\nmark f0 0\none\n\nmark s0 0\n\nmark f1 0\n'
const LONG = BEGINNING + 'x'.repeat(MOST_STDOUT_BYTES - BEGINNING.length)
const LATE = 'it did not answer in time'
const LONG_ANSWER = 'it printed more than 1.0 MiB, and was cut off'

/** Why `second`, `beside` and `third` are unknown, and how often the host was asked. */
async function reasonsOf(result: Partial<Omit<ScriptResult, 'stdout'>>, stdout = BEGINNING) {
  let asked = 0
  const hosts: OpsHosts = {
    async exec() {
      asked += 1
      const exit = { kind: 'exit', code: 0 } as const
      return { outcome: exit, stderr: Buffer.alloc(0), durationMs: 400, ...result, stdout: Buffer.from(stdout) }
    },
  }
  const options = { signal: new AbortController().signal, mark: 'mark', now: () => 7 }
  const gathered = await gatherFacts(hosts, 'm1', facts, options)
  if (gathered.kind !== 'facts') throw new Error(gathered.reason)
  const { first, second, beside, third } = gathered.facts.facts
  expect(first).toEqual({ kind: 'known', value: 'one' })
  return [second, beside, third, asked].map((fact) => (typeof fact === 'object' ? Object.values(fact)[1] : fact))
}

it('names the time limit only if time has passed', async () => {
  const incomplete = 'its answer is incomplete'
  expect(await reasonsOf({ outcome: { kind: 'timeout' } })).toEqual([LATE, LATE, LATE, 1])
  expect(await reasonsOf({ durationMs: 3000 })).toEqual([LATE, LATE, LATE, 1])
  expect(await reasonsOf({})).toEqual([incomplete, incomplete, incomplete, 1])
  const killed = `${incomplete} (SIGKILL)`
  expect(await reasonsOf({ outcome: { kind: 'signal', signal: 'SIGKILL' } })).toEqual([killed, killed, killed, 1])
})

it('asks a host that prints without end only once more', async () => {
  // The second answer has the same form, for the facts that are asked again: `third` is the first of them.
  expect(await reasonsOf({}, LONG)).toEqual([LONG_ANSWER, 'its answer is incomplete', 'one', 2])
  expect((await reasonsOf({}, LONG.replace('f1 0', 'f3 0')))[3]).toBe(1)
})
