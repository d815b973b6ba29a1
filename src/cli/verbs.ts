/**
 * Every verb of the command line. Help, `--dry-run`, exit codes of time-outs and docs/commands.md derive from this table; the code
 * of a verb is loaded when the verb is called. A new verb is a file that exports its `VerbCode`, and one entry here.
 */
import type { AreaEntry } from '../ops/kernel/area-entry.ts'
import { LAUNCHERS } from '../scheduler/launch/launchers.ts'
import { FRAMEWORKS } from '../scheduler/plans/frameworks.ts'
import { AREAS } from './bring-up/areas.ts'
import type { Effect, OptionGroup, Verb, VerbCode, VerbGroup, VerbTable } from './command-line/verb.ts'
import { RUN } from './run/entry.ts'
import type { OutputSchema } from './schemas/shape.ts'

const entryFor =
  (effect: Effect) =>
  (summary: string, takes: readonly OptionGroup[], load: Verb['load'], more: Partial<Verb> = {}): Verb => ({
    summary,
    effect,
    takes,
    load,
    ...more,
  })
const reads = entryFor('reads')
const changes = entryFor('changes')
const plans = entryFor('plans')
const console = entryFor('console')

/** One of several verbs in a module. */
const one =
  <Name extends string>(load: () => Promise<Readonly<Record<Name, VerbCode>>>, name: Name): Verb['load'] =>
  async () =>
    (await load())[name]
const bringUp = () => import('./bring-up/verbs.ts')
const copies = () => import('./copy/copy.ts')
const jobChanges = () => import('./job/change.ts')
const jobTables = () => import('./job/show.ts')
const simulateHosts = () => import('./simulate/fleet.ts')
const simulateQueues = () => import('./simulate/queue.ts')
const jobRequests = () => import('./job/submit.ts')
const launches = () => import('./launch/launch.ts')
const studyTables = () => import('./study/show.ts')
const studyChanges = () => import('./study/change.ts')
const studyPrograms = () => import('./study/programs.ts')
const kubernetesTables = () => import('./kubernetes/show.ts')
const sessions = () => import('./sessions/attach.ts')
const rayJobs = () => import('./ray/jobs.ts')

/** Schemas of what `--json` prints. */
const printed = <Name extends string>(
  load: () => Promise<Readonly<Record<Name, OutputSchema>>>,
  name: Name,
): Partial<Verb> => ({
  output: async () => (await load())[name],
})
const ofJobs = () => import('./schemas/jobs.ts')
const ofStudies = () => import('./schemas/studies.ts')
const ofBringUp = () => import('./schemas/bring-up.ts')
const ofHosts = () => import('./schemas/hosts.ts')
const ofNet = () => import('./schemas/net.ts')
const ofRay = () => import('./schemas/ray.ts')
const ofKubernetes = () => import('./schemas/kubernetes.ts')
const ofSimulations = () => import('./schemas/simulate.ts')
const CHANGES = printed(ofBringUp, 'change')
const STATUSES = printed(ofBringUp, 'status')
const COPIES = printed(() => import('./schemas/copy.ts'), 'copy')

const QUEUE = ['inventory'] as const
const CLUSTER = ['inventory', 'connection'] as const
const HOSTS = ['inventory', 'exclude', 'connection'] as const
const REPORT = [...HOSTS, 'color'] as const
const CHANGE = [...REPORT, 'confirmation'] as const

/** Verbs of one area only. */
const OWN_VERBS: Readonly<Record<string, VerbTable>> = {
  env: {
    check: reads(
      'show how the environments of the hosts differ',
      REPORT,
      () => import('./env/check.ts'),
      printed(ofBringUp, 'envCheck'),
    ),
  },
  ray: {
    restart: plans('restart workers', CHANGE, one(rayJobs, 'restart'), CHANGES),
    submit: changes(
      'run a command on the cluster, and show its output until it ends',
      CLUSTER,
      one(rayJobs, 'submit'),
      printed(ofRay, 'rayJobs'),
    ),
    jobs: reads('list the jobs of the cluster, newest last', CLUSTER, one(rayJobs, 'jobs'), printed(ofRay, 'rayJobs')),
    logs: reads('show the output of a job', CLUSTER, one(rayJobs, 'logs'), {
      ...printed(ofRay, 'rayJobs'),
      streams: ['follow'],
    }),
    stop: changes('stop a job', CLUSTER, one(rayJobs, 'stop'), printed(ofRay, 'rayJobs')),
    watch: reads('watch nodes, placement groups and pending requests', CLUSTER, () => import('./ray/watch.ts'), {
      ...printed(ofRay, 'rayWatch'),
      streams: true,
    }),
  },
  k8s: {
    nodes: reads(
      'show GPUs, cores and memory of the nodes, and what pods asked for',
      CLUSTER,
      one(kubernetesTables, 'nodes'),
      printed(ofKubernetes, 'nodes'),
    ),
    pods: reads(
      'list pods: where they run, and why they wait',
      CLUSTER,
      one(kubernetesTables, 'pods'),
      printed(ofKubernetes, 'pods'),
    ),
    why: reads(
      'explain why a pod or a Job waits, or how it ended',
      CLUSTER,
      one(kubernetesTables, 'why'),
      printed(ofKubernetes, 'why'),
    ),
    events: reads('show the events of the last hour', CLUSTER, () => import('./kubernetes/events.ts'), {
      ...printed(ofKubernetes, 'events'),
      streams: ['follow'],
    }),
    logs: reads('show what a pod prints', CLUSTER, () => import('./kubernetes/logs.ts'), {
      ...printed(ofKubernetes, 'logs'),
      streams: ['follow'],
    }),
    exec: changes('run a command in a pod', ['inventory', 'connection'], () => import('./kubernetes/exec.ts')),
  },
}

