import { about, count, flag, is, line, list, map, number, object, orNull, output, text, time } from './shape.ts'

const held = {
  name: text,
  devices: about('By device: what each job has of it.', list(list(object({ job: number, milli: count })))),
  cpuUsedMilli: count,
  cpuMilli: count,
  memoryUsedBytes: count,
  memoryBytes: count,
  jobs: about('-1: jobs of other people.', list(number)),
  holdings: list(object({ job: number, cpuMilli: count, memoryBytes: count })),
  'unknown?': about('Neither declared nor asked of the host yet.', list(is('cores', 'memory'))),
  strandedMilli: about('Of free GPUs on hosts without a free core.', count),
  trouble: about('null: none is known.', orNull(text)),
}

export const pack = output(
  'pack',
  '`muster pack --json`',
  line('host', 'A host of the queue.', {
    ...held,
    'gpusDeclared?': about('By hosts.yaml, where the host says that it has only these devices.', count),
  }),
  line('node', 'A node of a Slurm or Kubernetes cluster.', { engine: text, ...held }),
  line('placement', 'A job of such a cluster.', {
    engine: text,
    id: text,
    'label?': about('Of an array of Slurm: what squeue calls it.', text),
    name: text,
    user: text,
    isOwn: flag,
    'waits?': text,
    shares: list(object({ node: text, cpuMilli: count, memoryBytes: count, devices: list(count) })),
    'expected?': time,
    job: about('null: not of the queue.', orNull(count)),
  }),
  line('node', 'A node of a Ray cluster.', {
    name: text,
    isHead: flag,
    cpuUsedMilli: count,
    cpuMilli: count,
    gpuUsedMilli: count,
    gpuMilli: count,
    memoryUsedBytes: count,
    memoryBytes: count,
  }),
  line('group', 'A placement group of a Ray cluster.', {
    id: text,
    name: text,
    job: about('null: not of the queue.', orNull(count)),
    state: text,
    bundles: list(
      object({ index: count, host: about('null: it has no place.', orNull(text)), resources: map(number) }),
    ),
  }),
)
