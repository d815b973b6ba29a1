/** `muster net pair A B`: throughput in both directions and round-trip time, live. */
import { systemClock } from '../../base/clock.ts'
import { Emitter } from '../../base/emitter.ts'
import { MusterError } from '../../base/errors.ts'
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { printable } from '../../base/printable.ts'
import type { NetFinding } from '../../ops/net/mesh/judge.ts'
import { formatMs } from '../../ops/net/mesh/link.ts'
import { measurePair, type PairEvent } from '../../ops/net/pair/measure-pair.ts'
import { newPairRecord, takePairEvent } from '../../ops/net/pair/pair-record.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { signIn, terminalOf } from '../console/run-console.ts'
import { writeEvent } from '../output/json-lines.ts'
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
  const { endpoints } = await selectEndpoints(names.join(','), options, context)
  const [first, second] = endpoints.map(({ host }) => host)
  if (first === undefined || second === undefined || endpoints.length !== 2) {
    throw new MusterError('usage', `this is not a pair of hosts: ${printable(names.join(' and '))}`)
  }
  const hasScreen = options.json !== true && context.stdin.isTTY === true && context.stdout.isTTY === true
  const left = new AbortController()
  const signal = AbortSignal.any([context.signal, left.signal])
  using opened = openOpsHosts(endpoints, options, context)
  const failures: Extract<PairEvent, { type: 'failed' }>[] = []
  const findings: NetFinding[] = []
  // In the order of the command line, not of the inventory.
  const [from, to] = first === names[1] ? [second, first] : [first, second]
  const measure = async (onEvent: (event: PairEvent) => void) =>
    await measurePair(from, to, pairOptionsOf(options, endpoints), {
      hosts: opened.hosts,
      signal,
      clock: systemClock,
      onEvent(event) {
        if (event.type === 'failed') failures.push(event)
        if (event.type === 'finding') findings.push(event.finding)
        onEvent(event)
      },
    })
  if (hasScreen) {
    await signIn([from, to], opened.hosts, context)
    await show(from, to, measure, options, context, left)
    for (const failure of failures) print(failure, options, context)
    for (const finding of findings) print({ type: 'finding', finding }, options, context)
  } else await measure((event) => print(event, options, context))
  if (context.signal.aborted) return EXIT.interrupted
  if (failures.some(({ isAway }) => isAway)) return EXIT.unreachable
  return failures.length > 0 ? EXIT.failed : EXIT.ok
}

const formatFinding = ({ gravity, text }: NetFinding): string => `${gravity}  ${printable(text)}`

function print(event: PairEvent, { json }: GlobalOptions, context: CliContext): void {
  const { stdout, stderr } = context
  if (json === true) {
    writeEvent(event.type === 'finding' ? { type: 'finding', ...event.finding } : event, context)
    return
  }
  if (event.type === 'finding') return void stdout.write(`${formatFinding(event.finding)}\n`)
  const arrow = `${event.from} → ${event.to}`
  if (event.type === 'interval') stdout.write(`${event.second} s  ${arrow}  ${formatBitRate(event.bitsPerSecond)}\n`)
  else if (event.type === 'round-trip') stdout.write(`${event.from} ↔ ${event.to}  ${formatMs(event.ms)}\n`)
  else stderr.write(`muster: ${arrow}: ${printable(event.reason)}\n`)
}

async function show(
  first: string,
  second: string,
  measure: (onEvent: (event: PairEvent) => void) => Promise<void>,
  { color }: GlobalOptions,
  context: CliContext,
  left: AbortController,
): Promise<void> {
  const [{ openPaneScreen }, { pairPanes }] = await Promise.all([
    import('../../ui/network/pane-screen.ts'),
    import('../../ui/network/pair-panes.ts'),
  ])
  const changes = new Emitter<void>()
  const record = newPairRecord(first, second)
  let isMeasuring = true
  const measuring = measure((event) => {
    takePairEvent(record, event)
    changes.emit()
  }).finally(() => {
    isMeasuring = false
    changes.emit()
  })
  await openPaneScreen({
    ...terminalOf(color, context),
    panes: (context) => pairPanes({ record, isMeasuring }, context),
    words: () => (isMeasuring ? 'q stop' : 'measured; q leave'),
    handleKey: (label) => (label === 'q' || label === 'Esc' ? 'leave' : false),
    subscribe: (changed) => changes.on(changed),
  })
  left.abort()
  await measuring
}
