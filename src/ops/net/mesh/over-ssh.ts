/**
 * Measures a link without iperf, by sending bytes through ssh(1) from host to host. A single short run proves little, because
 * logins, ciphers and busy processors slow it down. So runs are repeated until two agree; else there is no result.
 */
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import { type OpsHosts, reasonOfResult, type ScriptResult } from '../../kernel/host-port.ts'
import { formatOutcome } from '../../run/outcome.ts'
import { amountOf } from '../amount.ts'
import { failed, type LinkOutcome, type MeasureOptions, type NetTool, type OrderedPair } from './link.ts'
import { limitSeconds, SSH_WARM_UP_S, type SshTarget, sshParts, sshScript } from './scripts.ts'

const MOST_RUNS = 5
/** Two rates agree when the smaller one is at least this part of the greater. */
const AGREEMENT = 0.8
/** Suggested where runs do not agree. */
const LONG_S = 10

type Options = MeasureOptions & { readonly tool?: NetTool }

export async function measureOverSsh(
  pair: OrderedPair,
  target: SshTarget,
  options: Options,
  { hosts, signal }: { readonly hosts: OpsHosts; readonly signal: AbortSignal },
): Promise<LinkOutcome> {
  const { seconds } = options
  const timeoutMs = (SSH_WARM_UP_S + limitSeconds(options)) * 1000
  const rates: number[] = []
  for (let run = 0; run < MOST_RUNS; run += 1) {
    const result = await hosts.exec(pair.from, sshScript(target, options), { timeoutMs, signal })
    const { outcome } = result
    if (outcome.kind === 'unreachable') return failed('away', `${pair.from}: ${outcome.reason}`)
    if (outcome.kind === 'timeout') return failed('broken', `no result within ${timeoutMs / 1000} s`)
    const arrived = ratesOf(result, seconds)
    if (arrived.length === 0) return explain(pair, options, result)
    rates.push(...arrived)
    // Disturbances only make runs slower, so the fastest are the most accurate.
    const [first = 0, second = 0] = rates.toSorted((one, other) => other - one)
    if (second >= AGREEMENT * first) return { kind: 'measured', tool: 'ssh', bitsPerSecond: (first + second) / 2 }
  }
  const longer = Math.max(LONG_S, 2 * seconds)
  const install = options.tool === 'ssh' ? ', or with iperf' : ', or with --install'
  const [least, most] = [Math.min(...rates), Math.max(...rates)].map(formatBitRate)
  const reason = `its rate over ssh varies too much: ${MOST_RUNS} runs of ${seconds} s gave ${least} to ${most}. Run: muster net mesh --time ${longer}${install}`
  return failed('unsteady', reason)
}

/** Of each part of a run, in bits a second; none when nothing arrived. */
function ratesOf({ stdout }: ScriptResult, seconds: number): readonly number[] {
  const parts = sshParts(seconds)
  const said = Buffer.from(stdout).toString()
  const matches = [...said.matchAll(/^arrived (\d+)$/gm)]
  // Numbers before these may come from the start-up files of the other host's shell.
  const counts = matches.slice(-parts.length).map((match) => amountOf(match[1]))
  const rates = parts.map((part, index) => ((counts[index] ?? 0) * 8) / part)
  return rates.some((rate) => rate > 0) ? rates : []
}

function explain({ from, to }: OrderedPair, { tool }: Options, result: ScriptResult): LinkOutcome {
  const said = reasonOfResult(result, formatOutcome)
  // sh(1): 127 is a program that is not there. ssh(1): 255 is an error of its own, before or beside the command.
  if (result.outcome.kind === 'exit' && result.outcome.code === 127) {
    return failed('no-tool', `${from} cannot log in to ${to}: ${said}`)
  }
  if (result.outcome.kind !== 'exit' || result.outcome.code !== 255) {
    return failed('broken', `nothing arrived over ssh: ${said}`)
  }
  const install = tool === 'ssh' ? '' : ', or measure with --install'
  return failed('no-tool', `${from} cannot log in to ${to}: ${said}. Run: muster up trust${install}`)
}
