import { about, count, is, line, object, output, text, time } from './shape.ts'

const address = object({ address: text, port: count })
const event = { host: text, reason: about('One printable line.', text), time }

export const forward = output(
  'forward',
  '`muster forward --json`',
  line('forward', 'A forward, once its host is connected.', {
    host: text,
    kind: about('As -L, -R and -D.', is('local', 'remote', 'dynamic')),
    listen: about('On the host, if remote; else on this machine.', address),
    'to?': about('On this machine, if remote; else as the host sees it. Missing if dynamic.', address),
    'url?': about('For a browser on this machine; only if local.', text),
    'title?': about('Of a dashboard.', text),
    time,
  }),
  line('lost', 'A host is not connected; Muster tries again.', event),
  line('connected', 'A host is connected again.', event),
  line('failed', 'A host is not connected, and Muster does not try again.', event),
  line('refused', 'A host does not listen.', event),
  line('trouble', 'A connection through a forward failed; once per reason.', event),
)
