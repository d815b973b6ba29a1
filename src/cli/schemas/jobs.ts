import { finding } from './finding.ts'
import {
  about,
  anyObject,
  count,
  flag,
  is,
  line,
  list,
  map,
  number,
  type ObjectShape,
  object,
  orNull,
  output,
  text,
  time,
} from './shape.ts'

export const place = object({
  host: text,
  devices: list(count),
  'address?': about('Of the host, as hosts.yaml declared it when the job was placed.', text),
})
/** `NaN` and infinities are strings. */
export const metrics = map({ type: ['number', 'string'] })

const byHand = list(object({ host: text, command: text }))
const ring = object({
  hosts: about('Each sends to the next one.', list(text)),
  bitsPerSecond: about('Of the slowest link that was measured.', number),
  'unmeasured?': about('Links without a result.', count),
  measured: time,
})
const jobState = is(
  'held',
  'queued',
  'starting',
  'pending',
  'running',
  'ending',
  'done',
  'failed',
  'timed-out',
  'lost',
  'cancelled',
)
const claimedBy = about('Hosts that all say that they have this rank.', list(text))
const ended = about('Missing until it has ended.', time)

const job = {
  job: count,
  name: text,
  state: jobState,
  user: text,
  priority: number,
  attempt: count,
  time: about('When it was submitted.', time),
  'places?': about('By bundle.', list(place)),
  'nodes?': about('Where its engine runs or ran it, such as `n[1-2]`.', text),
  'endpoint?': about('Of a service that is ready.', text),
  'ring?': ring,
  'started?': time,
  'ended?': ended,
  'reason?': text,
}

const submitted = line('submitted', 'A job is in the queue.', { job: count })
const fit = {
  fits: flag,
  'places?': about('By bundle; missing if it does not fit now.', list(place)),
  'ring?': ring,
  why: about('Why it does not fit now.', list(text)),
  'byHand?': byHand,
}
const trial = line('trial', 'With --dry-run: where it would start now.', fit)

export const submit = output(
  'job-submit',
  '`muster job submit --json`',
  submitted,
  trial,
  line('trial', 'With --dry-run and --engine: what the engine would get.', {
    fits: flag,
    script: text,
    'words?': text,
    'isNever?': flag,
    'trouble?': text,
  }),
)

export const jobList = output('job-list', '`muster job list --json`', line('job', 'A job, the latest first.', job))

export const show = output(
  'job-show',
  '`muster job show --json`',
  line('job', 'Everything about a job.', {
    ...job,
    spec: about('What was asked for.', anyObject),
    state: about('As it is stored; `kind` is its state.', {
      type: 'object',
      required: ['kind'],
      properties: { kind: jobState },
    }),
    why: about('Why it waits.', list(text)),
    'expected?': time,
    'metrics?': metrics,
    'byHand?': byHand,
    'warnings?': list(text),
  }),
)

export const results = output(
  'job-results',
  '`muster job results --json`',
  line('result', 'A job, the best first.', {
    job: count,
    state: jobState,
    attempt: count,
    parameters: map(text),
    metrics,
  }),
)

const rankState = is('waiting', 'running', 'done', 'failed', 'lost', 'stopped')

export const ranks = output(
  'job-ranks',
  '`muster job ranks --json`',
  line('rank', 'A rank. Fields from `step` on are missing if its host did not report them.', {
    job: count,
    attempt: count,
    rank: count,
    title: text,
    bundle: count,
    host: text,
    state: rankState,
    restart: count,
    'claimedBy?': claimedBy,
    'code?': number,
    'ended?': time,
    'reason?': text,
    'step?': orNull(number),
    'line?': orNull(text),
    'bytes?': count,
    'quietS?': about('Seconds since it wrote something.', number),
    'process?': orNull(anyObject),
  }),
)

export const logs = output(
  'job-logs',
  '`muster job logs --json`',
  line('output', 'A piece of the output of a job, a rank or a bundle.', {
    job: count,
    attempt: count,
    'host?': about('Where it was read; missing if an engine runs the job.', text),
    stream: is('out', 'err'),
    text,
  }),
  line('line', 'With --all: a line, once for all ranks that printed it.', {
    ranks: list(count),
    'claims?': about(
      'Of ranks that several hosts claim, which are not in `ranks`: where the line is from.',
      list(object({ rank: count, host: text })),
    ),
    isOdd: about('Only some ranks have it.', flag),
    text,
  }),
  line('failed', 'With --failed: the end of the output of a failed rank, the likely cause first.', {
    job: count,
    rank: count,
    title: text,
    host: text,
    'claimedBy?': claimedBy,
    state: rankState,
    'code?': number,
    text,
  }),
)

const changed = (type: string): ObjectShape =>
  line(type, 'A job.', { job: count, changed: flag, 'state?': about('Missing: there is no such job.', jobState) })

const changeOf = (type: string) => output(`job-${type}`, `\`muster job ${type} --json\``, changed(type))
export const cancel = changeOf('cancel')
export const hold = changeOf('hold')
export const release = changeOf('release')
export const retry = changeOf('retry')
export const requeue = changeOf('requeue')
export const edit = changeOf('edit')

export const wait = output(
  'job-wait',
  '`muster job wait --json`',
  line('ended', 'A job that has ended.', { job: count, state: jobState }),
)

export const clean = output(
  'job-clean',
  '`muster job clean --json`',
  line('cleaned', 'A host, or hosts that share one directory: these are one line.', {
    host: text,
    'sharedWith?': about('The other hosts, which have no line of their own.', list(text)),
    directories: about('null: it failed.', orNull(count)),
    'reason?': text,
  }),
  line('forgotten', 'With --records.', { jobs: count }),
)

export const work = output(
  'job-work',
  '`muster job work --json`',
  line('job', 'The state of a job has changed.', { job: count, state: jobState, attempt: count, time }),
  line('host', 'A host has started or stopped answering.', {
    host: text,
    trouble: about('null: it answers.', orNull(text)),
    time,
  }),
)

export const launch = output(
  'launch',
  '`muster launch KIND --json`',
  submitted,
  trial,
  line('job', 'The state of the job has changed.', { job: count, state: jobState, attempt: count }),
  line('warning', 'What was found on its hosts before the start.', { job: count, text }),
  line('rank', 'A rank has failed.', {
    job: count,
    rank: count,
    title: text,
    host: text,
    'claimedBy?': claimedBy,
    state: rankState,
    'code?': number,
    'reason?': text,
  }),
  line('ready', 'The service answers.', { job: count, endpoint: text }),
  line('output', 'Whole lines of the rank that is followed.', {
    job: count,
    rank: count,
    host: about('Where they were read: with an elastic launcher, several hosts may claim the rank.', text),
    stream: is('out', 'err'),
    text,
  }),
  line('ended', 'The end.', { job: count, state: jobState, 'reason?': text }),
)

const orUnknown = about('null: unknown.', orNull({ type: ['string', 'number'] }))

export const launchCheck = output(
  'launch-check',
  '`muster launch check --json`',
  trial,
  line('finding', 'A problem of a host.', { ...finding, time }),
  line('host', 'A host.', {
    host: text,
    bundles: about('Their numbers, with commas.', text),
    card: orUnknown,
    mtu: orUnknown,
    python: orUnknown,
    library: orUnknown,
    nccl: orUnknown,
    port: orUnknown,
    reaches: about('Whether it reaches the first host; null: it is the first one.', orNull(is('yes', 'unknown'))),
    clock: orUnknown,
    time,
  }),
)
