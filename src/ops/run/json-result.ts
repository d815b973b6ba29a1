/** The lines of `muster run --json` (docs/schema/run.schema.json), in pieces, so that a result may be larger than a string. */
import type { RunOutcome, RunSummary } from './outcome.ts'
import type { HostOutput, StreamStore } from './output-store.ts'

export function* formatResult(
  host: string,
  outcome: RunOutcome,
  output: HostOutput,
  durationMs: number,
): Generator<string> {
  const { kind, ...details } = outcome
  yield `${JSON.stringify({ type: 'result', host, outcome: kind, ...details }).slice(0, -1)},`
  yield* formatStream('stdout', output.stdout)
  yield ','
  yield* formatStream('stderr', output.stderr)
  yield `,"durationMs":${Math.round(durationMs)}}\n`
}

/** An attempt that failed, and the delay until the next one. */
export function formatRetry(host: string, outcome: RunOutcome, failures: number, delayMs: number): string {
  const { kind, ...details } = outcome
  return `${JSON.stringify({ type: 'retry', host, outcome: kind, ...details, failures, delayMs })}\n`
}

export function formatSummaryLine(summary: RunSummary): string {
  return `${JSON.stringify({ type: 'summary', ...summary })}\n`
}

/** Bytes that are no UTF-8 have no place in a JSON string: they come as base64 under another name. */
function* formatStream(name: 'stdout' | 'stderr', stream: StreamStore): Generator<string> {
  if (stream.isText()) {
    yield `"${name}":"`
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    for (const bytes of stream.read()) yield JSON.stringify(decoder.decode(bytes, { stream: true })).slice(1, -1)
    yield '"'
    return
  }
  yield `"${name}Base64":"`
  let rest = Buffer.alloc(0)
  for (const bytes of stream.read()) {
    const all = Buffer.concat([rest, bytes])
    const whole = all.length - (all.length % 3)
    yield all.subarray(0, whole).toString('base64')
    rest = all.subarray(whole)
  }
  yield `${rest.toString('base64')}"`
}
