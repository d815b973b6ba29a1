/**
 * PyTorch's agent, one a bundle (torch.distributed.run of torch 1.13 and 2.x); bundles that share a host have an agent each. The
 * rendezvous is at the first bundle, on a port that was free there when it was asked.
 */
import { MusterError } from '../../base/errors.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { askCard, askPorts, askProgram, differsIn, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { handLine } from './by-hand.ts'
import { asPlainRank, FAIL, needs, SET_CARDS } from './in-gang.ts'
import {
  type GangOnEngine,
  HOST_ROLE,
  type LaunchedGang,
  type Launcher,
  type LaunchSpec,
  type LaunchStep,
  ORDER,
  type Said,
} from './launcher.ts'
import { asProgram, asRank } from './rank.ts'

const AGENT = 'torchrun'

export const torchrun: Launcher = {
  name: 'torchrun',
  summary: 'start PyTorch ranks, with one torchrun on each host',
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
  // By c10d.
  choosesRanks: ({ elastic }) => elastic !== undefined,
  // NCCL sends to the next rank, gloo (allreduce.cc) to the previous one.
  ringDirection: ({ elastic }, { gpuCount }) =>
    elastic !== undefined ? undefined : gpuCount > 0 ? 'next' : 'previous',
  next(gang, bundle) {
    const { options, ports } = gang.spec
    const { torchrun: agent = AGENT } = options
    const question = (index: number) =>
      formatQuestion(
        askProgram(agent),
        askCard(gang.bundles[index]?.address ?? ''),
        findPython(agent),
        `tell python "$("$MUSTER_PYTHON" -c 'import sys; print(*sys.version_info[:2], sep=".")' 2>&1 | tail -n 1)"`,
        ...(options.elastic === undefined ? [] : [ASK_NAME]),
        ...(index === 0 ? [askPorts(1, ports, beginOf(gang))] : []),
      )
    const step = nextQuestion(gang, bundle, question)
    if (step !== undefined) return step
    const difference = differsIn(gang, 'python', 'the version of Python')
    return difference === undefined ? start(gang, bundle) : { kind: 'refuse', reason: difference }
  },
  inGang: torchrunInGang,
  refusesInGang: ['elastic', 'restarts', 'order'],
  imports: ({ torchrun: agent = AGENT }) => ({ module: 'torch', python: findPython(agent) }),
  byHand: (gang) =>
    gang.bundles.map(({ said }, bundle) => {
      const command = withPython(gang.command)
      const program = asProgram(command)
      const isScript = command !== gang.command && program === command
      const words = isScript ? gang.command : `--no_python ${program}`
      return handLine(gang, bundle, cardsOf(said), `${agentLine(gang, bundle)} ${words}`)
    }),
}

const procsOf = ({ procs }: LaunchSpec['options'], gpus: number): number => Number(procs ?? Math.max(1, gpus))

/** Where the search for a free port begins. */
export const beginOf = ({ id }: Pick<LaunchedGang, 'id'>): number => {
  const [job = 0, attempt = 0] = id.split('.').map(Number)
  return job * 31 + attempt * 7
}

/** How torchrun is called on the host of a bundle. Undefined: the first host told no port. */
function agentLine({ bundles, id, spec }: LaunchedGang, bundle: number): string | undefined {
  const [first] = bundles
  const own = bundles[bundle]
  const [port] = portsOf(first?.said)
  if (first === undefined || own === undefined || port === undefined) return undefined
  const { elastic, restarts = '0', torchrun: program = AGENT } = spec.options
  const rendezvous =
    elastic === undefined
      ? ['--nnodes', bundles.length, '--node_rank', bundle, '--master_addr', first.address, '--master_port', port]
      : [
          ...['--nnodes', elastic, '--max_restarts', restarts, '--rdzv_backend', 'c10d', '--rdzv_id', id],
          // By itself it compares the address with those to which the host's name resolves.
          ...['--rdzv_endpoint', `${first.address}:${port}`, '--rdzv_conf', `is_host=${bundle === 0 ? 1 : 0}`],
          ...(own.said.name === undefined ? ['--local_addr', own.address] : []),
        ]
  const words = [program, '--nproc_per_node', procsOf(spec.options, own.request.gpuCount), ...rendezvous]
  return words.map((word) => shellQuote(String(word))).join(' ')
}

/** Before torch 2.0 an elastic agent has no --local_addr, and ranks get the name of a host: fact `name`, as torch finds it. */
const ASK_NAME = `"$MUSTER_PYTHON" -c ${shellQuote(`import importlib.util, os, socket
torch = importlib.util.find_spec("torch")
if torch and "local_addr" not in open(os.path.join(os.path.dirname(torch.origin), "distributed", "run.py")).read():
  print("name", socket.getfqdn(socket.gethostname()))`)}`

