/** The line of descent of a population: from whose checkpoint each trial went on, and with which parameters. Pure. */
import type { Trial } from './study.ts'

export type DescentRow = {
  readonly member: number
  /** From 0: which trial of this member it is. */
  readonly generation: number
  readonly trial: Trial
  /** The trial whose checkpoint it began with; undefined: it began from the start. */
  readonly parent: Trial | undefined
  /** Parameters that differ from its parent's: `lr 0.1 → 0.12`; empty for a first trial, or where none differs. */
  readonly changes: readonly string[]
}

/** By member, then in the order in which they began. */
export function descentOf(trials: readonly Trial[]): readonly DescentRow[] {
  const byNumber = new Map(trials.map((trial) => [trial.number, trial]))
  const members = Map.groupBy(
    trials.filter(({ member }) => member !== undefined),
    ({ member }) => member ?? 0,
  )
  return [...members]
    .toSorted(([one], [other]) => one - other)
    .flatMap(([member, own]) =>
      own
        .toSorted((one, other) => one.number - other.number)
        .map((trial, generation) => {
          const parent = trial.parent === undefined ? undefined : byNumber.get(trial.parent)
          return { member, generation, trial, parent, changes: parent === undefined ? [] : changesOf(parent, trial) }
        }),
    )
}

/** The trials from whose checkpoints it goes on, the first one first; its own is the last. */
export function ancestorsOf(trials: readonly Trial[], number: number): readonly Trial[] {
  const byNumber = new Map(trials.map((trial) => [trial.number, trial]))
  const line: Trial[] = []
  // A parent is always earlier.
  for (let trial = byNumber.get(number); trial !== undefined; ) {
    line.unshift(trial)
    const { parent } = trial
    trial = parent !== undefined && parent < trial.number ? byNumber.get(parent) : undefined
  }
  return line
}

/**
 * One line for each trial:
 *
 *     member 0  trial 0  from the start         lr=0.1
 *               trial 5  member 2 at step 8     lr 0.02 → 0.024
 */
export function descentLines(trials: readonly Trial[], timeAttr: string): readonly string[] {
  const rows = descentOf(trials).map(({ member, generation, trial, parent, changes }) => [
    generation === 0 ? `member ${member}` : '',
    `trial ${trial.number}`,
    fromWords(trial, parent, timeAttr),
    parent === undefined ? pointWords(trial) : changes.join(', ') || 'the same parameters',
  ])
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

function fromWords({ parent: number, parentStep }: Trial, parent: Trial | undefined, timeAttr: string): string {
  if (number === undefined) return 'from the start'
  const whose = parent?.member === undefined ? `trial ${number}` : `member ${parent.member} (trial ${number})`
  return parentStep === undefined ? whose : `${whose} at ${timeAttr} ${parentStep}`
}

const pointWords = ({ point }: Trial): string =>
  Object.entries(point)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

function changesOf(parent: Trial, trial: Trial): readonly string[] {
  const names = [...new Set([...Object.keys(trial.point), ...Object.keys(parent.point)])]
  return names.flatMap((name) => {
    const [before, after] = [parent.point[name], trial.point[name]]
    return before === after ? [] : [`${name} ${before ?? 'none'} → ${after ?? 'none'}`]
  })
}
