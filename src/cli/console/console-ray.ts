/** The Ray cluster for the console, over the connection of its head's shell. */
import { randomBytes } from 'node:crypto'
import { systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { askForJobs, type RayJobOrder } from '../../ops/ray/jobs.ts'
import { section } from '../../ops/ray/section.ts'
import { nodesOf, type RayWanted, wantedRay } from '../../ops/ray/wanted.ts'
import { watchCluster } from '../../ops/ray/watch.ts'
import type { CommandEnd, CommandHandlers } from '../../ops/run/run-hosts.ts'
import type { RayCommand, RayPort } from '../../ui/ray/ray-view.ts'
import type { CliContext } from '../command-line/verb.ts'
import { createFleetOpsHosts } from '../connect/ops-hosts.ts'
import { answerTimeoutMs, JobReport, packDirectory } from '../ray/jobs.ts'
import type { ConsoleConnections } from './console-bring-up.ts'

/** What ends a command: `onStop` changes while it runs. */
type Running = { readonly signal: AbortSignal; onStop(): unknown }

export function createConsoleRay({ fleet, wires, inventory, endpoints, context }: ConsoleConnections): RayPort {
  const hosts = createFleetOpsHosts(fleet, {
    ...wires,
    token: randomBytes(8).toString('hex'),
    sudoPassword: async () => undefined,
  })
  const wantedNow = async (): Promise<RayWanted | undefined> =>
    wantedRay({ inventory, endpoints: new Map((await endpoints()).map((one) => [one.host, one])) })

  const run = async (order: RayCommand, handlers: CommandHandlers, running: Running): Promise<CommandEnd> => {
    const wanted = sectionOf(inventory, section) === undefined ? undefined : await wantedNow()
    const say = (text: string): void => handlers.onStderr(Buffer.from(`${text}\n`))
    if (wanted === undefined) {
      say('hosts.yaml declares no Ray cluster')
      return { kind: 'exit', code: 1 }
    }
    const whole = await wholeOrder(order, context)
    const report = new JobReport(whole, false, {
      stdout: { write: (text) => handlers.onStdout(Buffer.from(text)) },
      stderr: { write: (text) => handlers.onStderr(Buffer.from(text)) },
      now: context.now,
    })
    const ask = { hosts, signal: running.signal }
    const abort = running.onStop
    running.onStop = async () => {
      const { id } = report
      // Only a job that this command submitted is stopped.
      if (order.do !== 'submit' || id === undefined) return abort()
      const stop: RayJobOrder = { do: 'stop', id }
      await askForJobs(wanted, stop, { ...ask, timeoutMs: answerTimeoutMs(stop), onEvent() {} })
    }
    handlers.onBegin()
    const end = await askForJobs(wanted, whole, {
      ...ask,
      timeoutMs: answerTimeoutMs(whole),
      onEvent: (event) => report.event(event),
    })
    switch (end.kind) {
      case 'done':
        return { kind: 'exit', code: report.finish() }
      case 'cancelled':
        return { kind: 'cancelled' }
      case 'away':
        return { kind: 'unreachable', reason: printable(end.reason) }
      case 'refused':
        say(end.reason)
        return { kind: 'exit', code: 1 }
    }
  }

  return {
    async cluster() {
      if (sectionOf(inventory, section) === undefined) return undefined
      const wanted = await wantedNow()
      if (wanted === undefined) return undefined
      return { head: wanted.head.host, nodes: new Map(nodesOf(wanted).map(({ address, host }) => [address, host])) }
    },
    async watch(options) {
      const wanted = await wantedNow()
      return wanted === undefined
        ? undefined
        : await watchCluster(wanted, { ...options, hosts, clock: systemClock, rounds: 0 })
    },
    start(order, handlers) {
      const aborting = new AbortController()
      const running = { signal: aborting.signal, onStop: (): unknown => aborting.abort() }
      let isAbandoned = false
      const own: CommandHandlers = {
        onBegin: () => isAbandoned || handlers.onBegin(),
        onStdout: (bytes) => isAbandoned || handlers.onStdout(bytes),
        onStderr: (bytes) => isAbandoned || handlers.onStderr(bytes),
        onEnd: (end) => isAbandoned || handlers.onEnd(end),
      }
      // After this has returned.
      setImmediate(() =>
        run(order, own, running).then(own.onEnd, (error: unknown) => {
          own.onStderr(Buffer.from(`${printable(messageOf(error))}\n`))
          own.onEnd({ kind: 'exit', code: 1 })
        }),
      )
      return {
        stop: () => void running.onStop(),
        abandon: () => {
          isAbandoned = true
          aborting.abort()
        },
        pause() {},
        resume() {},
      }
    },
  }
}

async function wholeOrder(order: RayCommand, context: CliContext): Promise<RayJobOrder> {
  if (order.do !== 'submit') return order
  const { directory, job, follow } = order
  if (directory === undefined) return { do: 'submit', job, follow }
  return { do: 'submit', job: { ...job, archive: await packDirectory(directory, context) }, follow }
}
