/** The lines by which a person would start a launched job without Muster. */
import { shellQuote } from '../../base/shell-quote.ts'
import { ANSWERED } from './asking.ts'
import type { HandLine, LaunchedGang, Launcher } from './launcher.ts'
import { asProgram } from './rank.ts'

/** Answers that preflight would give are assumed: ports of the range are free, and all hosts can reach each other. */
export function linesByHand(launcher: Launcher, gang: LaunchedGang): readonly HandLine[] {
  const [first, last] = gang.spec.ports
  const size = last - first + 1
  const bundles = gang.bundles.map((bundle, index) => {
    // Others for each bundle, as several may share a host.
    const ports = Array.from({ length: Math.min(MOST_PORTS, size) }, (_, at) => first + ((index * APART + at) % size))
    const assumed = { [ANSWERED]: '1', port: ports.join(' '), listening: '1', heard: '1', reached: '1' }
    return { ...bundle, said: { ...assumed, ...bundle.said } }
  })
  const ready = { ...gang, bundles }
  return launcher.byHand?.(ready) ?? bundles.flatMap((_, index) => ownLine(launcher, ready, index))
}

const MOST_PORTS = 64
const APART = 16

function ownLine(launcher: Launcher, gang: LaunchedGang, index: number): readonly HandLine[] {
  const step = launcher.next(gang, index)
  if (step.kind !== 'start') return []
  return [bundleLine(gang, index, step.environment, step.command)]
}

/** The shell of a bundle reads `line` as a whole, with the command of the job where that is in it. */
export function bundleLine(
  gang: LaunchedGang,
  index: number,
  environment: Readonly<Record<string, string>>,
  line: string,
): HandLine {
  const program = line.includes(gang.command) ? asProgram(gang.command, line) : line
  return handLine(gang, index, environment, program === line ? line.replace(/^exec /, '') : program)
}

/** `command`, one program, on the host of a bundle, with its devices, the variables of a launcher and those of the user. */
export function handLine(
  { bundles, environment: own, spec }: LaunchedGang,
  index: number,
  environment: Readonly<Record<string, string>>,
  command: string,
): HandLine {
  const { host = '', devices = [] } = bundles[index] ?? {}
  const variables = {
    ...(devices.length === 0 ? {} : { CUDA_VISIBLE_DEVICES: devices.join() }),
    ...environment,
    ...spec.environment,
    ...own,
  }
  return { host, command: withVariables(variables, command) }
}

export const withVariables = (variables: Readonly<Record<string, string>>, command: string): string =>
  [...Object.entries(variables).map(([name, value]) => `${name}=${shellQuote(value)}`), command].join(' ')
