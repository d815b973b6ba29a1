/** `muster simulate gangs`: how near to the best that is known a policy comes with gangs that come to an empty cluster. */
import { type Command, InvalidArgumentError } from 'commander'
import {
  GANG_POLICIES,
  type GangPolicyName,
  type GangResult,
  parseGangInstances,
  runGangs,
} from '../../scheduler/simulate/gang-instances.ts'
import { type CliContext, EXIT, type GlobalOptions, type Outcome } from '../command-line/context.ts'
import { formatBar } from '../output/picture.ts'
import { formatTable } from '../output/table.ts'
import { DEFAULT_ALIASES, parseCount } from './policy-option.ts'
import { readTrace } from './read-trace.ts'

type Options = GlobalOptions & { readonly policy: GangPolicyName; readonly window: number }

export function registerSimulateGangs(simulate: Command, context: CliContext, outcome: Outcome): void {
  const command = simulate
    .command('gangs <file>')
    .description('how many GPUs gangs get, beside the most that is known to be possible')
    .option('--policy <name>', `one of ${GANG_POLICIES.join(', ')}`, parseGangPolicy, 'window')
    .option('--window <n>', 'gangs that are looked at together (not for ray)', parseCount, 64)
    .addHelpText('after', '\nExample:\n  muster simulate gangs gangs.json --policy ray --json\n')
    .action(async (file: string) => {
      await simulateGangs(file, command.optsWithGlobals<Options>(), context)
      outcome.exitCode = EXIT.ok
    })
}

async function simulateGangs(file: string, { policy, window, json }: Options, context: CliContext): Promise<void> {
  const instances = parseGangInstances(await readTrace(file, context.workingDirectory))
  const results = instances.map((instance) => runGangs(instance, policy, window))
  const ratios = results.flatMap(({ ratioToBest }) => ratioToBest ?? [])
  const summary = {
    mean: ratios.length === 0 ? undefined : ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length,
    minimum: ratios.length === 0 ? undefined : Math.min(...ratios),
  }
  if (json) context.stdout.write(formatJson(policy, results, summary))
  else context.stdout.write(formatResults(results, summary))
}

type Summary = { readonly mean: number | undefined; readonly minimum: number | undefined }

function formatJson(policy: string, results: readonly GangResult[], { mean, minimum }: Summary): string {
  const round = (value: number | undefined) => (value === undefined ? undefined : Number(value.toFixed(4)))
  const lines = results.map(({ name, gpuPercent, ratioToBest, placed, gangs }) => ({
    name,
    gpuPercent: round(gpuPercent),
    ratioToBest: round(ratioToBest),
    placed,
    gangs,
  }))
  const last = { type: 'simulation', policy, meanRatio: round(mean), minimumRatio: round(minimum) }
  return [...lines, last].map((line) => `${JSON.stringify(line)}\n`).join('')
}

function formatResults(results: readonly GangResult[], { mean, minimum }: Summary): string {
  const ratio = (value: number | undefined) => (value === undefined ? '' : value.toFixed(4))
  const rows = results.map(({ name, gpuPercent, ratioToBest, placed, gangs }) => [
    name,
    `${placed} of ${gangs}`,
    gpuPercent.toFixed(2),
    ratio(ratioToBest),
    formatBar([[gpuPercent / 100, '█']], 20),
  ])
  const table = formatTable(['INSTANCE', 'PLACED', 'GPUS GIVEN %', 'OF THE BEST', ''], rows)
  return mean === undefined
    ? table
    : `${table}\nOf the best known: ${ratio(mean)} on average, ${ratio(minimum)} at the least.\n`
}

function parseGangPolicy(word: string): GangPolicyName {
  const name = DEFAULT_ALIASES.has(word) ? 'window' : GANG_POLICIES.find((known) => known === word)
  if (name === undefined)
    throw new InvalidArgumentError(`There is no policy '${word}'. There are ${GANG_POLICIES.join(', ')}.`)
  return name
}
