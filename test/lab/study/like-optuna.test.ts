/** Early stopping and the best of several metrics, beside what real Optuna decides about the same numbers. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { bestTrials } from '../../../src/scheduler/study/front.ts'
import { pruneReason } from '../../../src/scheduler/study/prune.ts'
import type { PruneSpec, Trial } from '../../../src/scheduler/study/study.ts'
import { requirement } from '../../support/requirements.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { pythonEnvironment } from '../cluster/python-environment.ts'

const canRun = requirement('python environments')
const BUILD_MS = 300_000

/** Reads cases as JSON, and prints what Optuna decides: for each step whether the trial is stopped, or the numbers of the best. */
const JUDGE = `
import json, sys, optuna
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial
optuna.logging.set_verbosity(optuna.logging.ERROR)
X = dict(params={"x": 0.5}, distributions={"x": FloatDistribution(0, 1)})

def stops(case):
    if case["rule"] == "median":
        pruner = optuna.pruners.MedianPruner(n_startup_trials=case["fromTrials"], n_warmup_steps=case["fromStep"])
    else:
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=case["fromStep"], reduction_factor=case["factor"])
    study = optuna.create_study(direction="maximize" if case["isMost"] else "minimize", pruner=pruner)
    decided = []
    for row in case["rows"]:
        trial = study.ask()
        stopped = None
        for step, value in enumerate(row):
            trial.report(value, step)
            if trial.should_prune():
                stopped = step
                break
        decided.append(stopped)
        study.tell(trial, state=optuna.trial.TrialState.PRUNED if stopped is not None else None, values=None if stopped is not None else row[-1])
    return decided

def front(case):
    study = optuna.create_study(directions=["maximize" if most else "minimize" for most in case["isMost"]])
    study.add_trials([create_trial(values=row, **X) for row in case["rows"]])
    return [trial.number for trial in study.best_trials]

print(json.dumps([front(case) if case["rule"] == "front" else stops(case) for case in json.load(sys.stdin)]))
`

const trialOf = (number: number, values: readonly number[]): Trial => ({
  ...{ number, point: {}, repetition: 0, job: undefined },
  end: {
    kind: 'done',
    values: Object.fromEntries(values.map((value, index) => [`m${index}`, String(value)])),
    endedMs: number,
  },
})

describe.skipIf(!canRun)('beside real Optuna', () => {
  let python: string
  beforeAll(async () => {
    python = join(await pythonEnvironment('optuna'), 'venv', 'bin', 'python')
  }, BUILD_MS)

  const judge = (cases: readonly object[]): unknown[] =>
    JSON.parse(execFileSync(python, ['-W', 'ignore', '-c', JUDGE], { input: JSON.stringify(cases), encoding: 'utf8' }))

  /** Trials one after the other, each until it ends or is stopped. */
  function stops(rule: PruneSpec, isMost: boolean, rows: readonly (readonly number[])[]): readonly (number | null)[] {
    const others: { readonly step: number; readonly value: number }[][] = []
    return rows.map((row) => {
      const steps: { readonly step: number; readonly value: number }[] = []
      for (const [step, value] of row.entries()) {
        const judgedTo = steps.at(-1)?.step
        steps.push({ step, value })
        if (pruneReason(rule, { name: 'm', isMost }, steps, others, judgedTo) === undefined) continue
        // Optuna's median is that of the trials that were not stopped.
        if (rule.rule === 'halving') others.push(steps)
        return step
      }
      others.push(steps)
      return null
    })
  }

  it('stops the same trials at the same steps', () => {
    const random = seededRandom()
    const whole = (least: number, most: number) => least + Math.floor(random() * (most - least + 1))
    const cases = Array.from({ length: 60 }, (_, index) => {
      const length = whole(2, 12)
      return {
        rule: index % 2 === 0 ? ('median' as const) : ('halving' as const),
        ...{ stepMetric: 'step', fromStep: whole(1, 3), isMost: random() < 0.5 },
        ...(index % 2 === 0 ? { fromTrials: whole(1, 4) } : { fromTrials: 0, factor: whole(2, 4) }),
        // Rarely the same value twice, and often a trial that is bad throughout.
        rows: Array.from({ length: whole(3, 25) }, () => {
          const level = random()
          return Array.from({ length }, () => level + random() / 2)
        }),
      }
    })
    const ours = cases.map(({ rows, isMost, ...rule }) => stops(rule, isMost, rows))
    expect(ours).toEqual(judge(cases))
    expect(ours.flat().filter((step) => step !== null).length).toBeGreaterThan(50)
  })

  it('finds the same best trials of several metrics', () => {
    const random = seededRandom()
    const cases = Array.from({ length: 60 }, (_, index) => ({
      rule: 'front',
      isMost: Array.from({ length: 2 + (index % 3) }, () => random() < 0.5),
      rows: Array.from({ length: 40 }, () => Array.from({ length: 2 + (index % 3) }, () => Math.floor(random() * 9))),
    }))
    const ours = cases.map(({ isMost, rows }) =>
      bestTrials(
        rows.map((row, number) => trialOf(number, row)),
        isMost.map((most, metric) => ({ name: `m${metric}`, isMost: most })),
      )
        .map(({ number }) => number)
        .sort((one, other) => one - other),
    )
    expect(ours).toEqual(judge(cases))
  })
})
