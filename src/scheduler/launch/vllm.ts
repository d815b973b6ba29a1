/**
 * vLLM without Ray (options as vLLM 0.33 reads them, vllm/engine/arg_utils.py): one `vllm serve` a bundle, all but the first one
 * headless. It is a service: it is ready when /health answers on its host, and runs until it is cancelled. With Ray, one `vllm serve`
 * asks Ray for its GPUs itself (vllm/v1/executor/ray_utils.py).
 */

import { MusterError } from '../../base/errors.ts'
import { pythonWords } from '../../base/python-words.ts'
import { readyLine } from '../../base/ready-line.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import { askCard, askPorts, askProgram, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { bundleLine } from './by-hand.ts'
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
  inserts: { hint: 'Write the model and options of vllm serve alone.' },
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
    if (first?.said.ready === undefined || port === undefined) return undefined
    return `http://${hostPart(first.host.startsWith('@') ? (first.said.node ?? '') : first.address)}:${port}/v1`
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
  byHand: (gang) => gang.bundles.map((own, bundle) => bundleLine(gang, bundle, variablesOf(own), lineOf(gang, bundle))),
  onEngine: {
    needs(options, bundles, { gpuCount }) {
      const { tp, pp, dp } = sizesOf(options)
      const wrong = (what: string, hint: string) =>
        new MusterError('usage', `${what} cannot be used with --launch vllm --engine ray`, { hint })
      if (dp > 1) throw wrong('--dp', `Submit several servers: --engines ${dp}.`)
      if (bundles > 1) throw wrong('--bundles', 'Leave it out: --tp × --pp says how many GPUs vLLM asks Ray for.')
      if (gpuCount > 0) throw wrong('--gpu', 'Leave it out: --tp × --pp says how many GPUs vLLM asks Ray for.')
      return { bundles: [{ count: tp * pp, amounts: { GPU: 1 } }], strategy: 'PACK' }
    },
    command: (gang) => {
      const { tp, pp } = sizesOf(gang.spec.options)
      const { interface: card, vllm: program = 'vllm' } = gang.spec.options
      const sizes = `--tensor-parallel-size ${tp} --pipeline-parallel-size ${pp}`
      return `${ON_RAY}
command -v ${shellQuote(program)} >/dev/null || refuse ${shellQuote(`${program} is not in PATH`)}
${askPorts(1, gang.spec.ports, beginOf(gang))}
${card === undefined ? '' : cardLines(shellQuote(card))}${announceOnRay}
exec ${shellQuote(program)} serve ${gang.command} --distributed-executor-backend ray ${sizes} --host "$VLLM_HOST_IP" --port "$port"`
    },
  },
}

/**
 * vLLM copies the driver's variables to all of its workers. A driver without a GPU of its own must not hide those of the node from
 * vLLM, and what describes a job of one process would be wrong in each worker.
 */
const ON_RAY = `tell() { port=$2; }
refuse() { echo "muster: $*"; exit 1; }
unset CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
[ -n "$VLLM_HOST_IP" ] || refuse 'VLLM_HOST_IP is not set in this Ray cluster. Start it again: muster ray down, then muster ray up'`

/** What a node has set for itself stays. */
const cardLines = (card: string): string =>
  ['NCCL_SOCKET_IFNAME', 'GLOO_SOCKET_IFNAME'].map((name) => `[ -n "$${name}" ] || export ${name}=${card}\n`).join('')

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
  `{ ${untilAnswers(shellQuote(url))} && echo "ready 1" >&9; } 9<>"$MUSTER_SAY" >/dev/null 2>&1 &
`

const untilAnswers = (url: string): string =>
  `while kill -0 $$ && ! python3 ${pythonWords('import urllib.request; urllib.request.urlopen(sys.argv[1],timeout=5)')} ${url}; do sleep 2; done; kill -0 $$`

const announceOnRay = `{ ${untilAnswers('"http://$VLLM_HOST_IP:$port/health"')} && echo "${readyLine('$VLLM_HOST_IP', '$port')}" >&9; } 9>&1 >/dev/null 2>&1 &`
