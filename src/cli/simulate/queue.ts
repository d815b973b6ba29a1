/** `muster simulate queue`: how long jobs wait that queue for the devices of some hosts. */
import { parseQueueFile, type QueueRunResult, runQueue } from '../../scheduler/simulate/queue-run.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatBar, formatTable } from '../output/table.ts'
import { readTrace, rounded } from './input.ts'

type Options = GlobalOptions & {
  readonly preempt?: boolean
  readonly fairShare?: boolean
  readonly estimates: boolean
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('<file>', 'JSON file of hosts, jobs and reservations')
      .option('--preempt', 'stop preemptible jobs for those of higher priority')
      .option('--fair-share', 'prefer users with less past use')
      .option('--no-estimates', 'ignore the estimated run times'),
  help: `
Examples:
  muster simulate queue jobs.json --fair-share --json

The file: {"hosts": [{"name", "cpu", "memoryGiB", "gpus"}], "jobs": [{"submitS", "runS", "estimateS", "user", "priority",
"isPreemptible", "strategy", "bundles", "cpu", "memoryGiB", "gpuMilli"}], "reservations": [{"hosts", "fromS", "untilS", "users"}]}
`,
  async run(file: string, options: Options, context: CliContext) {
    const { hosts, jobs, reservations } = parseQueueFile(await readTrace(file, context.workingDirectory))
    const result = runQueue({
      hosts,
      reservations,
      jobs: options.estimates ? jobs : jobs.map((job) => ({ ...job, estimateS: undefined })),
      isPreempting: options.preempt ?? false,
      isFairShare: options.fairShare ?? false,
    })
    context.stdout.write(options.json ? jsonLine(resultJson(result)) : formatResult(result))
    return EXIT.ok
  },
}

function resultJson({ averageWaitByUserS, ...result }: QueueRunResult): object {
  const numbers = Object.entries(result).map(([name, value]) => [name, rounded(value, 3)])
  const byUser = [...averageWaitByUserS].map(([user, waitS]) => [user, rounded(waitS, 3)])
  return { type: 'simulation', ...Object.fromEntries(numbers), averageWaitByUserS: Object.fromEntries(byUser) }
}

function formatResult(result: QueueRunResult): string {
  const { jobs, impossible, preempted, averageWaitS, maximumWaitS, averageBoundedSlowdown } = result
  const percent = (value: number) => `${formatBar([[value / 100, '█']], 20)} ${value.toFixed(1)} %`
  const table = formatTable(
    ['JOBS', 'IMPOSSIBLE', 'PREEMPTED', 'WAIT, MEAN s', 'LONGEST WAIT s', 'BOUNDED SLOWDOWN'],
    [
      [
        String(jobs),
        String(impossible),
        String(preempted),
        averageWaitS.toFixed(1),
        String(maximumWaitS),
        averageBoundedSlowdown.toFixed(2),
      ],
    ],
  )
  const users = [...result.averageWaitByUserS].map(([user, waitS]) => [user === '' ? '-' : user, waitS.toFixed(1)])
  return [
    table,
    `\nCores in use  ${percent(result.cpuPercent)}\nGPUs in use   ${percent(result.gpuPercent)}\n`,
    users.length > 1 ? `\n${formatTable(['USER', 'WAIT, MEAN s'], users)}` : '',
  ].join('')
}
