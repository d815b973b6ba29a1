/** `muster simulate gangs`: how close a policy comes to the best known placement of gangs on an empty cluster. */
import { Option } from 'commander'
import {
  GANG_POLICIES,
  type GangPolicyName,
  type GangResult,
  parseGangInstances,
  runGangs,
} from '../../scheduler/simulate/gang-instances.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatBar, formatTable } from '../output/table.ts'
import { oneOf, readTrace, rounded } from './input.ts'

type Options = GlobalOptions & { readonly policy: GangPolicyName; readonly window: number }

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('<file>', 'JSON file of instances')
      .addOption(
        new Option('--policy <name>', `one of ${GANG_POLICIES.join(', ')}`)
          .argParser((word) => oneOf(word, GANG_POLICIES, 'window'))
          .default('window'),
      )
      .option('--window <n>', 'consider N gangs together (not for ray)', wholeNumber(1), 64),
  help: `
Examples:
  muster simulate gangs gangs.json --policy ray --json
`,
  async run(file: string, { policy, window, json }: Options, context: CliContext) {
    const instances = parseGangInstances(await readTrace(file, context.workingDirectory))
    const results = instances.map((instance) => runGangs(instance, policy, window))
    const ratios = results.flatMap(({ ratioToBest }) => ratioToBest ?? [])
    const summary = {
      mean: ratios.length === 0 ? undefined : ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length,
      minimum: ratios.length === 0 ? undefined : Math.min(...ratios),
    }
    if (json) context.stdout.write(formatJson(policy, results, summary))
    else context.stdout.write(formatResults(results, summary))
    return EXIT.ok
  },
}

type Summary = { readonly mean: number | undefined; readonly minimum: number | undefined }

function formatJson(policy: string, results: readonly GangResult[], { mean, minimum }: Summary): string {
  const lines = results.map(({ name, gpuPercent, ratioToBest, placed, gangs }) => ({
    name,
    gpuPercent: rounded(gpuPercent, 4),
    ratioToBest: rounded(ratioToBest, 4),
    placed,
    gangs,
  }))
  const last = { type: 'simulation', policy, meanRatio: rounded(mean, 4), minimumRatio: rounded(minimum, 4) }
  return [...lines, last].map(jsonLine).join('')
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
  const table = formatTable(['INSTANCE', 'PLACED', 'GPUS ALLOCATED %', 'RATIO TO BEST', ''], rows)
  return mean === undefined
    ? table
    : `${table}\nRatio to the best known placement: ${ratio(mean)} on average, ${ratio(minimum)} at least.\n`
}
