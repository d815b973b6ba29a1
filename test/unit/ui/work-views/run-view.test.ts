import { describe, expect, it } from 'vitest'
import type { RunOutcome } from '../../../../src/ops/run/outcome.ts'
import {
  failedHosts,
  foldRun,
  isRunning,
  majority,
  type RunView,
  reduceRun,
  restartRun,
  selectedGroup,
  selectGroup,
  startRun,
} from '../../../../src/ui/work-views/run-view.ts'

const HOSTS = ['m1', 'm2', 'm3', 'm4', 'm5']
const OK: RunOutcome = { kind: 'exit', code: 0 }

const begin = (view: RunView, host: string, nowMs = 0): RunView => reduceRun(view, { type: 'begin', host }, nowMs)
const end = (view: RunView, host: string, outcome: RunOutcome = OK, durationMs = 5): RunView =>
  reduceRun(view, { type: 'end', host, outcome, durationMs }, 0)

/** What each host printed. */
const fold = (view: RunView, printed: Readonly<Record<string, string>> = {}): RunView =>
  foldRun(view, (host) => printed[host] ?? '')

const namesOf = (view: RunView): string[] => view.groups.map(({ hosts, state }) => `${hosts.join()} ${state.kind}`)

describe('a run on many hosts', () => {
  it('folds hosts with the same output and the same end', () => {
    const ended = HOSTS.reduce((view, host) => end(begin(view, host), host), startRun('x', HOSTS))
    expect(namesOf(fold(ended, { m2: 'other', m4: 'other' }))).toEqual(['m1,m3,m5 ended', 'm2,m4 ended'])
  })

  it('shows failures first, then running, waiting and successful hosts', () => {
    let view = end(startRun('x', HOSTS), 'm1')
    view = begin(view, 'm2')
    view = end(begin(view, 'm4'), 'm4', { kind: 'exit', code: 2 })
    view = end(view, 'm5', { kind: 'unreachable', reason: 'no connection' })
    expect(namesOf(fold(view))).toEqual(['m4 ended', 'm5 ended', 'm2 running', 'm3 waiting', 'm1 ended'])
    expect(failedHosts(view)).toEqual(['m4', 'm5'])
    expect(isRunning(view)).toBe(true)
  })

  it('does not fold running hosts with ended ones, whatever they printed', () => {
    const view = end(begin(startRun('x', ['m1', 'm2']), 'm1'), 'm2', { kind: 'cancelled' })
    expect(namesOf(fold(view))).toEqual(['m2 ended', 'm1 running'])
  })

  it('shows the longest time of a group', () => {
    let view = end(startRun('x', HOSTS), 'm1', OK, 10)
    view = begin(begin(end(view, 'm2', OK, 30), 'm3', 500), 'm4', 400)
    const [running, , ended] = fold(view).groups
    expect(running?.state).toEqual({ kind: 'running', sinceMs: 400 })
    expect(ended?.state).toEqual({ kind: 'ended', outcome: OK, durationMs: 30 })
  })

  it('compares with the largest group, among equals with one that succeeded', () => {
    let view = end(startRun('x', ['m1', 'm2', 'm3']), 'm1', { kind: 'exit', code: 1 })
    view = end(view, 'm2')
    expect(majority(fold(view))?.hosts).toEqual(['m2'])
    expect(majority(fold(end(view, 'm3', { kind: 'exit', code: 1 })))?.hosts).toEqual(['m1', 'm3'])
  })

  it('keeps the results of the others when it starts again on some', () => {
    const ended = HOSTS.reduce(
      (view, host) => end(view, host, host === 'm2' ? { kind: 'timeout' } : OK),
      startRun('x', HOSTS),
    )
    const again = restartRun({ ...ended, isStopping: true }, failedHosts(ended))
    expect(again.isStopping).toBe(false)
    expect(namesOf(fold(again))).toEqual(['m2 waiting', 'm1,m3,m4,m5 ended'])
  })

  it('ignores events of other hosts', () => {
    const view = startRun('x', ['m1'])
    expect(end(view, 'm9')).toBe(view)
  })
})

describe('the selection', () => {
  it('stays with its host when groups change places, and at the ends', () => {
    let view = fold(
      HOSTS.reduce((run, host) => begin(run, host), startRun('x', HOSTS)),
      { m2: 'a', m3: 'b' },
    )
    view = selectGroup(view, 1)
    expect(selectedGroup(view)?.hosts).toEqual(['m2'])
    view = fold(end(view, 'm3', { kind: 'exit', code: 1 }), { m2: 'a', m3: 'b' })
    expect(selectedGroup(view)?.hosts).toEqual(['m2'])
    expect(selectedGroup(selectGroup(view, -99))?.hosts).toEqual(['m3'])
    expect(selectedGroup(selectGroup(view, 99))?.hosts).toEqual(['m2'])
  })
})
