/**
 * vLLM without Ray (options as vLLM 0.33 reads them, vllm/engine/arg_utils.py): one `vllm serve` a bundle, all but the first one
 * headless. It is a service: it is ready when /health answers on its host, and runs until it is cancelled.
 */
import { MusterError } from '../../base/errors.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import { askCard, askPorts, askProgram, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { handLine } from './by-hand.ts'
import { HOST_ROLE, type LaunchedBundle, type LaunchedGang, type Launcher, type LaunchSpec } from './launcher.ts'
import { beginOf, cardsOf, findPython } from './torchrun.ts'

const count = /^[1-9]\d{0,3}$/
/** Of the server, of the workers' rendezvous, and of data parallel engines. */
const PORTS = 3

const sizesOf = ({ tp = '1', pp = '1', dp = '1' }: LaunchSpec['options']) => ({
  tp: Number(tp),
  pp: Number(pp),
  dp: Number(dp),
})

export const vllm: Launcher = {
  name: 'vllm',
  summary: 'serve a model with vLLM, on one host or several',
  options: [
    { flags: 'tp <n>', summary: 'split each layer over N GPUs (tensor parallel)', values: count },
    { flags: 'pp <n>', summary: 'split the layers into N stages (pipeline parallel)', values: count },
    { flags: 'dp <n>', summary: 'run N copies of the model behind one server (data parallel)', values: count },
    {
      flags: 'engines <n>',
      summary: 'submit N servers, each with a port of its own',
      values: /^[1-9]\d{0,2}$/,
      isCopies: true,
    },
    { flags: 'vllm <path>', summary: 'use this program in place of vllm' },
  ],
  shape(options, bundles, request) {
    const { tp, pp, dp } = sizesOf(options)
    const world = tp * pp * dp
    const how = `--tp ${tp} × --pp ${pp} × --dp ${dp} = ${world} GPUs`
    if (world % bundles !== 0) throw new MusterError('usage', `${how} cannot be split evenly over ${bundles} bundles`)
    const gpuCount = world / bundles
    if (request.gpuCount > 0 && (request.gpuCount !== gpuCount || request.gpuMilli !== WHOLE_MILLI))
      throw new MusterError('usage', `${how} in ${bundles} bundles are ${gpuCount} in each, not what --gpu says`, {
        hint: 'Leave --gpu out.',
      })
    const spread = tp * pp > gpuCount ? gpuCount : tp * pp
    if (bundles > 1 && (tp * pp) % spread !== 0)
      throw new MusterError('usage', `a model on ${tp * pp} GPUs cannot be split over bundles of ${gpuCount}`)
    return {
      roles: [{ name: HOST_ROLE, count: bundles, request: { ...request, gpuCount, gpuMilli: WHOLE_MILLI } }],
      isOnePerHost: true,
    }
  },
  endpoint({ bundles: [first] }) {
    const [port] = portsOf(first?.said)
    return first?.said.ready === undefined || port === undefined
      ? undefined
      : `http://${hostPart(first.address)}:${port}/v1`
  },
  imports: () => ({ module: 'vllm', python: findPython('vllm') }),
  next(gang, bundle) {
    const { bundles, spec } = gang
    const question = (index: number) =>
      formatQuestion(
        askProgram(spec.options.vllm ?? 'vllm'),
        askCard(bundles[index]?.address ?? ''),
        ...(index === 0 ? [askPorts(PORTS, spec.ports, beginOf(gang))] : []),
      )
    const step = nextQuestion(gang, bundle, question)
    if (step !== undefined) return step
    const own = bundles[bundle]
    const [port] = portsOf(bundles[0]?.said)
    if (own === undefined || port === undefined)
      return { kind: 'refuse', reason: `${bundles[0]?.host}: it told no port` }
    return {
      kind: 'start',
      command: `${bundle === 0 ? announce(`http://${hostPart(own.address)}:${port}/health`) : ''}exec ${lineOf(gang, bundle)}`,
      environment: variablesOf(own),
    }
  },
  byHand: (gang) => gang.bundles.map((own, bundle) => handLine(gang, bundle, variablesOf(own), lineOf(gang, bundle))),
}

const variablesOf = ({ said, address }: LaunchedBundle): Readonly<Record<string, string>> => ({
  ...cardsOf(said),
  VLLM_HOST_IP: address,
})

const hostPart = (address: string): string => (address.includes(':') ? `[${address}]` : address)

function lineOf({ bundles, command, spec }: LaunchedGang, bundle: number): string {
  const { tp, pp, dp } = sizesOf(spec.options)
  const [first] = bundles
  const [port = 0, master = 0, rpc = 0] = portsOf(first?.said)
  const address = first?.address ?? ''
  const gpus = first?.request.gpuCount ?? 1
  // Copies that fit into a bundle are counted from its first one; a copy on several bundles needs to know them all.
  const isWhole = tp * pp <= gpus
  const copies = Math.floor(gpus / (tp * pp))
  const parallel = [
    ...(dp === 1 ? [] : ['--data-parallel-size', dp]),
    ...(dp === 1 || bundles.length === 1 ? [] : ['--data-parallel-address', address, '--data-parallel-rpc-port', rpc]),
    ...(dp === 1 || bundles.length === 1 || !isWhole ? [] : ['--data-parallel-size-local', copies]),
  ]
  const nodes =
    bundles.length === 1 || isWhole
      ? []
      : ['--nnodes', bundles.length, '--node-rank', bundle, '--master-addr', address, '--master-port', master]
  const role =
    bundle === 0
      ? ['--host', address, '--port', port]
      : ['--headless', ...(isWhole ? ['--data-parallel-start-rank', bundle * copies] : [])]
  const words = ['--tensor-parallel-size', tp, '--pipeline-parallel-size', pp, ...parallel, ...nodes, ...role]
  const program = shellQuote(spec.options.vllm ?? 'vllm')
  return `${program} serve ${command} ${words.map((word) => shellQuote(String(word))).join(' ')}`
}

/** Tells the fact `ready` once the server answers; it ends with the server. */
const announce = (url: string): string =>
  `{ while kill -0 $$ && ! python3 -c ${shellQuote('import sys,urllib.request; urllib.request.urlopen(sys.argv[1],timeout=5)')} ${shellQuote(url)}; do sleep 2; done; kill -0 $$ && echo "ready 1" >&9; } 9<>"$MUSTER_SAY" >/dev/null 2>&1 &
`
