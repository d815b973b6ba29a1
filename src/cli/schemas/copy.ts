import { about, count, is, line, list, output, text, time } from './shape.ts'

const positive = { type: 'integer', minimum: 1 }
const rate = { type: 'number', minimum: 0 }

export const copy = output(
  'copy',
  '`muster copy --json` and `muster fetch --json`',
  line('problem', 'A local file that is skipped.', {
    path: about('Printable: invalid UTF-8 becomes U+FFFD, control characters become escapes.', text),
    reason: text,
    time,
  }),
  line('file', 'A file or symbolic link was copied to or from a host, or would be.', {
    host: text,
    path: about('The path after the copy; printable.', text),
    action: is('copied', 'identical', 'would-copy'),
    sizeBytes: count,
    'resumedBytes?': about('Already there from an interrupted copy.', positive),
    time,
  }),
  line('file', 'A file, directory or symbolic link of a host could not be copied.', {
    host: text,
    path: text,
    action: is('failed'),
    sizeBytes: count,
    reason: about('One printable line.', text),
    time,
  }),
  line('shared', 'A host shares its destination with another host: one host writes, the others verify.', {
    host: text,
    with: about('The first host that writes there.', text),
    path: about('The shared directory, as that host names it; printable.', text),
    time,
  }),
  line('result', 'The result of a host.', {
    host: text,
    outcome: is('ok', 'failed', 'unreachable', 'refused', 'cancelled'),
    'reason?': about('Why the host failed; one printable line.', text),
    copied: count,
    identical: count,
    failed: count,
    sentBytes: about('Sent between this machine and the host.', count),
    'passedOnBytes?': about('Received from another host.', positive),
    durationMs: count,
    time,
  }),
  line('summary', 'The last line: the number of hosts with each result.', {
    hosts: count,
    ok: count,
    failed: count,
    unreachable: count,
    refused: about('By the host, or because of its host key.', count),
    cancelled: count,
    sentBytes: about('From or to this machine, without what hosts relayed.', count),
    time,
  }),
  line('path', 'Hosts relay large files to each other.', {
    via: is('chain'),
    hosts: about('In the order of the chain.', list(text)),
    betweenBitsPerSecond: about('The median of the measured links.', rate),
    hereBitsPerSecond: about('From this machine to all of them together.', rate),
    time,
  }),
  line('path', 'Large files go from here to every host, although a chain was tried.', {
    via: is('direct'),
    reason: text,
    time,
  }),
  line('path', 'A host gets the rest of a file from another source.', {
    via: is('detour'),
    host: text,
    'from?': about('Absent: this machine.', text),
    reason: text,
    time,
  }),
)
