/** What the console shows of studies, read again only where something can have changed. */
import { isDeepStrictEqual } from 'node:util'
import type { JobStore } from '../../scheduler/jobs/store.ts'
import { bestTrials, countTrials } from '../../scheduler/study/front.ts'
import type { Study } from '../../scheduler/study/study.ts'
import type { JobLine } from '../../ui/jobs/queue-view.ts'
import type { StudyLine, StudyReading } from '../../ui/jobs/study-view.ts'

/** Keys are waiting: the rest is read the next time. */
const BUDGET_MS = 20

export class ConsoleStudies {
  readonly #store: JobStore
  /** Those that have ended keep only what the list shows. */
  readonly #lines = new Map<number, StudyLine>()
  readonly #readings = new Map<number, StudyReading>()
  #shown: number | undefined
  #version = -1

  constructor(store: JobStore) {
    this.#store = store
  }

  /** The latest first. `isComplete`: false while best trials are still to be read. */
  lines(limit: number): { readonly lines: readonly StudyLine[]; readonly isComplete: boolean } {
    const untilMs = performance.now() + BUDGET_MS
    let isComplete = true
    const lines = this.#store.studies.list(limit).map((study): StudyLine => {
      const known = this.#lines.get(study.id)
      if (known !== undefined && isOver(known) && isDeepStrictEqual(known.study, study)) return known
      if (performance.now() > untilMs) {
        isComplete = false
        return known === undefined ? { study, counts: this.#countsOf(study.id), best: undefined } : { ...known, study }
      }
      return this.#lineOf(study, this.#read(study))
    })
    return { lines, isComplete }
  }

  /** The same object while nothing has changed; undefined: there is none. */
  study(id: number): StudyReading | undefined {
    const version = this.#store.file.version()
    const known = this.#readings.get(id)
    if (known !== undefined && this.#shown === id && this.#version === version) return known
    const study = this.#store.studies.get(id)
    if (study === undefined) return undefined
    this.#shown = id
    this.#version = version
    return this.#read(study)
  }

  /** After an own change, which does not change the file's version. */
  forgetVersion(): void {
    this.#version = -1
  }

  #read(study: Study): StudyReading {
    const { studies } = this.#store
    const known = this.#readings.get(study.id)
    const trials = studies.trialsAgain(study.id, known?.trials ?? [])
    const open = studies.open(study.id)
    if (known?.trials === trials && isDeepStrictEqual(known.open, open) && isDeepStrictEqual(known.study, study))
      return known
    const counts = known?.trials === trials ? known.counts : countTrials(trials)
    const reading = { study, counts, trials, open }
    this.#readings.set(study.id, reading)
    return reading
  }

  #lineOf(study: Study, { counts, trials }: StudyReading): StudyLine {
    const known = this.#lines.get(study.id)
    // Only trials that are done can be the best.
    const best =
      known !== undefined && isDeepStrictEqual(known.counts, counts)
        ? known.best
        : bestTrials(trials, study.spec.metrics.slice(0, 1))[0]
    const line = { study, counts, best }
    this.#lines.set(study.id, line)
    if (isOver(line) && study.id !== this.#shown) this.#readings.delete(study.id)
    return line
  }

  #countsOf(id: number): StudyLine['counts'] {
    return { ...countTrials([]), ...Object.fromEntries(this.#store.studies.counts(id)) }
  }
}

const isOver = ({ study, counts }: StudyLine): boolean => study.state.kind !== 'running' && counts.open === 0

/** The latest first. A study without jobs has a line, too. */
export function linesOf(groups: readonly JobLine[], studies: readonly StudyLine[]): readonly JobLine[] {
  const bySpec = new Map(studies.map((line) => [line.study.jobSpec, line]))
  const hasJobs = new Set(groups.map(({ spec }) => spec))
  const lines = [
    ...groups.map((group): JobLine => {
      const study = bySpec.get(group.spec)
      return study === undefined ? group : { ...group, study }
    }),
    ...studies.flatMap((study): JobLine[] => {
      const { id, jobSpec } = study.study
      // No number of a specification is negative.
      return jobSpec !== undefined && hasJobs.has(jobSpec)
        ? []
        : [{ spec: jobSpec ?? -id, first: 0, count: 0, counts: new Map(), lead: undefined, study }]
    }),
  ]
  const timeOf = ({ lead, study }: JobLine) => study?.study.createdMs ?? lead?.submittedMs ?? 0
  const idOf = ({ study }: JobLine) => study?.study.id ?? 0
  return lines.sort((one, other) => timeOf(other) - timeOf(one) || idOf(other) - idOf(one))
}
