import type { Point } from '../../../../src/scheduler/study/space.ts'
import type { Trial, TrialKind } from '../../../../src/scheduler/study/study.ts'

export type TrialOptions = {
  readonly kind?: TrialKind
  readonly point?: Point
  readonly endedMs?: number
  readonly reason?: string
}

export function trialOf(number: number, values: Readonly<Record<string, string>>, options: TrialOptions = {}): Trial {
  const { kind = 'done', point = { n: String(number) }, endedMs = number * 1000, reason } = options
  return {
    number,
    point,
    repetition: 0,
    job: number + 1,
    end: kind === 'open' ? undefined : { kind, values, endedMs, ...(reason === undefined ? {} : { reason }) },
  }
}
