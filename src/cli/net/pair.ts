/** `muster net pair A B`: throughput in both directions and round-trip time, live. */
import { systemClock } from '../../base/clock.ts'
import { Emitter } from '../../base/emitter.ts'
import { MusterError } from '../../base/errors.ts'
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { printable } from '../../base/printable.ts'
import { concludeTest, pairTest, type TestConclusion } from '../../ops/net/kept-test.ts'
import { formatMs } from '../../ops/net/mesh/link.ts'
import { wayOf } from '../../ops/net/mesh/mesh-plan.ts'
import { measurePair, type PairEvent } from '../../ops/net/pair/measure-pair.ts'
import { newPairRecord, type PairRecord, takePairEvent } from '../../ops/net/pair/pair-record.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { signIn, terminalOf } from '../console/run-console.ts'
import { isDumb } from '../output/dumb-terminal.ts'
import { writeEvent } from '../output/json-lines.ts'
import { printConclusion } from './conclude.ts'
import { addPairOptions, type PairLinkOptions, pairOptionsOf } from './options.ts'

export const verb: VerbCode = {
  define: (command) => addPairOptions(command.argument('<a>', 'a host').argument('<b>', 'another host')),
  help: `
Examples:
  muster net pair m8 m9                        both directions at once for 30 s, as a chart
  muster net pair m8 m9 --one-way --json       from m8 to m9, one JSON object a second
`,
  run: (a: string, b: string, options: PairLinkOptions, context: CliContext) => netPair([a, b], options, context),
}

/** @throws MusterError */
async function netPair(
  names: readonly [string, string],
  options: PairLinkOptions,
  context: CliContext,
): Promise<number> {
  const { inventory, endpoints } = await selectEndpoints(names.join(','), options, context)
  const [first, second] = endpoints.map(({ host }) => host)
  if (first === undefined || second === undefined || endpoints.length !== 2) {
    throw new MusterError('usage', `this is not a pair of hosts: ${printable(names.join(' and '))}`)
  }
  const isTerminal = context.stdin.isTTY === true && context.stdout.isTTY === true
  const hasScreen = options.json !== true && isTerminal && !isDumb(context.environment)
  const left = new AbortController()
  const signal = AbortSignal.any([context.signal, left.signal])
  using opened = openOpsHosts(endpoints, options, context)
  const failures: Extract<PairEvent, { type: 'failed' }>[] = []
  // In the order of the command line, not of the inventory.
  const [from, to] = first === names[1] ? [second, first] : [first, second]
  const record = newPairRecord(from, to)
  const pairOptions = pairOptionsOf(options, endpoints, inventory)
  const measure = async (onEvent: (event: PairEvent) => void): Promise<TestConclusion> => {
    await measurePair(from, to, pairOptions, {
      hosts: opened.hosts,
      signal,
      clock: systemClock,
      onEvent(event) {
        if (event.type === 'failed') failures.push(event)
        takePairEvent(record, event)
        onEvent(event)
      },
    })
    const nowMs = context.now()
    return concludeTest(context.environment, pairTest(record, wayOf(pairOptions), nowMs), nowMs)
  }
  let conclusion: TestConclusion
  if (hasScreen) {
    await signIn([from, to], opened.hosts, context)
    conclusion = await show(record, measure, options, context, left)
    for (const failure of failures) print(failure, options, context)
  } else conclusion = await measure((event) => print(event, options, context))
  printConclusion(conclusion, options, context)
  if (context.signal.aborted) return EXIT.interrupted
  if (failures.some(({ isAway }) => isAway)) return EXIT.unreachable
  return failures.length > 0 ? EXIT.failed : EXIT.ok
}

function print(event: PairEvent, { json }: GlobalOptions, context: CliContext): void {
  const { stdout, stderr } = context
  if (json === true) return writeEvent(event, context)
  const arrow = `${event.from} → ${event.to}`
  if (event.type === 'interval') stdout.write(`${event.second} s  ${arrow}  ${formatBitRate(event.bitsPerSecond)}\n`)
  else if (event.type === 'round-trip') stdout.write(`${event.from} ↔ ${event.to}  ${formatMs(event.ms)}\n`)
  else stderr.write(`muster: ${arrow}: ${printable(event.reason)}\n`)
}

async function show(
  record: PairRecord,
  measure: (onEvent: (event: PairEvent) => void) => Promise<TestConclusion>,
  { color }: GlobalOptions,
  context: CliContext,
  left: AbortController,
): Promise<TestConclusion> {
  const [{ openPaneScreen }, { pairPanes }] = await Promise.all([
    import('../../ui/network/pane-screen.ts'),
    import('../../ui/network/pair-panes.ts'),
  ])
  const changes = new Emitter<void>()
  let conclusion: TestConclusion | undefined
  const measuring = measure(() => changes.emit()).then((end) => {
    conclusion = end
    changes.emit()
    return end
  })
  await openPaneScreen({
    ...terminalOf(color, context),
    panes: (context) => pairPanes({ record, isMeasuring: conclusion === undefined, conclusion }, context),
    words: () => (conclusion === undefined ? 'q stop' : 'measured; q leave'),
    handleKey: (label) => (label === 'q' || label === 'Esc' ? 'leave' : false),
    subscribe: (changed) => changes.on(changed),
  })
  left.abort()
  return await measuring
}
