/** Opens the console for a verb: preferences, colours, connections, and the resolution of host sets. */
import { MusterError } from '../../base/errors.ts'
import { KeptPromise } from '../../base/kept-promise.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { expandHostSet } from '../../inventory/host-set.ts'
import type { ColourDepth } from '../../ui/compositor/colours.ts'
import { openConsole } from '../../ui/open-console.tsx'
import { loadPreferences } from '../../ui/preferences.ts'
import { limitFactorOf } from '../bring-up/prepare.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/context.ts'
import { fanOutFor, requireRoomFor } from '../connect/fan-out.ts'
import { createShellFleet, createWires } from '../connect/transports.ts'
import type { ConsoleQueue } from '../job/console-queue.ts'
import { createOwnMachine } from '../net/own-machine.ts'
import { type ConsoleConnections, createConsoleBringUp } from './console-bring-up.ts'
import { createConsoleJobs, declaredQueue } from './console-jobs.ts'
import { createConsoleRay } from './console-ray.ts'
import { createConsoleWork } from './console-work.ts'

export type ConsoleRequest = {
  readonly cluster: string
  readonly endpoints: readonly Endpoint[]
  readonly groups: ReadonlyMap<string, readonly string[]>
  readonly options: GlobalOptions
  /** For bring-up: all hosts of hosts.yaml, even if the console is open on some of them only. */
  readonly declared: Pick<ConsoleConnections, 'inventory' | 'endpoints'>
  resolveNewHosts(expression: string): Promise<Endpoint[]>
  /** Instead of the queue of hosts.yaml; opened when one of its tabs is first shown. */
  readonly openQueue?: () => Promise<ConsoleQueue>
  readonly saveGroup?: (name: string, hosts: readonly string[]) => Promise<string>
}

export function requireTerminal({ stdin, stdout, environment }: CliContext): void {
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new MusterError('usage', 'the console needs a terminal', {
      hint: 'Start it without a pipe; scripts use `muster run` and `muster hosts --json`.',
    })
  }
  if (environment.TERM === 'dumb') {
    throw new MusterError('usage', 'the console cannot draw on a terminal of type dumb', {
      hint: 'Set TERM to what your terminal is, for example xterm-256color.',
    })
  }
}

export function colourDepthOf(environment: CliContext['environment'], color: GlobalOptions['color']): ColourDepth {
  if (color === 'never' || (color !== 'always' && environment.NO_COLOR)) return 'none'
  if (/truecolor|24bit/i.test(environment.COLORTERM ?? '')) return 'truecolor'
  const term = environment.TERM ?? ''
  if (/-direct$/.test(term)) return 'truecolor'
  return /256/.test(term) ? '256' : '16'
}

/** Returns the exit code: 0, or 130 when a signal ended the console. */
export async function runConsole(context: CliContext, request: ConsoleRequest): Promise<number> {
  const { environment, signal } = context
  requireRoomFor(request.endpoints.length)
  await openConsole({
    ...request,
    preferences: loadPreferences(environment),
    colourDepth: colourDepthOf(environment, request.options.color),
    stdin: context.stdin as NodeJS.ReadStream,
    stdout: context.stdout as NodeJS.WriteStream & { readonly fd: number },
    environment,
    signal,
    createFleet: (questions, own) => {
      const wires = createWires({
        dialog: questions,
        reviewer: questions,
        environment,
        persist: request.options.persist,
        onWarning: (message) => questions.warn(message),
      })
      own(wires)
      const fanOut = fanOutFor(request.endpoints.length, request.options, context)
      const fleet = createShellFleet(wires, fanOut)
      const { declared } = request
      const isDeclared = declared.inventory.file !== undefined
      const jobs = createConsoleJobs(request.openQueue ?? declaredQueue(request.options, context, isDeclared))
      own(jobs)
      const endpoints = new KeptPromise(() => declared.endpoints())
      const connections: ConsoleConnections = {
        fleet,
        wires,
        dialog: questions,
        fanOut,
        limitFactor: limitFactorOf(request.options),
        inventory: declared.inventory,
        endpoints: () => endpoints.get(),
        context,
      }
      return {
        fleet,
        jobs,
        ray: createConsoleRay(connections),
        work: createConsoleWork(connections),
        bringUp: createConsoleBringUp(connections),
      }
    },
    resolveHosts: (expression, known, groups) => {
      const hosts = new Set(known)
      return expandHostSet(expression, {
        names: known,
        groupNames: [...groups.keys()],
        group: (name) => groups.get(name),
        isHost: (name) => hosts.has(name),
      })
    },
    ownMachine: createOwnMachine(),
  })
  return signal.aborted ? EXIT.interrupted : EXIT.ok
}
