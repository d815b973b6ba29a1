/** `muster simulate queue`: who waits how long when jobs queue for the devices of some hosts. */
import type { Command } from 'commander'
import { parseQueueFile } from '../../scheduler/simulate/queue-file.ts'
import { type QueueRunResult, runQueue } from '../../scheduler/simulate/queue-run.ts'
import { type CliContext, EXIT, type GlobalOptions, type Outcome } from '../command-line/context.ts'
import { formatBar } from '../output/picture.ts'
import { formatTable } from '../output/table.ts'
import { readTrace } from './read-trace.ts'

type Options = GlobalOptions & {
  readonly preempt?: boolean
  readonly fairShare?: boolean
  readonly estimates: boolean
}

export function registerSimulateQueue(simulate: Command, context: CliContext, outcome: Outcome): void {
  const command = simulate
    .command('queue <file>')
    .description('who waits how long when jobs queue for the devices of some hosts, as the queue of jobs plans')
    .option('--preempt', 'running jobs that allow it are ended for those of higher priority')
    .option('--fair-share', 'users who have had less go first')
    .option('--no-estimates', 'as if nobody had said how long a job will run')
    .addHelpText(
      'after',
      `
The file: {"hosts": [{"name", "cpu", "memoryGiB", "gpus"}], "jobs": [{"submitS", "runS", "estimateS", "user", "priority",
"isPreemptible", "strategy", "bundles", "cpu", "memoryGiB", "gpuMilli"}], "reservations": [{"hosts", "fromS", "untilS", "users"}]}

Example:
  muster simulate queue jobs.json --fair-share --json
`,
    )
    .action(async (file: string) => {
      await simulateQueue(file, command.optsWithGlobals<Options>(), context)
      outcome.exitCode = EXIT.ok
    })
}

async function simulateQueue(file: string, options: Options, context: CliContext): Promise<void> {
  const { hosts, jobs, reservations } = parseQueueFile(await readTrace(file, context.workingDirectory))
  const result = runQueue({
    hosts,
    reservations,
    jobs: options.estimates ? jobs : jobs.map((job) => ({ ...job, estimateS: undefined })),
    isPreempting: options.preempt ?? false,
    isFairShare: options.fairShare ?? false,
  })
  context.stdout.write(options.json ? `${JSON.stringify(resultJson(result))}\n` : formatResult(result))
}

function resultJson({ averageWaitByUserS, ...result }: QueueRunResult): object {
  const round = (value: number) => Number(value.toFixed(3))
  const numbers = Object.entries(result).map(([name, value]) => [name, round(value)])
  const byUser = [...averageWaitByUserS].map(([user, waitS]) => [user, round(waitS)])
  return { type: 'simulation', ...Object.fromEntries(numbers), averageWaitByUserS: Object.fromEntries(byUser) }
}

function formatResult(result: QueueRunResult): string {
  const { jobs, impossible, preempted, averageWaitS, maximumWaitS, averageBoundedSlowdown } = result
  const percent = (value: number) => `${formatBar([[value / 100, '█']], 20)} ${value.toFixed(1)} %`
  const table = formatTable(
    ['JOBS', 'NEVER', 'ENDED FOR OTHERS', 'WAIT, MEAN s', 'LONGEST s', 'BOUNDED SLOWDOWN'],
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
