/**
 * PyTorch's agent, one a bundle (torch.distributed.run of torch 1.13 and 2.x). The rendezvous is at the first bundle, on a port that
 * was free there when it was asked.
 */

import { MusterError } from '../../base/errors.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { askCard, askPorts, askProgram, differsIn, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { HOST_ROLE, type LaunchedGang, type Launcher, type LaunchSpec, type LaunchStep, ORDER } from './launcher.ts'
import { asRank } from './rank.ts'

const AGENT = 'torchrun'

export const torchrun: Launcher = {
  name: 'torchrun',
  summary: 'PyTorch: one torchrun on each host',
  options: [
    {
      flags: 'procs <n>',
      summary: 'start N ranks in each bundle (default: its GPUs, else 1)',
      values: /^[1-9]\d{0,3}$/,
    },
    {
      flags: 'elastic <min:max>',
      summary: 'let the number of hosts change between MIN and MAX',
      values: /^[1-9]\d{0,3}:[1-9]\d{0,3}$/,
    },
    { flags: 'restarts <n>', summary: 'with --elastic: start all ranks again up to N times', values: /^\d{1,4}$/ },
    { flags: 'torchrun <path>', summary: 'use this program in place of torchrun' },
    ORDER,
  ],
  shape(options, bundles, request) {
    const { elastic, restarts } = options
    if (restarts !== undefined && elastic === undefined)
      throw new MusterError('usage', '--restarts needs --elastic', { hint: 'To start the whole job again: --retries.' })
    const [least = 1, most = bundles] = elastic?.split(':').map(Number) ?? []
    if (least > bundles || most < bundles)
      throw new MusterError('usage', `--elastic ${elastic} does not allow the ${bundles} bundles of the job`)
    return { roles: [{ name: HOST_ROLE, count: bundles, request }], ranks: procsOf(options, request.gpuCount) }
  },
  // NCCL sends to the next rank, gloo (allreduce.cc) to the previous one. With --elastic, c10d chooses the ranks.
  ringDirection: ({ elastic }, { gpuCount }) =>
    elastic !== undefined ? undefined : gpuCount > 0 ? 'next' : 'previous',
  next(gang, bundle) {
    const { options, ports } = gang.spec
    const question = (index: number) =>
      formatQuestion(
        askProgram(options.torchrun ?? AGENT),
        askCard(gang.bundles[index]?.address ?? ''),
        'tell python "$(python3 -c \'import sys; print(*sys.version_info[:2], sep=".")\' 2>&1 | tail -n 1)"',
        ...(index === 0 ? [askPorts(1, ports, beginOf(gang))] : []),
      )
    const step = nextQuestion(gang, bundle, question)
    if (step !== undefined) return step
    const difference = differsIn(gang, 'python', 'the version of python3')
    return difference === undefined ? start(gang, bundle) : { kind: 'refuse', reason: difference }
  },
}

const procsOf = ({ procs }: LaunchSpec['options'], gpus: number): number => Number(procs ?? Math.max(1, gpus))

/** Where the search for a free port begins. */
export const beginOf = ({ id }: LaunchedGang): number => {
  const [job = 0, attempt = 0] = id.split('.').map(Number)
  return job * 31 + attempt * 7
}

function start(gang: LaunchedGang, bundle: number): LaunchStep {
  const { bundles, command, id, spec } = gang
  const [first] = bundles
  const own = bundles[bundle]
  const [port] = portsOf(first?.said)
  if (first === undefined || own === undefined || port === undefined)
    return { kind: 'refuse', reason: `${first?.host}: it told no port` }
  const { elastic, restarts = '0', torchrun: program = AGENT } = spec.options
  const rendezvous =
    elastic === undefined
      ? ['--nnodes', bundles.length, '--node_rank', bundle, '--master_addr', first.address, '--master_port', port]
      : [
          ...['--nnodes', elastic, '--max_restarts', restarts, '--rdzv_backend', 'c10d', '--rdzv_id', id],
          ...['--rdzv_endpoint', `${first.address}:${port}`, '--local_addr', own.address],
        ]
  const words = [program, '--nproc_per_node', procsOf(spec.options, own.request.gpuCount), ...rendezvous]
  return {
    kind: 'start',
    command: `exec ${words.map((word) => shellQuote(String(word))).join(' ')} --no_python ${asRank(withPython(command))}`,
    environment: cardsOf(own.said, spec),
  }
}

/** torchrun runs `train.py` by Python itself; anything else is a program. */
export const withPython = (command: string): string => (/^\S+\.py(\s|$)/.test(command) ? `python3 ${command}` : command)

/** The card of the host's own address, which has another name on each host; the user's own choice stays. */
export function cardsOf(said: Readonly<Record<string, string>>, { environment = {} }: LaunchSpec) {
  const names = ['NCCL_SOCKET_IFNAME', 'GLOO_SOCKET_IFNAME', 'TP_SOCKET_IFNAME']
  const card = /^[\w.:-]{1,15}$/.exec(said.card ?? '')?.[0]
  return { ...Object.fromEntries(card === undefined ? [] : names.map((name) => [name, card])), ...environment }
}
