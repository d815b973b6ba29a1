import { about, count, flag, is, line, list, output, text } from './shape.ts'

export const nodes = output(
  'k8s-nodes',
  '`muster k8s nodes --json`',
  line('node', 'A node. What pods hold is missing if they may not be listed.', {
    name: text,
    cpuMilli: count,
    memoryBytes: count,
    trouble: about('Why it takes no pods; empty: it does.', text),
    gpus: count,
    'cpuUsedMilli?': count,
    'memoryUsedBytes?': count,
    'gpusUsed?': count,
    'pods?': count,
  }),
)

export const pods = output(
  'k8s-pods',
  '`muster k8s pods --json`',
  line('pod', 'A pod.', {
    namespace: text,
    name: text,
    node: about('Empty: none yet.', text),
    state: about('Its phase, or Ending while it is being deleted.', text),
    restarts: count,
    gpus: count,
    created: about('ISO 8601; empty: unknown.', text),
    why: about('Why it waits, or how it ended.', text),
  }),
)

export const why = output(
  'k8s-why',
  '`muster k8s why --json`',
  line('why', 'A pod or a Job.', {
    kind: is('Pod', 'Job'),
    name: text,
    namespace: text,
    because: about('A sentence for each thing that is known.', list(text)),
  }),
)

export const events = output(
  'k8s-events',
  '`muster k8s events --json`',
  line('event', 'An event.', {
    time: about('ISO 8601; empty: unknown.', text),
    reason: text,
    kind: text,
    name: text,
    namespace: text,
    message: text,
    count,
    isWarning: flag,
  }),
)

export const logs = output(
  'k8s-logs',
  '`muster k8s logs --json`',
  line('line', 'A line that the pod printed.', { pod: text, text }),
)
