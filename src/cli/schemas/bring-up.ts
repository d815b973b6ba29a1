import { finding, gravity } from './finding.ts'
import {
  about,
  time as anyTime,
  count,
  flag,
  is,
  line,
  list,
  map,
  type ObjectShape,
  object,
  orNull,
  output,
  text,
} from './shape.ts'

const time = about('When it was printed.', anyTime)
const operation = {
  id: about('AREA/NAME@HOST', text),
  area: text,
  host: text,
  title: text,
  after: list(text),
}
const step = { host: text, area: text, step: text }

const changes: readonly ObjectShape[] = [
  line('operation', 'An operation with nothing to do.', { ...operation, verdict: is('nothing'), because: text, time }),
  line('operation', 'An operation with steps to do.', {
    ...operation,
    verdict: is('steps'),
    state: is('missing', 'differs'),
    steps: list(
      object({
        id: text,
        title: text,
        changes: list(about('A line of the diff: + added, - removed, ~ changed.', text)),
        asRoot: flag,
        'undo?': text,
      }),
    ),
    time,
  }),
  line('operation', 'A blocked operation.', {
    ...operation,
    verdict: is('blocked'),
    findings: list(object(finding)),
    time,
  }),
  line('step', 'A step starts.', { ...step, title: text, state: is('begin'), time }),
  line('step', 'A step has ended.', {
    ...step,
    title: text,
    state: is('done', 'unneeded', 'cancelled'),
    durationMs: count,
    time,
  }),
  line('step', 'A step has failed.', {
    ...step,
    title: text,
    state: is('failed'),
    outcome: object({
      kind: is('exit', 'signal', 'timeout', 'cancelled', 'unreachable', 'refused'),
      'code?': count,
      'signal?': text,
      'reason?': text,
    }),
    reason: text,
    'isUndone?': flag,
    durationMs: count,
    time,
  }),
  line('step', 'A step was not started.', {
    ...step,
    title: text,
    state: is('skipped'),
    reason: text,
    durationMs: count,
    time,
  }),
  line('output', 'Output of a step.', { ...step, stream: is('stdout', 'stderr'), text, time }),
]
const findings = line('finding', 'A finding of the verification.', { ...finding, area: text, time })
const sharedHome = line('shared-home', 'Hosts that share a home directory: the first one changes its content.', {
  hosts: list(text),
  path: about('The path of the home directory on the first host.', text),
  time,
})

export const changeLines: readonly ObjectShape[] = [
  sharedHome,
  ...changes,
  findings,
  line('summary', 'The end of a change.', {
    hosts: count,
    done: count,
    failed: count,
    cancelled: count,
    blocked: count,
    unreachable: count,
    findings: count,
    time,
  }),
]

export const change = output(
  'change',
  '`muster up --json`, `down --json`, and of other verbs that apply a plan',
  ...changeLines,
)

export const status = output(
  'status',
  '`muster status --json`, and of `status` and `check` of an area',
  sharedHome,
  line('status', 'The status of a host in an area.', {
    area: text,
    host: text,
    status: is('good', 'missing', 'differs', 'failed', 'blocked', 'away'),
    because: list(text),
    at: about('When the host was checked; null: it did not answer.', orNull(anyTime)),
    time,
  }),
  findings,
  line('service', 'The scheduler of the queue as a service of this machine.', { name: text, state: text, time }),
  line('summary', 'The end.', {
    statuses: count,
    good: count,
    missing: count,
    differs: count,
    failed: count,
    blocked: count,
    away: count,
    risks: count,
    time,
  }),
)

export const left = output(
  'left',
  '`muster left --json`',
  line('left', 'Something on a host.', {
    host: text,
    area: text,
    state: is('left', 'used', 'declared', 'kept', 'unknown'),
    what: text,
    bytes: about('null: unknown.', orNull(count)),
    changed: orNull(anyTime),
    because: about('null: it can be removed.', orNull(text)),
    time,
  }),
  line('summary', 'The end of the list.', {
    left: count,
    used: count,
    declared: count,
    kept: count,
    unknown: count,
    unreachable: count,
    time,
  }),
  ...changeLines,
)

export const envCheck = output(
  'env-check',
  '`muster env check --json`',
  line('drift', 'Something that differs between the hosts.', {
    kind: text,
    name: text,
    gravity,
    reference: about('What the reference has; null: nothing.', orNull(text)),
    hosts: about('What each host has that differs; null: nothing.', map(orNull(text))),
    time,
  }),
  line('unknown', 'Something that a host did not report.', { host: text, name: text, because: text, time }),
  line('away', 'A host that was not reached.', { host: text, reason: text, time }),
  line('summary', 'The end.', {
    hosts: count,
    followed: about('The reference host; null: what most of them have.', orNull(text)),
    blocker: count,
    risk: count,
    note: count,
    unknown: count,
    unreachable: count,
    time,
  }),
)
