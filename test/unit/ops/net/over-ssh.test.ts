/** A link measured through ssh: runs of stand-in hosts with known rates, and what is made of them. */
import { expect, it } from 'vitest'
import { measureOverSsh } from '../../../../src/ops/net/mesh/over-ssh.ts'
import { type Answer, StandInHosts } from '../kernel/stand-in-hosts.ts'

const measure = async (seconds: number, answers: readonly Answer[], hasOther = true) => {
  const left = [...answers]
  const hosts = new StandInHosts(() => left.shift() ?? { stdout: 'arrived 0\n' })
  const outcome = await measureOverSsh(
    { from: 'm1', to: 'm2' },
    { user: 'ann', address: '10.0.0.2', port: 22 },
    { seconds, streams: 1, ...(hasOther ? {} : { tool: 'ssh' }) },
    { hosts, signal: new AbortController().signal },
  )
  return { outcome, runs: hosts.ran.length }
}

/** What one run prints whose parts had these rates. */
const mbit = (seconds: number, ...rates: readonly number[]): Answer => ({
  stdout: rates.map((rate) => `arrived ${(rate * 1e6 * seconds) / 8}\n`).join(''),
})

it('repeats short runs until the two fastest agree, because a disturbance only makes a run slower', async () => {
  expect(
    await measure(
      1,
      [6, 88, 115, 200, 190].map((rate) => mbit(1, rate)),
    ),
  ).toEqual({
    outcome: { kind: 'measured', tool: 'ssh', bitsPerSecond: 195e6 },
    runs: 5,
  })
})

it('gives no rate when short runs do not agree', async () => {
  expect(
    await measure(
      1,
      [6, 88, 115, 200, 20].map((rate) => mbit(1, rate)),
    ),
  ).toEqual({
    outcome: {
      kind: 'failed',
      cause: 'unsteady',
      reason:
        'its rate over ssh varies too much: 5 runs of 1 s gave 6 Mbit/s to 200 Mbit/s. Run: muster net mesh --time 10, or with --install',
    },
    runs: 5,
  })
})

it('needs one run if that is long enough for two parts that agree', async () => {
  expect(await measure(5, [{ stdout: `${mbit(2, 200).stdout}${mbit(3, 190).stdout}` }])).toEqual({
    outcome: { kind: 'measured', tool: 'ssh', bitsPerSecond: 195e6 },
    runs: 1,
  })
})

it('names the command that lets hosts log in to each other', async () => {
  const denied: Answer = { outcome: { kind: 'exit', code: 255 }, stderr: 'Permission denied (publickey).\n' }
  const reason = 'm1 cannot log in to m2: Permission denied (publickey). (exit 255). Run: muster up trust'
  expect((await measure(1, [denied], false)).outcome).toEqual({ kind: 'failed', cause: 'no-tool', reason })
  expect((await measure(1, [denied])).outcome).toEqual({
    kind: 'failed',
    cause: 'no-tool',
    reason: `${reason}, or measure with --install`,
  })
})

it('does not suggest trust if the host has no ssh', async () => {
  const missing: Answer = { outcome: { kind: 'exit', code: 127 }, stderr: 'sh: ssh: not found\n' }
  expect((await measure(1, [missing])).outcome).toEqual({
    kind: 'failed',
    cause: 'no-tool',
    reason: 'm1 cannot log in to m2: sh: ssh: not found (exit 127)',
  })
})

it('says what failed after a successful login', async () => {
  const missing: Answer = { outcome: { kind: 'exit', code: 0 }, stdout: 'arrived 0\n', stderr: 'timeout: not found\n' }
  expect((await measure(1, [missing])).outcome).toEqual({
    kind: 'failed',
    cause: 'broken',
    reason: 'nothing arrived over ssh: timeout: not found (exit 0)',
  })
})

it('stops at the run in which a host is lost', async () => {
  const lost: Answer = { outcome: { kind: 'unreachable', reason: 'timed out' } }
  expect(await measure(1, [mbit(1, 6), lost])).toEqual({
    outcome: { kind: 'failed', cause: 'away', reason: 'm1: timed out' },
    runs: 2,
  })
})
