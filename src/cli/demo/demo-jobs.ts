/** The hosts of the demo: their resources, jobs, commands and hosts.yaml. Pure: the same each time. */

import { shellQuote } from '../../base/shell-quote.ts'
import type { Host } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Metric } from '../../scheduler/jobs/metric.ts'
import type { Submission } from '../../scheduler/jobs/store.ts'
import type { NewStudy } from '../../scheduler/jobs/study-rows.ts'
import type { LaunchSpec } from '../../scheduler/launch/launcher.ts'
import { severalRanks } from '../../scheduler/launch/rank.ts'
import { DEFAULT_PORTS } from '../../scheduler/launch/section.ts'
import { type Strategy, WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import type { StudySpec } from '../../scheduler/study/study.ts'
import { ownCommand } from '../command-line/own-command.ts'
import { expandVariants } from '../job/variants.ts'

const GIB = 2 ** 30

/** By turns; none of it has to exist. */
const SHAPES = [
  { cpu: 16, gpu: 4, memoryBytes: 128 * GIB },
  { cpu: 16, gpu: 4, memoryBytes: 128 * GIB },
  { cpu: 32, gpu: 8, memoryBytes: 256 * GIB },
  { cpu: 32, gpu: 8, memoryBytes: 256 * GIB },
  { cpu: 8, gpu: 2, memoryBytes: 64 * GIB },
  { cpu: 16, gpu: 0, memoryBytes: 64 * GIB },
] as const

/** Its address is for `muster` in a shell of the demo, which must reach no machine of that name. */
export const demoHost = (name: string, index: number): Host => ({
  name,
  number: index + 1,
  address: 'demo.invalid',
  resources: SHAPES[index % SHAPES.length] ?? SHAPES[0],
})

type DemoJob = {
  readonly name: string
  readonly user: string
  readonly command: string
  /** Approximate run time. */
  readonly seconds: number
  readonly cpu: number
  readonly memory?: number
  readonly gpu?: number
  readonly bundles?: number
  readonly strategy?: Strategy
  /** In each bundle, started by a launcher. */
  readonly ranks?: number
  readonly array?: string
  readonly limit?: number
  readonly retries?: number
  readonly priority?: number
}

function submissionOf({ cpu, memory = 0, gpu = 0, ...job }: DemoJob): Submission {
  const { name, command, seconds, bundles = 1, strategy = 'PACK', ranks, limit, retries = 0 } = job
  return {
    spec: {
      name,
      command,
      environment: {},
      request: {
        cpuMilli: cpu * 1000,
        memoryBytes: memory * GIB,
        gpuCount: Math.ceil(gpu),
        gpuMilli: gpu === 0 ? 0 : gpu < 1 ? gpu * WHOLE_MILLI : WHOLE_MILLI,
      },
      bundles,
      strategy,
      retries,
      estimateS: seconds,
      ...(limit === undefined ? {} : { limitS: limit }),
      ...(ranks === undefined ? {} : { launch: launchOf(ranks) }),
      isPreemptible: false,
      // The machine has no such memory to give.
      isUnlimited: true,
    },
    user: job.user,
    priority: job.priority ?? 0,
    isHeld: false,
    after: [],
    variants: expandVariants(job.array, []),
  }
}

/** A row as in `launchers` of hosts.yaml, which starts several ranks on a host and needs nothing but sh. */
const launchOf = (ranks: number): LaunchSpec => ({
  kind: 'demo',
  options: { procs: String(ranks) },
  ports: DEFAULT_PORTS,
  ranks,
  row: {
    command: ['sh', '-c', severalRanks(ranksOf(ranks), `$((WORLD_SIZE * ${ranks}))`), 'ranks'],
    per: 'host',
    ports: 0,
    environment: {},
    done: 'all',
  },
})

/** Muster's own RANK and WORLD_SIZE count bundles. */
const ranksOf = (count: number) =>
  Array.from({ length: count }, (_, local) => ({ rank: `$((RANK * ${count} + ${local}))`, local, command: '"$@"' }))

/** Long jobs print less often: each process costs a little. */
const PAUSE_S = 4

const train = (steps: number) => ({
  command: `train --steps ${steps} --every ${PAUSE_S}`,
  seconds: steps * PAUSE_S,
})
/** One of its ranks is slower than the others. */
const launched = (steps: number, slow: number) => ({
  command: `train --steps ${steps} --every ${PAUSE_S} --slow-rank ${slow}`,
  seconds: 1.5 * steps * PAUSE_S,
})
const failing = { command: `train --steps 20 --every ${PAUSE_S} --bad-rank 1`, seconds: 20 * PAUSE_S }
const distributed = (steps: number) => {
  const { command, seconds } = train(steps)
  return { command: `echo "rank $RANK of $WORLD_SIZE on GPUs $CUDA_VISIBLE_DEVICES"; ${command}`, seconds }
}
const shards = (count: number) => ({
  command: `for n in $(seq ${count}); do sleep ${PAUSE_S}; echo "shard $n of ${count} written"; done`,
  seconds: count * PAUSE_S,
})

const WAITING_FROM = 5

/** The first jobs: most of them start at once, the last ones wait. */
export function firstJobs(hosts: readonly Host[]): readonly Submission[] {
  const jobs: readonly DemoJob[] = [
    { name: 'resnet', user: 'ben', ...launched(24, 5), ranks: 2, cpu: 4, memory: 24, ...gang(hosts, 4, 2, 'SPREAD') },
    { name: 'finetune', user: 'chen', ...train(10), cpu: 4, memory: 64, gpu: 4 },
    { name: 'notebook', user: 'dora', ...shards(30), cpu: 1, memory: 8, gpu: 0.5, array: '1-3' },
    { name: 'tokenize', user: 'ana', ...shards(7), cpu: 8, memory: 32 },
    { name: 'two towers', user: 'dora', ...failing, ranks: 2, cpu: 2, memory: 8, ...gang(hosts, 2, 0, 'SPREAD') },
    { name: 'pretrain', user: 'chen', ...distributed(8), cpu: 4, memory: 64, ...gang(hosts, 3, 4, 'STRICT_SPREAD') },
    { name: 'too large for any host', user: 'ben', ...train(10), cpu: 8, gpu: 16 },
  ]
  // The first ones are meant to run, the others to wait.
  return jobs.map((job, index) => submissionOf({ ...job, priority: index < WAITING_FROM ? 1 : 0 }))
}

/** The job that comes as the `step`th, from 0. */
export function nextJob(step: number, hosts: readonly Host[]): Submission {
  const most = Math.max(...hosts.map(({ resources }) => resources?.gpu ?? 0))
  const jobs: readonly DemoJob[] = [
    { name: 'evaluate', user: 'dora', ...shards(4), cpu: 1, memory: 8, gpu: 0.5, array: '1-4' },
    { name: 'bert', user: 'ana', ...train(10), cpu: 2, memory: 16, gpu: 2 },
    { name: 'two towers', user: 'ben', ...distributed(6), cpu: 2, memory: 16, ...gang(hosts, 2, 2, 'STRICT_SPREAD') },
    { name: 'tokenize', user: 'chen', ...shards(6), cpu: 6, memory: 32 },
    { name: 'import scans', user: 'dora', command: BROKEN, seconds: 6, cpu: 2, memory: 4, retries: 1 },
    { name: 'whole host', user: 'chen', ...train(5), cpu: 8, memory: 64, gpu: most },
    { name: 'render', user: 'dora', ...shards(12), limit: 24, cpu: 4, memory: 8 },
    { name: 'resnet', user: 'ben', ...launched(40, 2), ranks: 2, cpu: 2, memory: 24, ...gang(hosts, 4, 2, 'SPREAD') },
    { name: 'notebook', user: 'ana', ...shards(12), cpu: 1, memory: 8, gpu: 0.5, array: '1-2' },
  ]
  return submissionOf(jobs[step % jobs.length] as DemoJob)
}

const SWEEP_STEPS = 6

/** One that begins with the demo, and others as they come: `number` from 1, since no two studies have the same name. */
export function demoStudy(number: number): NewStudy {
  const rest = { user: 'ana', priority: 1 }
  const { spec: job } = submissionOf({
    ...{ name: studyName(number), command: `train --lr $lr --batch $batch --steps ${SWEEP_STEPS}`, user: rest.user },
    ...{ seconds: 2 * SWEEP_STEPS, cpu: 1, memory: 8, gpu: 1 },
  })
  const metrics: readonly Metric[] = [{ name: 'loss' }, { name: 'acc', isMost: true }, STEP]
  const spec: StudySpec = {
    parameters: ['lr=log:0.001:0.3', 'batch=32,64,128'],
    ...{ method: 'quasi-random', seed: number, metrics: metrics.slice(0, 1), repeat: 1, failures: 10 },
    ...{ atOnce: 6, prune: { rule: 'median', stepMetric: STEP.name, fromStep: 3, fromTrials: 4 } },
  }
  return { name: job.name, ...rest, spec, job: { ...job, metrics, metricsEveryS: 2 }, trials: 24 }
}

const STEP = { name: 'step', pattern: '^step ([0-9]+)/' }

const studyName = (number: number): string => (number === 1 ? 'lr-sweep' : `lr-sweep-${number}`)

const BROKEN = 'echo "reading shard 7"; sleep 6; echo "shard 7: checksum does not match" >&2; exit 1'

/** As many bundles as there are hosts that can hold one. */
function gang(hosts: readonly Host[], bundles: number, gpu: number, strategy: Strategy) {
  const able = hosts.filter(({ resources }) => (resources?.gpu ?? 0) >= gpu).length
  return { bundles: Math.min(bundles, able), gpu, strategy }
}

const STUDY_VERBS = ['create', 'list', 'show', 'results', 'plot', 'stop', 'more']
const VERBS = ['submit', 'list', 'show', 'results', 'wait', 'cancel', 'hold', 'release', 'retry', 'requeue', 'edit']

/** Beside the hosts' home directories: the queue's directory, and a file that is touched when a host uses it. */
export const STATE = 'state'
const WANTED = `${STATE}/wanted`
export const HOSTS_FILE = 'hosts.yaml'

export function musterCommand(): string {
  return `#!/bin/sh
# The queue of the demo. Only the demo reaches its hosts.
case "\${1-} \${2-}" in
  'pack '* | 'sweep '* | ${[...VERBS.map((verb) => `job ${verb}`), ...STUDY_VERBS.map((verb) => `study ${verb}`)].map(shellQuote).join(' | ')}) ;;
  *) echo "muster: the demo has only: muster pack, muster job ${VERBS.join(' | ')}, muster study ${STUDY_VERBS.join(' | ')}, muster sweep" >&2; exit 2 ;;
esac
d=\${HOME%/*}
true >"$d/${WANTED}"
XDG_STATE_HOME="$d/${STATE}" exec ${ownCommand().map(shellQuote).join(' ')} --hosts "$d/${HOSTS_FILE}" "$@"
`
}

/** JSON is YAML. */
export function formatHostsFile({ cluster, hosts, groups }: Inventory): string {
  const declared = hosts.map(({ name, address, resources: { cpu, gpu, memoryBytes = 0 } = {} }) => [
    name,
    { address, resources: { cpu, gpu, memory: `${memoryBytes / GIB}GiB` } },
  ])
  return JSON.stringify({
    cluster,
    hosts: Object.fromEntries(declared),
    groups: Object.fromEntries([...groups].map(([name, members]) => [name, members.join()])),
  })
}

export const TRAIN_COMMAND = `#!/bin/sh
# A pretended training run: prints a loss and an accuracy from time to time, and does nothing else.
lr=0.01 batch=64 steps=30 every=2 slow=none bad=none
while [ $# -gt 0 ]; do
  case "$1" in
    --lr) lr=$2 ;;
    --batch) batch=$2 ;;
    --steps) steps=$2 ;;
    --every) every=$2 ;;
    --slow-rank) slow=$2 ;;
    --bad-rank) bad=$2 ;;
    *) echo "usage: train [--lr RATE] [--batch SIZE] [--steps COUNT] [--every SECONDS]" >&2; exit 2 ;;
  esac
  shift 2 || exit 2
done
[ -z "\${LOCAL_RANK-}" ] || [ "\${WORLD_SIZE-1}" = 1 ] || echo "rank $RANK of $WORLD_SIZE on $HOST"
[ "\${RANK-}" != "$slow" ] || slow=now
[ "\${RANK-}" != "$bad" ] || bad=now
exec awk -v lr="$lr" -v batch="$batch" -v steps="$steps" -v every="$every" -v slow="$slow" -v bad="$bad" 'BEGIN {
  if (slow == "now") every *= 1.5
  far = log(lr / 0.01); least = 0.15 + 0.09 * far * far + batch / 1600
  for (step = 1; step <= steps; step++) {
    if (system("sleep " every) != 0) exit 143
    if (slow == "now" && step == 2) print "data loader: worker 2 restarted"
    if (bad == "now" && step == 4) { print "ValueError: bad batch: shard 7 has no labels" >"/dev/stderr"; exit 1 }
    loss = least + 2 * exp(-4 * step / steps) + 0.02 * sin(step * batch)
    printf "step %d/%d loss=%.4f acc=%.3f\\n", step, steps, loss, exp(-loss / 2)
    fflush()
  }
}'
`
