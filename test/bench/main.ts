/** `npm run bench -- NAME [options]` measures Muster next to its peers, and prints tables for docs/benchmarks.md. */
import { execFileSync } from 'node:child_process'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { REPOSITORY } from './support/build.ts'

const USAGE = `npm run bench -- NAME [options]

  compositor                 compose, compare and encode a whole 240×67 frame
  kubernetes                 read and draw a Kubernetes cluster of 50 nodes and 1,000 pods
  ranks                      fold the output of 8 ranks with 10,000 lines each
  shells                     compare the console with tmux and one ssh per pane, on its own SSH servers
    --hosts 4,16,64          numbers of hosts
    --keys 100               keys per measurement
    --floods 10,50           MB/s of output, over all panes but the first
    --connections 200        shells to open, compared with as many ssh processes (0: skip)
    --parts keys             any one of: keys (only key to paint without other output), most (only as much output as can be had), attach (only after the client was killed)
    --shell sh               shell of the hosts: sh (the kernel echoes) or bash (its line editor does)
    --quick                  fewer repeats, shorter waits
  start                      measure installing in an empty Debian, and starting beside pdsh (root)
    --rounds 21
  run                        compare muster run with pdsh, clush, pssh, Ansible and ssh, on its own SSH servers (root)
    --rounds 7               rounds per program, taking turns
    --parts cold,warm        any of: cold, warm, lines, fold, many, memory
  thousand                   compare run, hosts --check and copy with pdsh and clush on 1,000 hosts, and measure the console with them (root)
    --rounds 1
    --parts run,console      any of: run, check, copy, memory, console
  placement                  replay the openb traces in MUSTER_TRACES with every policy; measure the default on growing fleets
    --seeds 42,43            seeds (default 42)
    --policies fgd,first-fit these policies only
  churn                      measure waits of requests that come and go, with every policy, on the openb hosts in MUSTER_TRACES
    --faster                 compress the requests of the published experiment (default: overlay the trace on itself)
    --seeds 1,2,3            parts of the hosts, and where the trace starts
    --loads 90,100           GPUs requested at once, in percent of all
    --thin 24                use every 24th host
    --policies fgd,best-fit  compare the default with these
  gangs                      place gangs from windows of the queue, and as Ray does, on the instances in MUSTER_TRACES
  copy                       compare muster copy with scp, rsync, clush, pdcp and tar, on hosts with slow links (root)
    --rounds 3               rounds per program, taking turns
    --parts small,large,peers   any of these; without peers, only Muster sends the large file
    --receivers 8            hosts that receive the large file
    --mebibytes 256          size of the large file
    --megabits 100           speed of the link of each host and of this machine, per second
  jobs                       measure the job queue on nine hosts, beside task-spooler and Slurm (root)
    --parts store,dispatch,waits,kills,mix,ended   any of these; waits is the part of dispatch on an idle queue
    --rounds 100             rounds of kills (default: MUSTER_ROUNDS, or 100)
    --seconds 3600           start no round of kills after this time
    --scale 1                size of the mix, as a multiple of 5,000 jobs
  env                        measure muster env check on nine hosts with 400 packages each (root)
    --rounds 7
  net                        measure the duration of net mesh, and what watching costs the console and the hosts (root)
    --parts sampler,watch,mesh   any of these
    --hosts 64               hosts to watch
  bring-up                   measure muster up, up again, and status, also while the NFS server is down (root)
    --receivers 9            hosts for trust and a conda prefix
    --rounds 3               rounds of everything but the first up
  ray                        compare muster up ray with ray start by hand and Ray's own launcher, on three hosts (root)
    --rounds 3
    --parts muster,launcher  any of these; ray start by hand is measured with each
  slurm                      measure the CPU time of a poll of Slurm, beside squeue and scontrol (root)
    --jobs 200               jobs in Slurm's queue
    --rounds 21
  studies                    measure studies with 10,000 trials, and over SSH (root); compare them with Optuna's own workers and Ray Tune
    --parts numbers,gaps     any of: numbers, queue, gaps, workers, tune, points (default: numbers,queue)
    --rounds 5               of workers and tune: rounds; of points: seeds
for shells, run, thousand, copy, net and bring-up (the last three take no --node):
    --root DIRECTORY         measure another checkout
    --node ARGUMENT          argument for the node that runs Muster, for example --node=--cpu-prof
`

const numbers = (text: string): number[] => text.split(',').filter(Boolean).map(Number)

function version(program: string, ...args: string[]): string {
  try {
    return execFileSync('/bin/sh', ['-c', `${[program, ...args].join(' ')} 2>&1`], { encoding: 'utf8' }).trim()
  } catch {
    return `${program}: not found`
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    hosts: { type: 'string', default: '4,16,64' },
    keys: { type: 'string', default: '100' },
    floods: { type: 'string', default: '10,50' },
    connections: { type: 'string', default: '200' },
    rounds: { type: 'string' },
    receivers: { type: 'string' },
    jobs: { type: 'string', default: '200' },
    mebibytes: { type: 'string', default: '256' },
    megabits: { type: 'string', default: '100' },
    parts: { type: 'string' },
    shell: { type: 'string' },
    seconds: { type: 'string', default: '3600' },
    scale: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '42' },
    policies: { type: 'string', default: '' },
    loads: { type: 'string', default: '90,100' },
    thin: { type: 'string', default: '24' },
    faster: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    root: { type: 'string', default: REPOSITORY },
    node: { type: 'string', multiple: true, default: [] },
  },
})
/** @throws Error for any other word */
function oneOf<T extends string>(word: string | undefined, words: readonly T[]): T | undefined {
  const found = words.find((each) => each === word)
  if (word !== undefined && found === undefined) throw new Error(`${word} is not one of ${words.join(', ')}`)
  return found
}

