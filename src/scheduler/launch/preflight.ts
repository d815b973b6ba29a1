/**
 * What is known to go wrong on the hosts of a gang, from facts that each of them tells: what every launched job is asked before it
 * begins (`hostFacts`, well below a second), and what only `muster launch check` asks, as importing takes seconds (`slowFacts`). Pure.
 */
import { pythonWords } from '../../base/python-words.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { LaunchedBundle, LaunchedGang, Said } from './launcher.ts'

/** As Muster's doctor has them: `blocker` means that the job cannot start. */
export type PreflightFinding = {
  readonly host: string
  readonly gravity: 'blocker' | 'risk' | 'note'
  readonly id: string
  readonly cause: string
  readonly detail?: string
  readonly hint?: string
}

const GIB = 2 ** 30

/** The script that a command runs: `train.py` of `python3 -u train.py --epochs 3`. Undefined: it is another program. */
export function scriptOf(command: string): string | undefined {
  return /^(?:\S*python[\d.]*(?: -[uBOE]+)* +)?((?!-)[\w./+-]+\.(?:py|sh))(?:\s|$)/.exec(command)?.[1]
}

/** In the directory of the job. Tells `card`, `mtu`, `link`, `shm` (KiB), `script` (a checksum), `gpus`, `busy` (processes). */
export function hostFacts({ command }: Pick<LaunchedGang, 'command'>, bundle: LaunchedBundle): string {
  const { address, devices, request } = bundle
  const script = scriptOf(command)
  return [
    `set -- $(ip -o addr show to ${shellQuote(address)} 2>/dev/null); c=\${2%%@*}`,
    'case $c in ""|*/*) ;; *) echo "card $c"; for n in mtu operstate; do read -r v <"/sys/class/net/$c/$n" && echo "$n $v"; done;; esac 2>/dev/null',
    `set -- $(df -Pk /dev/shm 2>/dev/null | tail -n 1); echo "shm \${2:-0}"`,
    ...(script === undefined
      ? []
      : [
          // A program without a path may also be in PATH.
          `s=${shellQuote(script)}; [ -r "$s" ] || s=$(command -v "$s") || { echo ${shellQuote(`refuse ${script} is not in its directory; copy it to all hosts: --copy-dir`)} "($PWD)"; exit; }`,
          'echo "script $(cksum <"$s")"',
        ]),
    ...(request.gpuCount > 0 && devices.length > 0 ? [gpuFacts(devices)] : []),
  ].join('\n')
}

/** Where nvidia-smi is missing, devices are of another maker. */
const gpuFacts = (devices: readonly number[]): string => `if command -v nvidia-smi >/dev/null; then
g=$(timeout 10 nvidia-smi --query-gpu=index,uuid --format=csv,noheader 2>&1) || { echo "refuse nvidia-smi: $(echo "$g" | head -n 1 | head -c 200)"; exit; }
for i in ${devices.join(' ')}; do
u=$(echo "$g" | sed -n "s/^$i, *//p"); [ -n "$u" ] || { echo "refuse GPU $i is not there: nvidia-smi shows $(echo "$g" | wc -l)"; exit; }
p="$p $(timeout 10 nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader 2>/dev/null | sed -n "s/^$u, *//p" | tr '\\n' ' ')"
done
echo "busy" $p
fi`

/**
 * `module`: what ranks import; `python`: lines for sh that set MUSTER_PYTHON. `mark`: of processes of this queue; `running`: jobs that
 * run there, as `JOB-ATTEMPT`. Tells `left`: `PID JOB-ATTEMPT-RANK,` for each process of another one.
 */
export function slowFacts(
  module: string | undefined,
  python: string | undefined,
  mark: string,
  running: readonly string[] = [],
): string {
  const find = [...running.map((attempt) => `/^${mark}${attempt}-/d`), `s/^${mark}/$p /p`].join('\n')
  return [
    python ?? 'MUSTER_PYTHON=python3',
    'name=$(uname -n); set -- $(getent hosts "$name" 2>/dev/null); echo "own $1"',
    `echo "interpreter $("$MUSTER_PYTHON" -c 'import sys; print(".".join(map(str, sys.version_info[:3])), sys.executable)' 2>&1 | tail -n 1 | head -c 200)"`,
    ...(module === undefined
      ? []
      : [
          `echo "module $(timeout 40 "$MUSTER_PYTHON" ${pythonWords(`import ${module} as m; print("version", getattr(m, "__version__", "unknown"))`)} 2>&1 | tail -n 1 | head -c 300)"`,
          ...(module === 'torch'
            ? [
                `command -v nvidia-smi >/dev/null && echo "nccl $(timeout 15 "$MUSTER_PYTHON" ${pythonWords('import torch; print(*torch.cuda.nccl.version(), sep=".")')} 2>&1 | tail -n 1 | head -c 100)"`,
              ]
            : []),
        ]),
    // proc(5): the environment of other users' processes cannot be read.
    `echo "left" $(for f in /proc/[0-9]*; do p=\${f#/proc/}; { tr '\\000' '\\n' <"$f/environ" | sed -n "${find}"; } 2>/dev/null; done | head -n 50 | tr '\\n' ',' | head -c 2000)`,
  ].join('\n')
}