const AREA_VERBS = {
  status: [reads, REPORT],
  check: [changes, REPORT],
  up: [plans, CHANGE],
  sync: [plans, CHANGE],
  down: [plans, CHANGE],
} as const

/** `muster AREA status` and so on. */
const groupOf = ({ name, summary, verbs, isCheckReadOnly = false }: AreaEntry): VerbGroup => {
  const own = Object.entries(verbs).map(([word, about]) => {
    const verb = word as keyof typeof verbs
    const [entry, takes] = AREA_VERBS[verb]
    const load = () => bringUp().then(({ areaVerb }) => areaVerb(name, verb))
    const kind = verb === 'check' && isCheckReadOnly ? reads : entry
    const { [verb]: printing = CHANGES }: Partial<Record<string, Partial<Verb>>> = { status: STATUSES, check: STATUSES }
    return [verb, kind(about, takes, load, printing)] as const
  })
  return { summary, verbs: { ...Object.fromEntries(own), ...OWN_VERBS[name] } }
}

export const VERBS: VerbTable = {
  run: RUN,
  copy: changes('copy files and directories to every host of the target', HOSTS, one(copies, 'copy'), COPIES),
  fetch: changes('fetch files and directories from every host of the target', HOSTS, one(copies, 'fetch'), COPIES),
  forward: changes('forward ports of hosts to this machine, and back', HOSTS, () => import('./forward/forward.ts'), {
    ...printed(() => import('./schemas/forward.ts'), 'forward'),
    streams: true,
  }),
  demo: console('open the console on embedded SSH hosts, without any setup', ['color'], () => import('./demo/demo.ts')),
  attach: console('bring a detached console back to this terminal', [], one(sessions, 'attach')),
  sessions: reads('list or end open consoles, including detached ones', [], one(sessions, 'sessions'), {
    ...printed(ofHosts, 'sessions'),
    changesWith: ['end'],
  }),
  hosts: reads('list hosts, how each is reached, and whether it answers', HOSTS, () => import('./hosts/hosts.ts'), {
    ...printed(ofHosts, 'hosts'),
    changesWith: ['stop'],
  }),
  doctor: reads(
    'find problems with login, clock, disks, GPUs, permissions and network',
    REPORT,
    () => import('./doctor/doctor.ts'),
    printed(ofHosts, 'doctor'),
  ),
  up: plans('apply hosts.yaml to its hosts', CHANGE, one(bringUp, 'up'), CHANGES),
  down: plans('undo what up did on the hosts', CHANGE, one(bringUp, 'down'), CHANGES),
  status: reads('compare the hosts with hosts.yaml', REPORT, one(bringUp, 'status'), STATUSES),
  left: plans(
    'list what Muster left on hosts, or remove it',
    CHANGE,
    () => import('./left/left.ts'),
    printed(ofBringUp, 'left'),
  ),
  ...Object.fromEntries(AREAS.map((entry) => [entry.name, groupOf(entry)])),
  net: {
    summary: 'measure bandwidth, round-trip times and packet loss, and watch the hosts',
    verbs: {
      mesh: changes(
        'measure every link between hosts, and report slow ones',
        CHANGE,
        () => import('./net/mesh.ts'),
        printed(ofNet, 'mesh'),
      ),
      pair: changes(
        'measure the link between two hosts, live',
        [...CLUSTER, 'color'],
        () => import('./net/pair.ts'),
        printed(ofNet, 'pair'),
      ),
      nfs: changes(
        'measure throughput and latency of an NFS mount',
        CLUSTER,
        () => import('./net/nfs.ts'),
        printed(ofNet, 'nfs'),
      ),
      watch: reads(
        'watch processors, memory, network, disks and GPUs of all hosts',
        REPORT,
        () => import('./net/watch.ts'),
        { ...printed(ofNet, 'watch'), streams: true, changesWith: ['record'] },
      ),
      uninstall: plans(
        'remove what net mesh --install installed',
        CHANGE,
        one(() => import('./net/install.ts'), 'uninstall'),
        CHANGES,
      ),
    },
  },
  'keep-connections': changes(
    'hold connections for --persist; started by muster itself',
    [],
    () => import('./keep-connections.ts'),
    { isHidden: true },
  ),
  job: {
    summary: 'queue jobs, and run them on the hosts as soon as they fit',
    verbs: {
      submit: changes(
        'put a job into the queue, and print its number',
        CLUSTER,
        one(jobRequests, 'submit'),
        printed(ofJobs, 'submit'),
      ),
      list: reads(
        'list jobs that run or wait, and the latest that ended',
        QUEUE,
        one(jobTables, 'list'),
        printed(ofJobs, 'jobList'),
      ),
      show: reads(
        'show everything about a job, and why it waits',
        QUEUE,
        one(jobTables, 'show'),
        printed(ofJobs, 'show'),
      ),
      results: reads(
        'show parameters and metrics of jobs submitted together, best first',
        QUEUE,
        one(jobTables, 'results'),
        printed(ofJobs, 'results'),
      ),
      ranks: reads(
        'show each rank of a job: its host, step and last line',
        CLUSTER,
        () => import('./job/ranks.ts'),
        printed(ofJobs, 'ranks'),
      ),
      logs: reads('show the output of a job, or of its ranks', [...CLUSTER, 'color'], () => import('./job/logs.ts'), {
        ...printed(ofJobs, 'logs'),
        streams: ['follow'],
      }),
      cancel: changes(
        'stop running jobs, and remove waiting ones from the queue',
        QUEUE,
        one(jobChanges, 'cancel'),
        printed(ofJobs, 'cancel'),
      ),
      hold: changes('hold jobs, so that they do not start', QUEUE, one(jobChanges, 'hold'), printed(ofJobs, 'hold')),
      release: changes(
        'release held jobs, so that they can start',
        QUEUE,
        one(jobChanges, 'release'),
        printed(ofJobs, 'release'),
      ),
      retry: changes('queue ended jobs again', QUEUE, one(jobChanges, 'retry'), printed(ofJobs, 'retry')),
      requeue: changes(
        'stop running jobs, and queue them again',
        QUEUE,
        one(jobChanges, 'requeue'),
        printed(ofJobs, 'requeue'),
      ),
      wait: reads('wait until all jobs have ended', QUEUE, one(jobChanges, 'wait'), {
        ...printed(ofJobs, 'wait'),
        streams: true,
        outlivesReader: true,
      }),
      edit: changes('change waiting or held jobs', QUEUE, one(jobRequests, 'edit'), printed(ofJobs, 'edit')),
      clean: changes(
        'delete what ended jobs left on the hosts: output and scripts',
        CLUSTER,
        () => import('./job/clean.ts'),
        printed(ofJobs, 'clean'),
      ),
      work: changes(
        'run the scheduler, which starts and monitors jobs',
        [...CLUSTER, 'confirmation'],
        () => import('./job/work.ts'),
        printed(ofJobs, 'work'),
      ),
    },
  },
  study: {
    summary: 'search for the best parameters: no point twice, and none lost',
    verbs: {
      create: changes(
        'create a study, whose trials the scheduler runs',
        CLUSTER,
        one(() => import('./study/create.ts'), 'create'),
        printed(ofStudies, 'create'),
      ),
      list: reads(
        'list studies with their progress and best value',
        QUEUE,
        one(studyTables, 'list'),
        printed(ofStudies, 'studies'),
      ),
      show: reads(
        'show what a study searches, how far it is, its best trial, and what is running',
        QUEUE,
        one(studyTables, 'show'),
        { ...printed(ofStudies, 'showStudy'), streams: ['follow'] },
      ),
      results: reads(
        'show its trials with parameters and metrics, best first',
        QUEUE,
        one(studyTables, 'results'),
        printed(ofStudies, 'trials'),
      ),
      plot: reads(
        'plot the best value so far and each parameter',
        QUEUE,
        one(() => import('./study/plot.ts'), 'plot'),
        printed(ofStudies, 'plot'),
      ),
      stop: changes('start no more trials of a study', QUEUE, one(studyChanges, 'stop'), printed(ofStudies, 'stop')),
      more: changes(
        'continue a study, or run more trials',
        QUEUE,
        one(studyChanges, 'more'),
        printed(ofStudies, 'more'),
      ),
      import: changes(
        'read a study of Optuna or Ray Tune that runs elsewhere, and follow it',
        CLUSTER,
        () => import('./study/import.ts'),
        printed(ofStudies, 'imported'),
      ),
      export: changes(
        'write a study for Optuna and its dashboard, for spreadsheets, or as JSON',
        CLUSTER,
        () => import('./study/export.ts'),
        printed(ofStudies, 'exported'),
      ),
      ask: changes(
        'ask for the parameters of the next trial, to run it yourself',
        QUEUE,
        one(studyPrograms, 'ask'),
        printed(ofStudies, 'ask'),
      ),
      tell: changes('tell the value of a trial that you ran yourself', QUEUE, one(studyPrograms, 'tell')),
      client: reads('print a Python module that asks and tells', ['inventory'], one(studyPrograms, 'client')),
    },
  },
  sweep: changes(
    'run a command with every combination of some values, and collect the results',
    CLUSTER,
    one(() => import('./study/sweep.ts'), 'sweep'),
    printed(ofStudies, 'sweep'),
  ),
  launch: {
    summary: 'start MPI, PyTorch, TensorFlow and others on all hosts, and wait for them',
    verbs: {
      ...Object.fromEntries(
        LAUNCHERS.map((launcher) => [
          launcher.name,
          changes(
            launcher.summary,
            CLUSTER,
            () => launches().then(({ launchVerb }) => launchVerb(launcher)),
            printed(ofJobs, 'launch'),
          ),
        ]),
      ),
      row: changes('start ranks as a row of launchers in hosts.yaml says', CLUSTER, one(launches, 'row'), {
        ...printed(ofJobs, 'launch'),
        isDefault: true,
        names: async (source) => (await import('./launch/row-names.ts')).rowNames(source),
      }),
      check: reads(
        'ask the hosts whether a launched job could start there; start nothing',
        [...CLUSTER, 'color'],
        () => import('./launch/check.ts'),
        printed(ofJobs, 'launchCheck'),
      ),
    },
  },
  pack: reads(
    'show which jobs and Ray bundles use which hosts and devices',
    CLUSTER,
    () => import('./pack/pack.ts'),
    printed(() => import('./schemas/pack.ts'), 'pack'),
  ),
  plan: {
    summary: 'show which placement groups a framework asks for, and whether they fit',
    verbs: Object.fromEntries(
      FRAMEWORKS.map((entry) => [
        entry.name,
        reads(
          entry.summary,
          ['inventory', 'exclude'],
          () => import('./plan/plan.ts').then(({ planVerb }) => planVerb(entry)),
          printed(() => import('./schemas/plan.ts'), 'plan'),
        ),
      ]),
    ),
  },
  simulate: {
    summary: 'try a scheduling policy on a workload: utilisation, waiting times, speed',
    verbs: {
      fleet: reads(
        'measure how fast a policy decides on a large generated fleet',
        [],
        one(simulateHosts, 'fleet'),
        printed(ofSimulations, 'fleet'),
      ),
      openb: reads(
        'measure how much of a GPU fleet a policy allocates (openb trace)',
        [],
        () => import('./simulate/openb.ts'),
        printed(ofSimulations, 'openb'),
      ),
      gangs: reads(
        'compare the GPUs allocated to gangs with the best known placement',
        [],
        one(simulateHosts, 'gangs'),
        printed(ofSimulations, 'gangs'),
      ),
      queue: reads(
        'measure waiting times of a job queue on given hosts',
        [],
        one(simulateQueues, 'queue'),
        printed(ofSimulations, 'queue'),
      ),
      swf: reads(
        'measure waiting times of a job log (Standard Workload Format)',
        [],
        one(simulateQueues, 'swf'),
        printed(ofSimulations, 'swf'),
      ),
    },
  },
  init: changes('write a first hosts.yaml that explains itself', ['confirmation'], () => import('./init.ts')),
  import: reads(
    "write hosts.yaml from another tool's files, or a job from a DIJob of DI-engine",
    ['confirmation'],
    () => import('./import.ts'),
    {
      changesWith: ['output'],
    },
  ),
  schema: reads(
    'print the JSON Schema of hosts.yaml, preferences.yaml, or what --json prints',
    [],
    () => import('./schema.ts'),
    printed(() => import('./schemas/schema.ts'), 'schema'),
  ),
  completion: reads(
    'print the completion script for bash, zsh or fish',
    [],
    () => import('./completion/completion.ts'),
  ),
}