const log = (line: string) => void process.stderr.write(`${line}\n`)
const started = loadavg()
const load = () => [...started.slice(0, 1), ...loadavg().slice(0, 1)].map((value) => value.toFixed(1)).join(' → ')

// Everything that was started is stopped by its owner, not by the end of the process.
const interrupted = Promise.withResolvers<never>()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => interrupted.reject(new Error(`stopped by ${signal}`)))

let table: string
switch (positionals[0]) {
  case 'gangs':
    table = (await import('./gangs.ts')).benchGangs(process.env.MUSTER_TRACES ?? '')
    break
  case 'churn':
    table = (await import('./churn.ts')).benchChurn({
      traces: process.env.MUSTER_TRACES ?? '',
      seeds: numbers(values.seeds),
      policies: values.policies.split(',').filter(Boolean),
      loads: numbers(values.loads),
      thin: Number(values.thin),
      isFaster: values.faster,
      log,
    })
    break
  case 'placement':
    table = (await import('./placement.ts')).benchPlacement({
      traces: process.env.MUSTER_TRACES ?? '',
      seeds: numbers(values.seeds),
      policies: values.policies.split(',').filter(Boolean),
      log,
    })
    break
  case 'compositor':
    table = (await import('./compositor.ts')).benchCompositor()
    break
  case 'kubernetes':
    table = (await import('./kubernetes.ts')).benchKubernetes()
    break
  case 'ranks':
    table = (await import('./ranks.ts')).benchRanks()
    break
  case 'shells':
    table = await (await import('./shells/shells.ts')).benchShells({
      hosts: numbers(values.hosts),
      keys: values.quick ? Math.min(50, Number(values.keys)) : Number(values.keys),
      connections: Number(values.connections),
      repeats: values.quick ? 1 : 3,
      part: oneOf(values.parts, ['attach', 'keys', 'most']),
      shell: oneOf(values.shell, ['sh', 'bash']) ?? 'sh',
      idleMs: values.quick ? 10_000 : 30_000,
      floods: numbers(values.floods),
      nodeArguments: values.node,
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'start':
    table = await (await import('./start.ts')).benchStart({
      rounds: Number(values.rounds ?? 21),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'run':
  case 'thousand': {
    const { enterNamespace } = await import('./run/hosts.ts')
    const exitCode = await enterNamespace()
    if (exitCode !== undefined) process.exit(exitCode)
    const isThousand = positionals[0] === 'thousand'
    const bench = isThousand
      ? (await import('./thousand/thousand.ts')).benchThousand
      : (await import('./run/run.ts')).benchRun
    table = await bench({
      rounds: Number(values.rounds ?? (isThousand ? 1 : 7)),
      parts: values.parts?.split(','),
      nodeArguments: values.node,
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  }
  case 'copy':
    table = await (await import('./copy/copy.ts')).benchCopy({
      hosts: Number(values.receivers ?? 8),
      mebibytes: Number(values.mebibytes),
      megabitsPerSecond: Number(values.megabits),
      rounds: Number(values.rounds ?? 3),
      parts: (values.parts ?? 'small,large,peers').split(','),
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'jobs':
    table = await (await import('./jobs/jobs.ts')).benchJobs({
      parts: (values.parts ?? 'store,dispatch,kills,mix,ended').split(','),
      rounds: Number(values.rounds ?? process.env.MUSTER_ROUNDS ?? 100),
      seconds: Number(values.seconds),
      scale: Number(values.scale),
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'env':
    table = await (await import('./env.ts')).benchEnv({
      rounds: Number(values.rounds ?? 7),
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'net':
    table = await (await import('./net/net.ts')).benchNet({
      parts: (values.parts ?? 'sampler,watch,mesh').split(','),
      hosts: Math.max(...numbers(values.hosts)),
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'bring-up':
    table = await (await import('./bring-up/bring-up.ts')).benchBringUp({
      hosts: Number(values.receivers ?? 9),
      rounds: Number(values.rounds ?? 3),
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'ray':
    table = await (await import('./ray.ts')).benchRay({
      rounds: Number(values.rounds ?? 3),
      parts: (values.parts ?? 'muster,launcher').split(','),
      root: resolve(values.root),
    })
    break
  case 'slurm':
    table = await (await import('./slurm.ts')).benchSlurm({
      jobs: Number(values.jobs),
      rounds: Number(values.rounds ?? 21),
      interrupted: interrupted.promise,
      log,
    })
    break
  case 'studies':
    table = await (await import('./studies/studies.ts')).benchStudies({
      parts: (values.parts ?? 'numbers,queue').split(','),
      rounds: Number(values.rounds ?? 5),
      root: resolve(values.root),
      interrupted: interrupted.promise,
      log,
    })
    break
  default:
    process.stderr.write(USAGE)
    process.exit(2)
}
const [cpu] = cpus()
process.stdout.write(`
${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpu?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, Node ${process.version}, ${version('tmux', '-V')}, ${version('ssh', '-V')}; load ${load()}

${table}
`)
