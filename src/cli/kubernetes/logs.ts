/** `muster k8s logs` */
import { once } from 'node:events'
import { Lines } from '../../base/json-lines.ts'
import { printableLines } from '../../base/printable.ts'
import { apiPath } from '../../ops/kubernetes/api.ts'
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
      .option('-c, --container <name>', 'of this container (needed if the pod has several)', kubernetesName)
      .option('--previous', 'of the container before it was restarted')
      .option('--tail <n>', `show at most the last N lines (default: ${DEFAULT_TAIL})`, numberFrom(0)),
  help: `
Examples:
  muster k8s logs -f train-0-x8k2p     what a pod prints, until it ends

With --json, each line is an object. Control characters in the output appear as escapes if stdout is a terminal.
`,
  async run(pod: string, options: LogsOptions, context: CliContext) {
    using kubernetes = await openCluster(options, context)
    const where = await namespaceOf(kubernetes, options)
    if (!where.ok) return refused(where, context)
    const { stdout, signal } = context
    const { follow, container, previous, tail = DEFAULT_TAIL } = options
    const write = writerOf(pod, options, context)
    const refusal = await kubernetes.api.stream(
      `${apiPath('v1', 'namespaces', where.name, 'pods', pod)}/log`,
      { query: { follow, container, previous, tailLines: tail }, signal },
      async (bytes) => {
        write(bytes)
        if (stdout.writableNeedDrain) await once(stdout, 'drain', { signal })
      },
    )
    write(undefined)
    return refusal === undefined ? EXIT.ok : refused(refusal, context)
  },
}

const MOST_LINE = 1_000_000

/** Undefined: it was all. */
function writerOf(pod: string, { json }: LogsOptions, { stdout, stderr }: CliContext) {
  const decoder = new TextDecoder()
  const textOf = (bytes: Uint8Array | undefined) => decoder.decode(bytes, { stream: bytes !== undefined })
  if (json) {
    const lines = new Lines(
      (text) => stdout.write(jsonLine({ type: 'line', pod, text })),
      () => stderr.write(`muster: a line of more than ${MOST_LINE} characters is left out\n`),
      MOST_LINE,
    )
    return (bytes: Uint8Array | undefined) => lines.push(bytes === undefined ? `${textOf(bytes)}\n` : textOf(bytes))
  }
  if (stdout.isTTY) return (bytes: Uint8Array | undefined) => void stdout.write(printableLines(textOf(bytes)))
  return (bytes: Uint8Array | undefined) => void (bytes && stdout.write(bytes))
}