/** What facts of hosts mean for the gang; one that has not told a fact is not judged by it. `module`: what its ranks import. */
export function preflightFindings(
  { bundles, command }: LaunchedGang,
  module: string | undefined,
): readonly PreflightFinding[] {
  const script = scriptOf(command) ?? 'the script'
  const byHost = [...Map.groupBy(bundles, ({ host }) => host).values()]
  const own = byHost.flatMap((group) => hostFindings(group, module))
  return [
    ...own,
    ...differences(byHost, 'script', () => [
      'script-differs',
      `${script} is not the same on all hosts`,
      'Copy it to all hosts: --copy-dir.',
    ]),
    ...differences(byHost, 'mtu', () => [
      'mtu-differs',
      'the MTU of its network card is not the same on all hosts',
      'Large messages may be lost without a word; set the same MTU on all hosts.',
    ]),
    ...differences(
      byHost,
      'interpreter',
      () => ['python-differs', 'Python is not the same on all hosts', 'Use one environment on all hosts: --from-env.'],
      (text) => text.split(' ')[0],
    ),
    ...differences(byHost, 'module', () => [
      'module-differs',
      'the version of the library is not the same on all hosts',
      'Use one environment on all hosts: --from-env.',
    ]),
    ...differences(byHost, 'nccl', () => [
      'nccl-differs',
      'the version of NCCL is not the same on all hosts',
      'NCCL needs the same version on all hosts.',
    ]),
  ]
}

type HostBundles = readonly LaunchedBundle[]

/** All that one host said: its bundles are asked one by one. */
const saidBy = (group: HostBundles): Said => Object.assign({}, ...group.map(({ said }) => said))

function hostFindings(group: HostBundles, imported: string | undefined): readonly PreflightFinding[] {
  const [{ host = '', request } = {}] = group
  const { refuse, operstate, card = '', shm = '0', busy = '', own = '', module = '', left = '' } = saidBy(group)
  const found: PreflightFinding[] = []
  const add = (gravity: PreflightFinding['gravity'], id: string, cause: string, more = {}) =>
    found.push({ host, gravity, id, cause, ...more })
  if (refuse !== undefined) add('blocker', 'refused', refuse)
  if (operstate === 'down' || operstate === 'lowerlayerdown')
    add('blocker', 'card-down', `the network card ${card} is down`)
  const ranks = group.reduce((sum, one) => sum + one.ranks, 0)
  const bytes = Number(shm) * 1024
  if (/^[1-9]\d{0,14}$/.test(shm) && bytes < ranks * GIB && imported === 'torch')
    add('risk', 'shm-small', '/dev/shm has less than 1 GiB for each rank', {
      detail: `${(bytes / GIB).toFixed(1)} GiB for ${ranks}`,
      hint: `Data loaders of PyTorch may die with a bus error. On the host: mount -o remount,size=${ranks}G /dev/shm`,
    })
  const pids = busy.split(' ').filter((word) => /^\d{1,10}$/.test(word))
  if (pids.length > 0 && request?.gpuMilli === 1000)
    add('risk', 'gpu-busy', 'other processes compute on its GPUs', { detail: `pids ${pids.slice(0, 8).join(' ')}` })
  if (own.startsWith('127.'))
    add('note', 'own-name', 'its own name resolves to a loopback address', {
      detail: own,
      hint: 'Muster passes addresses; programs that use host names by themselves fail.',
    })
  if (module !== '' && !module.startsWith('version'))
    add('blocker', 'no-import', 'the library cannot be imported', { detail: module })
  const old = left.split(',').flatMap((word) => {
    const [, pid, job] = /^(\d{1,10}) (\d{1,15})-\d{1,15}-\d{1,15}$/.exec(word) ?? []
    return pid === undefined ? [] : [`pid ${pid} of job ${job}`]
  })
  if (old.length > 0)
    add('risk', 'left-over', 'processes of earlier jobs are still running', {
      detail: old.slice(0, 8).join(', '),
      hint: 'They may hold GPUs and ports. See what they are, and end them.',
    })
  return found
}

const DETAIL = 100

function differences(
  byHost: readonly HostBundles[],
  fact: string,
  words: () => readonly [id: string, cause: string, hint: string],
  partOf: (text: string) => string | undefined = (text) => text,
): readonly PreflightFinding[] {
  const told = byHost.flatMap((group) => {
    const text = saidBy(group)[fact]
    return text === undefined ? [] : [{ host: group[0]?.host ?? '', text: text.slice(0, DETAIL) }]
  })
  if (new Set(told.map(({ text }) => partOf(text))).size < 2) return []
  const [id, cause, hint] = words()
  return told.map(({ host, text }) => ({ host, gravity: 'risk', id, cause, detail: text, hint }))
}
