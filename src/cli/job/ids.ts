/** Jobs on the command line. */
import { type Command, InvalidArgumentError } from 'commander'

const MOST_IDS = 1_000_000

/** `17`, `17-19` or `3,17-19`, after those that were given before. */
export function parseIds(text: string, before: readonly number[] = []): readonly number[] {
  const ids = text.split(',').flatMap((part) => {
    const [, from, to] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(part) ?? []
    const first = Number(from)
    const last = to === undefined ? first : Number(to)
    if (from === undefined || last < first || last - first >= MOST_IDS)
      throw new InvalidArgumentError('It must be a job number, or a range such as 17-19.')
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
  return [...before, ...ids]
}

export const withJobs = (command: Command): Command =>
  command.argument('<ids...>', 'jobs: 17, 17-19 or 3,17-19', parseIds)

export const withJob = (command: Command): Command =>
  command.argument('<id>', 'number of the job', (text) => {
    const [id, ...others] = parseIds(text)
    if (id === undefined || others.length > 0) throw new InvalidArgumentError('It must be the number of one job.')
    return id
  })
