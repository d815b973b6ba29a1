/** `muster k8s events` */
import { onAbort } from '../../base/abort.ts'
import { systemClock } from '../../base/clock.ts'
import { daySecondText } from '../../base/time-text.ts'
import { eventOf, inOrderOfTime, type KubernetesEvent } from '../../ops/kubernetes/events.ts'
import { listObjects, watchObjects } from '../../ops/kubernetes/watch.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
import { formatTable } from '../output/table.ts'
import { inNamespaces, type NamespaceOptions, openCluster, pathOf, refused } from './open.ts'

type EventsOptions = NamespaceOptions & { readonly follow?: boolean }

export const verb: VerbCode = {
  define: (command) => inNamespaces(command).option('-f, --follow', 'keep printing new events'),
  help: `
Examples:
  muster k8s events                       show what happened in the last hour, newest last
  muster k8s events -f -A                 follow the events of all namespaces
`,
  async run(options: EventsOptions, context: CliContext) {
    using kubernetes = await openCluster(options, context)
    const { api } = kubernetes
    const where = await pathOf(kubernetes, 'v1', 'events', options)
    if (!where.ok) return refused(where, context)
    if (options.follow !== true) {
      const listed = await listObjects(api, where.path, eventOf, { signal: context.signal })
      if (!listed.ok) return refused(listed, context)
      if (listed.items.size === 0 && !options.json) notice(context, 'muster: no events\n')
      show(inOrderOfTime(listed.items.values()), options, context)
      return EXIT.ok
    }
    const shown = new Map<string, number>()
    const ended = Promise.withResolvers<void>()
    using _abort = onAbort(context.signal, ended.resolve)
    using _watch = watchObjects(
      api,
      where.path,
      { project: eventOf, clock: systemClock, random: Math.random },
      {
        onChange(all) {
          const fresh = [...all].filter(([uid, { count }]) => shown.get(uid) !== count)
          shown.clear()
          for (const [uid, { count }] of all) shown.set(uid, count)
          show(inOrderOfTime(fresh.map(([, event]) => event)), options, context)
        },
        onTrouble: (refusal) => refusal && context.stderr.write(`muster: Kubernetes: ${refusal.message}\n`),
      },
    )
    await ended.promise
    return EXIT.interrupted
  },
}

function show(events: readonly KubernetesEvent[], options: EventsOptions, context: CliContext): void {
  const { stdout, now } = context
  if (options.json) {
    for (const event of events)
      stdout.write(jsonLine({ ...event, type: 'event', isWarning: event.type === 'Warning' }, context))
    return
  }
  const rows = events.map(({ time, type, reason, kind, name, namespace, message, count }) => [
    time === '' ? '' : daySecondText(Date.parse(time), now()),
    options.allNamespaces ? namespace : '',
    `${kind}/${name}`,
    type === 'Warning' ? 'warning' : '',
    reason,
    count > 1 ? `${count} times: ${message}` : message,
  ])
  const table = formatTable(['TIME', 'NAMESPACE', 'OBJECT', '', 'REASON', 'MESSAGE'], rows, stdout)
  // Later ones continue the table.
  stdout.write(options.follow ? table.slice(table.indexOf('\n') + 1) : table)
}
