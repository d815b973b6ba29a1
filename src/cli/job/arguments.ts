/** Jobs on the command line, and the options that describe one. */
import { type Command, InvalidArgumentError } from 'commander'
import { numberFrom, wholeNumber } from '../command-line/options.ts'

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
    if (id === undefined || others.length > 0) throw new InvalidArgumentError('It must be the number of a single job.')
    return id
  })

/** What can be changed later. `defaults`: of a new job. */
export const withRequest = (
  command: Command,
  defaults: {
    readonly cpu?: number
    readonly gpu?: number
    readonly priority?: number
    readonly retries?: number
  } = {},
): Command =>
  command
    .option('--name <name>', 'show this name in lists (new jobs: the command)')
    .option('--cpu <n>', 'request N cores for each bundle', numberFrom(0), defaults.cpu)
    .option('--memory <size>', 'request this much memory for each bundle, such as 16GiB')
    .option(
      '--gpu <n>',
      'request N GPUs for each bundle: a whole number, or a share of one GPU such as 0.5',
      numberFrom(0),
      defaults.gpu,
    )
    .option('--on <target>', 'run only on these hosts')
    .option('--dir <path>', 'run in this directory of the host (new jobs: the home directory)')
    .option(
      '--priority <n>',
      'start jobs with a higher N first',
      wholeNumber(Number.MIN_SAFE_INTEGER),
      defaults.priority,
    )
    .option('--estimate <s>', 'estimate a run time of S seconds', wholeNumber(1))
    .option('--limit <s>', 'stop the job after S seconds', wholeNumber(1))
    .option('--retries <n>', 'retry at most N times if it fails', wholeNumber(0), defaults.retries)