/**
 * Why a name is refused that a host gives as its own: the others turn it into its address. It is no name of another host, and
 * nothing that may be an address (`167837697` and `0xa510001` are), or they would connect to that host instead of to another one.
 */
function refusedName({ bundles }: LaunchedGang): string | undefined {
  for (const { host, said } of bundles) {
    const name = said.name?.toLowerCase().replace(/\.$/, '')
    if (name === undefined) continue
    if (!/^[\w-]+(\.[\w-]+)*$/.test(name) || /(^|\.)(\d+|0x[\da-f]*)$/.test(name))
      return `${host} calls itself ${said.name}, which is no host name`
    const owner = bundles.find(
      (other) => other.host !== host && [other.host, other.address].some((word) => word.toLowerCase() === name),
    )
    if (owner !== undefined) return `${host} calls itself ${said.name}, which names ${owner.host}`
    const twin = bundles.find(
      (other) => other.host !== host && other.said.name?.toLowerCase() === said.name?.toLowerCase(),
    )
    if (twin !== undefined)
      return `${host} and ${twin.host} both call themselves ${said.name}; --elastic needs different names, or torch 2.0 or later`
  }
  return undefined
}

/** Lines for sh that turn the name of a host of the gang into its address. */
function withAddress({ bundles }: LaunchedGang, command: string): string {
  const names = new Map(bundles.flatMap(({ said: { name }, address }) => (name === undefined ? [] : [[name, address]])))
  const cases = [...names].map(([name, address]) => `${shellQuote(name)}) MASTER_ADDR=${shellQuote(address)};;\n`)
  return cases.length === 0 ? command : `case $MASTER_ADDR in\n${cases.join('')}esac\n${command}`
}

function start(gang: LaunchedGang, bundle: number): LaunchStep {
  const { bundles, command, spec } = gang
  const { request, said = {} } = bundles[bundle] ?? {}
  const line = agentLine(gang, bundle)
  if (request === undefined || line === undefined)
    return { kind: 'refuse', reason: `${bundles[0]?.host}: it told no port` }
  const refused = refusedName(gang)
  if (refused !== undefined) return { kind: 'refuse', reason: refused }
  const procs = procsOf(spec.options, request.gpuCount)
  // torchrun would let each of several ranks use one core.
  const threads = String(Math.max(1, Math.floor(request.cpuMilli / 1000 / procs)))
  return {
    kind: 'start',
    command: `${findPython(spec.options.torchrun ?? AGENT)}
exec ${line} --no_python ${asRank(withAddress(gang, withPython(command, '"$MUSTER_PYTHON"')))}`,
    environment: { ...(procs > 1 ? { OMP_NUM_THREADS: threads } : {}), ...cardsOf(said) },
  }
}

/** Sets MUSTER_PYTHON: the interpreter in the first line of a Python program, else the one in PATH. */
export const findPython = (program: string): string =>
  `MUSTER_PYTHON=$(head -c 300 "$(command -v ${shellQuote(program)})" | tr -d '\\0' | sed -n '1s/^#! *\\([^ ]*python[0-9.]*\\) *$/\\1/p')
export MUSTER_PYTHON="\${MUSTER_PYTHON:-python3}"`

/** `train.py` and `-m module` are run by Python; anything else is a program. */
export const withPython = (command: string, python = 'python3'): string =>
  /^(\S+\.py|-m\s+[\w.]+)(\s|$)/.test(command) ? `${python} ${command}` : command

/** The card of the host's own address, which has another name on each host. */
export function cardsOf({ card = '' }: Said): Readonly<Record<string, string>> {
  const names = ['NCCL_SOCKET_IFNAME', 'GLOO_SOCKET_IFNAME', 'TP_SOCKET_IFNAME']
  return /^[\w.:-]{1,15}$/.test(card) ? Object.fromEntries(names.map((name) => [name, card])) : {}
}

function torchrunInGang({ command, spec, roles }: GangOnEngine): string {
  const { torchrun: agent = 'torchrun' } = spec.options
  const { request } = roles[0] ?? {}
  const procs = procsOf(spec.options, request?.gpuCount ?? 0)
  const threads = Math.max(1, Math.floor((request?.cpuMilli ?? 0) / 1000 / procs))
  return `${FAIL}${needs(agent)}${findPython(agent)}
${SET_CARDS}${procs > 1 ? `export OMP_NUM_THREADS="\${OMP_NUM_THREADS-${threads}}"\n` : ''}exec ${shellQuote(agent)} --nproc_per_node ${procs} --nnodes "$WORLD_SIZE" --node_rank "$RANK" --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" --no_python ${asPlainRank(withPython(command, '"$MUSTER_PYTHON"'))}`
}
