/** The result of a host for `muster run --json` (docs/schema/run.schema.json), in pieces, so that it may be larger than a string. */
import { printableJson } from '../../base/printable.ts'
import type { HostOutput, StreamStore } from './output-store.ts'

/** `head`: the fields before the output, `fields`: those that are wanted, in their order (undefined: all); null where there is none. */
export function* formatResult(
  head: Readonly<Record<string, unknown>>,
  output: HostOutput,
  durationMs: number,
  fields?: readonly string[],
): Generator<string> {
  const streams = (['stdout', 'stderr'] as const).map((name) => {
    const stream = output[name]
    return [stream.isText() ? name : `${name}Base64`, stream] as const
  })
  const pieces = new Map<string, () => Iterable<string>>([
    ...Object.entries(head).map(([name, value]) => [name, () => [printableJson(value)]] as const),
    ...streams.map(([name, stream]) => [name, () => formatStream(stream)] as const),
    ['durationMs', () => [String(Math.round(durationMs))]],
  ])
  let before = '{'
  for (const name of fields ?? pieces.keys()) {
    yield `${before}"${name}":`
    yield* pieces.get(name)?.() ?? ['null']
    before = ','
  }
  yield '}\n'
}

/** Bytes that are no UTF-8 have no place in a JSON string: they are base64. */
function* formatStream(stream: StreamStore): Generator<string> {
  if (stream.isText()) {
    yield '"'
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    for (const bytes of stream.read()) yield printableJson(decoder.decode(bytes, { stream: true })).slice(1, -1)
    yield '"'
    return
  }
  yield '"'
  let rest = Buffer.alloc(0)
  for (const bytes of stream.read()) {
    const all = Buffer.concat([rest, bytes])
    const whole = all.length - (all.length % 3)
    yield all.subarray(0, whole).toString('base64')
    rest = all.subarray(whole)
  }
  yield `${rest.toString('base64')}"`
}
