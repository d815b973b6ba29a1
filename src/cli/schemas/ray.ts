import { about, count, flag, is, line, list, map, number, object, output, text, time } from './shape.ts'

const job = line('job', 'A job of the cluster.', {
  id: text,
  status: is('PENDING', 'RUNNING', 'STOPPED', 'SUCCEEDED', 'FAILED'),
  entrypoint: text,
  message: text,
  'startMs?': about("Milliseconds since the epoch, by the head's clock.", number),
  'endMs?': number,
  'exitCode?': about('Of the command, once it has ended by itself.', number),
  time,
})

export const rayJobs = output(
  'ray-jobs',
  '`muster ray submit --json`, `jobs`, `logs` and `stop`',
  line('submitted', 'Ray has accepted the job.', { id: text, time }),
  line('log', 'Output of the job.', { text, time }),
  line('stopped', 'With `stop`.', {
    isStopped: about('false: it had already ended.', flag),
    'isPending?': about('true: Ray ends it only once it has placed it.', flag),
    time,
  }),
  job,
)

const amount = object({ used: number, total: number })

export const rayWatch = output(
  'ray-watch',
  '`muster ray watch --json`',
  line('usage', 'The cluster, at one check. Amounts are in the units of Ray, memory in bytes.', {
    nodes: list(
      object({
        id: text,
        ip: text,
        isHead: flag,
        isAlive: flag,
        message: text,
        logical: map(amount),
        'cpuPercent?': number,
        'memory?': amount,
        'objectStore?': amount,
        gpuPercents: list(number),
      }),
    ),
    groups: list(
      object({
        id: text,
        name: text,
        state: text,
        scheduling: text,
        bundles: list(object({ index: count, resources: map(number), 'nodeId?': text })),
      }),
    ),
    actors: map(count),
    demands: list(text),
    time,
  }),
)
