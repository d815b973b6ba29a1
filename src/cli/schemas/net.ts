import { changeLines } from './bring-up.ts'
import { gravity } from './finding.ts'
import { about, count, flag, is, line, list, number, type ObjectShape, object, output, text, time } from './shape.ts'

const way = { from: text, to: text }
const finding = line('finding', 'A problem, in words.', {
  gravity,
  id: about('A stable word for scripts.', text),
  hosts: about('Of a link, the sender first.', list(text)),
  text,
  time,
})

/** Only where they do not have the same type and the same fields as a line of the measurement. */
const installLines: readonly ObjectShape[] = changeLines

export const mesh = output(
  'net-mesh',
  '`muster net mesh --json`; with --install, the lines of a change come first',
  line('host', 'A host, and whether it takes part.', {
    host: text,
    outcome: is('ok', 'unreachable', 'refused', 'no-address'),
    'reason?': text,
    'address?': text,
    'interface?': text,
    'mtuBytes?': count,
    'linkBitsPerSecond?': number,
    'iperf3?': text,
    'iperf2?': text,
    time,
  }),
  line('ping', 'Round trips on the idle network.', {
    ...way,
    lostFraction: number,
    'minMs?': number,
    'meanMs?': number,
    'isWhole?': about('false: full-size packets do not pass.', flag),
    time,
  }),
  line('port-taken', 'A port is in use, and the next one is tried.', { host: text, port: count, time }),
  line('link', 'A direction of a pair was measured.', {
    ...way,
    outcome: is('measured'),
    tool: is('iperf3', 'iperf2', 'ssh'),
    bitsPerSecond: number,
    'disputedBitsPerSecond?': about('What one end reports; the other one reports bitsPerSecond.', number),
    'sentBytes?': number,
    'retransmits?': count,
    'jitterMs?': number,
    'lostFraction?': number,
    'loadedRttMs?': number,
    'cpuFraction?': number,
    time,
  }),
  line('link', 'A direction of a pair could not be measured.', {
    ...way,
    outcome: is(
      'away',
      'no-address',
      'no-tool',
      'no-server',
      'refused',
      'no-answer',
      'broken',
      'unsteady',
      'cancelled',
    ),
    reason: text,
    time,
  }),
  finding,
  line('summary', 'The last line.', {
    hosts: count,
    unreachable: count,
    links: count,
    measured: count,
    failed: count,
    cancelled: count,
    'medianBitsPerSecond?': number,
    time,
  }),
  line('would-measure', 'With --dry-run, in place of all other lines: what would be measured at the same time.', {
    step: { type: 'integer', minimum: 1 },
    links: list(object(way)),
    time,
  }),
  line('plan', 'With --dry-run, at the end: how long the measurement takes.', {
    hosts: count,
    links: count,
    steps: count,
    seconds: number,
    time,
  }),
  ...installLines,
)

export const pair = output(
  'net-pair',
  '`muster net pair --json`',
  line('interval', 'A second of one direction.', { ...way, second: count, bitsPerSecond: number, time }),
  line(
    'round-trip',
    'The round-trip time while both directions are loaded; `sequence`: of the ping, about one a second.',
    {
      ...way,
      ms: number,
      'sequence?': count,
      time,
    },
  ),
  line('failed', 'A direction could not be measured.', { ...way, isAway: flag, reason: text, time }),
  finding,
)

export const nfs = output(
  'net-nfs',
  '`muster net nfs --json`',
  line('nfs-directory', 'What is measured.', {
    host: text,
    directory: text,
    'source?': about('Missing: not on an NFS mount.', text),
    'nfsVersion?': text,
    time,
  }),
  line('nfs-block', 'A block that was written or read.', {
    host: text,
    does: is('write', 'read'),
    bytes: number,
    seconds: number,
    time,
  }),
  line('nfs-small-file', 'The time for a small file.', { host: text, ms: number, time }),
  line('nfs-cached', "Reads cannot bypass the client's cache.", { host: text, time }),
  line('nfs-silent', 'Nothing was finished for 5 s: the server does not answer, or is very slow.', {
    host: text,
    time,
  }),
  line('nfs-failed', 'It could not be measured.', { host: text, isAway: flag, reason: text, time }),
  finding,
)

export const watch = output(
  'net-watch',
  '`muster net watch --json`',
  line('sample', 'A host at one second. Rates are per second; what is unknown is missing.', {
    host: text,
    'upSeconds?': number,
    cores: count,
    cpu: about('0 to 1, of all cores.', number),
    'load?': number,
    memoryBytes: number,
    memoryUsedBytes: number,
    swapBytes: number,
    swapUsedBytes: number,
    'swapped?': about('Pages, in and out.', number),
    'readBytes?': number,
    'writtenBytes?': number,
    'diskBusy?': about('0 to 1, of the busiest disk.', number),
    'fullest?': object({ point: text, used: number }),
    'receivedBytes?': number,
    'sentBytes?': number,
    cards: list(object({ name: text, receivedBytes: number, sentBytes: number })),
    'nfs?': object({ readBytes: number, writtenBytes: number, operations: number, 'roundTripMs?': number }),
    gpus: list(
      object({
        id: text,
        name: text,
        'busy?': number,
        'usedBytes?': number,
        'totalBytes?': number,
        'celsius?': number,
        'watts?': number,
        'processes?': list(count),
      }),
    ),
    time,
  }),
  line('trouble', 'Why a host sends no samples.', { host: text, reason: text, time }),
)
