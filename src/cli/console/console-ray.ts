/** The Ray cluster for the console: over the connection that the shell of its head has. */

import { randomBytes } from 'node:crypto'
import { systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { sectionOf } from '../../inventory/section.ts'
import { askForJobs, type RayJobOrder } from '../../ops/ray/jobs.ts'
import { section } from '../../ops/ray/section.ts'
import { nodesOf, type RayWanted, wantedRay } from '../../ops/ray/wanted.ts'
import { watchCluster } from '../../ops/ray/watch.ts'
import type { CommandEnd, CommandHandlers, RunningCommand } from '../../ops/run/run-hosts.ts'
import type { Fleet } from '../../ssh/fleet.ts'
import type { RayCommand, RayPort } from '../../ui/ray/ray-port.ts'
import type { CliContext } from '../command-line/context.ts'
import { createFleetOpsHosts } from '../connect/ops-hosts.ts'
import type { Wires } from '../connect/transports.ts'
import { answerTimeoutMs, JobReport } from '../ray/jobs.ts'
import { packDirectory } from '../ray/pack-directory.ts'
import type { DeclaredSource } from './console-bring-up.ts'

export type ConsoleRayOptions = {
  readonly fleet: Fleet
  readonly wires: Wires
  readonly declared: DeclaredSource
  readonly context: CliContext
}

export function createConsoleRay({ fleet, wires, declared, context }: ConsoleRayOptions): RayPort {
  const hosts = createFleetOpsHosts(fleet, {
    ...wires,
    token: randomBytes(8).toString('hex'),
    sudoPassword: async () => undefined,
  })
  const { inventory } = declared
  let asked: Promise<RayWanted | undefined> | undefined
  const wantedNow = (): Promise<RayWanted | undefined> => {
    asked ??= declared
      .endpoints()
      .then((endpoints) => wantedRay({ inventory, endpoints: new Map(endpoints.map((one) => [one.host, one])) }))
    asked.catch(() => {
      asked = undefined
    })
    return asked
  }

  const run = async (order: RayCommand, handlers: CommandHandlers, stopping: Stopping): Promise<CommandEnd> => {
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
    const ask = { hosts, signal: stopping.signal }
    stopping.onStop = async () => {
      const { id } = report
      // Who only looks on leaves the job alone.
      if (order.do !== 'submit' || id === undefined) return stopping.abort()
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
      const stopping = new Stopping()
      const own = stopping.guard(handlers)
      // After this has returned.
      setImmediate(() =>
        run(order, own, stopping).then(
          (end) => own.onEnd(end),
          (error: unknown) => {
            own.onStderr(Buffer.from(`${printable(messageOf(error))}\n`))
            own.onEnd({ kind: 'exit', code: 1 })
          },
        ),
      )
      return stopping.running
    },
  }
}

async function wholeOrder(order: RayCommand, context: CliContext): Promise<RayJobOrder> {
  if (order.do !== 'submit') return order
  const { directory, job, follow } = order
  if (directory === undefined) return { do: 'submit', job, follow }
  return { do: 'submit', job: { ...job, archive: await packDirectory(directory, context) }, follow }
}

/** How one order is ended, and nothing told of it after it was abandoned. */
class Stopping {
  readonly #aborting = new AbortController()
  #isAbandoned = false
  onStop: () => Promise<void> | void = () => this.abort()

  get signal(): AbortSignal {
    return this.#aborting.signal
  }

  abort(): void {
    this.#aborting.abort()
  }

  guard({ onBegin, onStdout, onStderr, onEnd }: CommandHandlers): CommandHandlers {
    const unlessAbandoned =
      <T extends readonly unknown[]>(tell: (...args: T) => void) =>
      (...args: T): void => {
        if (!this.#isAbandoned) tell(...args)
      }
    return {
      onBegin: unlessAbandoned(onBegin),
      onStdout: unlessAbandoned(onStdout),
      onStderr: unlessAbandoned(onStderr),
      onEnd: unlessAbandoned(onEnd),
    }
  }

  get running(): RunningCommand {
    return {
      stop: () => void this.onStop(),
      abandon: () => {
        this.#isAbandoned = true
        this.abort()
      },
      pause() {},
      resume() {},
    }
  }
}
