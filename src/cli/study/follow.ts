/** A study from now until its end: a line for each trial that ends, and on a terminal its state below them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { printable } from '../../base/printable.ts'
import { improvingTrials } from '../../scheduler/study/front.ts'
import type { Study, Trial, TrialEnd } from '../../scheduler/study/study.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import type { OpenQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { endText, studyLines, trialJson, wholeJson } from './report.ts'

const CHECK_MS = 500

type EndedTrial = Trial & { readonly end: TrialEnd }

const hasEnded = (trial: Trial): trial is EndedTrial => trial.end !== undefined

/** Resolves with the study when it has ended and none of its trials is left, with how many have failed or were cancelled. */
export async function followStudy(
  id: number,
  queue: OpenQueue,
  { json }: GlobalOptions,
  context: CliContext,
  {
    isFromStart = false,
    signal = context.signal,
  }: { readonly isFromStart?: boolean; readonly signal?: AbortSignal } = {},
): Promise<{ readonly failed: number }> {
  const { store } = queue
  const { stdout, now } = context
  const read = (): Study => store.studies.get(id) as Study
  let study = read()
  let lines: readonly string[] = []
  const told = new Set<number>()
  using screen = new LiveScreen({
    ...context,
    live: (rows) => (json ? [] : lines.slice(0, Math.max(3, Math.floor(rows / 2)))),
  })
  let before = ''
  for (let isFirst = true; ; isFirst = false) {
    study = read()
    const { spec, state } = study
    const counts = store.studies.counts(id)
    const summary = JSON.stringify([...counts])
    if (summary !== before) {
      before = summary
      const trials = store.studies.trials(id)
      const ended = trials.filter(hasEnded).filter(({ number }) => !told.has(number))
      for (const { number } of ended) told.add(number)
      const [objective] = spec.metrics
      const improving = objective && improvingTrials(trials, objective)
      if (!isFirst || isFromStart)
        for (const trial of ended.sort((one, other) => one.end.endedMs - other.end.endedMs)) {
          const { kind, values } = trial.end
          screen.out(
            json
              ? jsonLine(trialJson(study, { trial, state: kind, values }), context)
              : `${printable(`${endText(trial, spec.metrics)}${improving?.has(trial.number) ? ' (best so far)' : ''}`)}\n`,
          )
        }
    }
    const isOver = state.kind !== 'running' && (counts.get('open') ?? 0) === 0
    lines = studyLines(study, queue, now())
    if (isOver) break
    screen.refresh()
    await sleep(CHECK_MS, undefined, { signal })
  }
  screen[Symbol.dispose]()
  stdout.write(
    json ? jsonLine(wholeJson(study, queue), context) : `\n${lines.map((line) => `${printable(line)}\n`).join('')}`,
  )
  const ended = store.studies.counts(id)
  return { failed: (ended.get('failed') ?? 0) + (ended.get('cancelled') ?? 0) }
}
