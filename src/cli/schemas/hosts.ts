import { finding } from './finding.ts'
import { about, anyObject, count, is, line, list, number, orNull, output, text, time, whole } from './shape.ts'

const warm = {
  host: text,
  time,
  user: text,
  address: text,
  port: count,
  since: time,
  users: about('Programs that use it.', count),
  'remainingMs?': about('Until it is closed; missing while it is used.', count),
}

export const hosts = output(
  'hosts',
  '`muster hosts --json`',
  line('host', 'A host, and how it is reached.', {
    host: text,
    'number?': whole,
    'address?': about('Missing for this machine.', text),
    'port?': count,
    'user?': text,
    transport: text,
    jump: list(text),
    'proxyCommand?': text,
    'needsOpenSsh?': text,
    groups: about('Of hosts.yaml.', list(text)),
    'outcome?': about('With --check.', is('ok', 'unreachable', 'refused')),
    'durationMs?': number,
    'reason?': text,
    time,
  }),
  line('host-set', 'With --expand, --fold, --count or --split: a host set.', {
    set: about('Folded.', text),
    count,
    hosts: list(text),
    time,
  }),
  line('warm', 'With --persisted: a connection that is kept open.', warm),
  line('stopped', 'With --stop: a connection that was closed.', warm),
)

const session = {
  name: text,
  pid: count,
  cluster: text,
  hosts: about('Folded.', text),
  hostCount: count,
  shells: count,
  'terminal?': text,
  time,
  started: time,
  'detached?': time,
  'ends?': time,
}

export const sessions = output(
  'sessions',
  '`muster sessions --json`',
  line('session', 'A console.', session),
  line('ended', 'With --end: a console that was ended.', session),
  line('silent', 'A console that does not answer: its process is stopped or very busy.', { name: text, time }),
)

const host = {
  host: text,
  outcome: is('ok', 'unreachable', 'refused'),
  status: is('well', 'risk', 'blocked', 'unreachable'),
  blockers: count,
  risks: count,
  notes: count,
  connectMs: count,
}

export const doctor = output(
  'doctor',
  '`muster doctor --json`',
  line('finding', 'A problem, its cause and its fix.', { ...finding, time }),
  line('host', 'A host that was examined. What is unknown is null.', {
    ...host,
    clockOffsetMs: orNull(number),
    clockUncertaintyMs: orNull(number),
    facts: orNull(anyObject),
    time,
  }),
  line('host', 'A host that was not reached.', { ...host, phase: text, reason: text, time }),
  line('summary', 'The end: the number of hosts in each state.', {
    hosts: count,
    well: count,
    risk: count,
    blocked: count,
    unreachable: count,
    time,
  }),
)
