/** Rows of studies that run elsewhere, and only there: what is read there replaces what is stored. */
import type { SourceKnown, SourceTrials } from '../study/source.ts'
import { pointKey } from '../study/space.ts'
import type { Study, StudySpec } from '../study/study.ts'
import type { JobStore } from './store.ts'

/** Trials as they are there now. Returns whether anything is new. */
export function mirrorTrials(
  { file, studies }: JobStore,
  { id, spec: before }: Study,
  { spec, trials, isWhole }: SourceTrials,
): boolean {
  if (isWhole) {
    file.run('DELETE FROM trial_step WHERE study = ?', id)
    file.run('DELETE FROM trial WHERE study = ?', id)
  }
  let isNew = isWhole || withoutMark(spec) !== withoutMark(before)
  if (isNew || spec.source?.mark !== before.source?.mark)
    file.run('UPDATE study SET spec = ? WHERE id = ?', JSON.stringify(spec), id)
  const hasSteps = trials.some(({ steps }) => steps.length > 0)
  let room = hasSteps ? MOST_STEPS - Number(file.one(COUNT_STEPS, id)?.count) : 0
  for (const { number, point, end, steps, ...descent } of trials) {
    const stored = steps.slice(0, Math.max(0, Math.min(room, MOST_STEPS_AT_ONCE)))
    for (const step of stored) studies.noteStep(id, number, step)
    room -= stored.length
    const [known, key] = [studies.trial(id, number), pointKey(point)]
    const isSamePoint = known !== undefined && pointKey(known.point) === key
    const isSame = isSamePoint && known.end?.kind === end?.kind
    isNew ||= !isSame || stored.length > 0
    if (isSame) continue
    const last = file.one(LAST_REPETITION, id, key, number)
    const repetition = isSamePoint ? known.repetition : Number(last?.repetition ?? -1) + 1
    const { kind = 'open', ...rest } = end ?? {}
    const more = JSON.stringify({ ...descent, ...(end && { end: rest }) })
    file.run(REPLACE, id, number, key, repetition, kind, more)
  }
  return isNew
}

/** Its file may have changed only for another study. */
const withoutMark = (spec: StudySpec): string =>
  JSON.stringify({ ...spec, source: { ...spec.source, mark: undefined } })

export function knownTrials({ file, studies }: JobStore, { id }: Study): SourceKnown {
  const steps = studies.open(id).flatMap(({ trial: { number } }) => {
    const step = file.one('SELECT max(step) AS step FROM trial_step WHERE study = ? AND number = ?', id, number)?.step
    return typeof step === 'number' ? [[String(number), step] as const] : []
  })
  const ranges = file.all(RANGES, id).map(({ first, last }) => [Number(first), Number(last)] as const)
  return { done: ranges, steps: Object.fromEntries(steps) }
}

/** When one of its trials ended last. */
export function lastEndMs({ file }: JobStore, { id }: Study): number {
  const row = file.one("SELECT max(json_extract(more, '$.end.endedMs')) AS last FROM trial WHERE study = ?", id)
  return Number(row?.last ?? 0)
}

/** Of a study, and of a trial in one reading: what reports more may fill the disk. */
const MOST_STEPS = 1_000_000
const MOST_STEPS_AT_ONCE = 20_000
const COUNT_STEPS = 'SELECT count(*) AS count FROM trial_step WHERE study = ?'
const LAST_REPETITION =
  'SELECT repetition FROM trial WHERE study = ? AND point = ? AND number <> ? ORDER BY repetition DESC LIMIT 1'
const REPLACE = 'INSERT OR REPLACE INTO trial (study, number, point, repetition, kind, more) VALUES (?, ?, ?, ?, ?, ?)'
/** Numbers without a gap have the same distance to their place in the order. */
const RANGES = `SELECT min(number) AS first, max(number) AS last FROM
  (SELECT number, number - row_number() OVER (ORDER BY number) AS gap FROM trial WHERE study = ? AND kind <> 'open')
  GROUP BY gap ORDER BY first`
