/** `muster k8s logs` */
import { once } from 'node:events'
import { Lines } from '../../base/json-lines.ts'
import { printableLines } from '../../base/printable.ts'
import { apiPath } from '../../ops/kubernetes/api.ts'
import { podWaitWords } from '../../ops/kubernetes/reasons.ts'
import { numberFrom } from '../command-line/options.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { inNamespace, kubernetesName, type NamespaceOptions, namespaceOf, openCluster, refused } from './open.ts'

type LogsOptions = NamespaceOptions & {
  readonly follow?: boolean
  readonly container?: string
  readonly previous?: boolean
  readonly tail?: number
}

const DEFAULT_TAIL = 10_000

export const verb: VerbCode = {
  define: (command) =>
    inNamespace(command.argument('<pod>', 'name of the pod', kubernetesName))
      .option('-f, --follow', 'keep printing until the pod ends')
      .option(
        '-c, --container <name>',
        'print the output of this container (required if the pod has several)',
        kubernetesName,
      )
      .option('--previous', 'print the output from before the last restart')
      .option('--tail <n>', `print at most the last N lines (default: ${DEFAULT_TAIL})`, numberFrom(0)),
  help: `
Examples:
  muster k8s logs -f train-0-x8k2p        follow the output of a pod until it ends

With --json, each line is an object. Control characters in the output appear as escapes.
`,
  async run(pod: string, options: LogsOptions, context: CliContext) {
    using kubernetes = await openCluster(options, context)
    const where = await namespaceOf(kubernetes, options)
    if (!where.ok) return refused(where, context)
    const { stdout, stderr, signal } = context
    const { follow, container, previous, tail = DEFAULT_TAIL } = options
    const write = writerOf(pod, options, context)
    const path = apiPath('v1', 'namespaces', where.name, 'pods', pod)
    let isEmpty = true
    const refusal = await kubernetes.api.stream(
      `${path}/log`,
      { query: { follow, container, previous, tailLines: tail }, signal },
      async (bytes) => {
        isEmpty = false
        write(bytes)
        if (stdout.writableNeedDrain) await once(stdout, 'drain', { signal })
      },
    )
    write(undefined)
    if (refusal !== undefined) return refused(refusal, context)
    // The log of a pod that has no node is empty, not refused.
    const answer = isEmpty ? await kubernetes.api.request('GET', path, { signal }) : undefined
    const why = answer?.ok ? podWaitWords(answer.body) : undefined
    if (why !== undefined) stderr.write(`muster: ${pod} has printed nothing: ${why}\n`)
    return EXIT.ok
  },
}

const MOST_LINE = 1_000_000

/** Undefined: it was all. */
export function writerOf(
  pod: string,
  { json }: Pick<LogsOptions, 'json'>,
  context: Pick<CliContext, 'stdout' | 'stderr' | 'selection'>,
) {
  const { stdout, stderr } = context
  const decoder = new TextDecoder()
  const textOf = (bytes: Uint8Array | undefined) => decoder.decode(bytes, { stream: bytes !== undefined })
  if (json) {
    const lines = new Lines(
      (text) => stdout.write(jsonLine({ type: 'line', pod, text }, context)),
      () => stderr.write(`muster: a line of more than ${MOST_LINE} characters is left out\n`),
      MOST_LINE,
    )
    let isLineOpen = false
    return (bytes: Uint8Array | undefined) => {
      const text = textOf(bytes)
      if (text !== '') isLineOpen = !text.endsWith('\n')
      lines.push(bytes === undefined && isLineOpen ? `${text}\n` : text)
    }
  }
  return (bytes: Uint8Array | undefined) => void stdout.write(printableLines(textOf(bytes)))
}
