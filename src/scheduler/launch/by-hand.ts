/** The lines by which a person would start a launched job without Muster. */
import { shellQuote } from '../../base/shell-quote.ts'
import { ANSWERED } from './asking.ts'
import type { HandLine, LaunchedGang, Launcher } from './launcher.ts'
import { AS_RANK } from './rank.ts'

/** Answers that preflight would give are assumed: the first ports of the range are free, and all hosts can reach each other. */
export function linesByHand(launcher: Launcher, gang: LaunchedGang): readonly HandLine[] {
  const [first, last] = gang.spec.ports
  const port = Array.from({ length: Math.min(MOST_PORTS, last - first + 1) }, (_, index) => first + index).join(' ')
  const assumed = { [ANSWERED]: '1', port, listening: '1', heard: '1', reached: '1' }
  const bundles = gang.bundles.map((bundle) => ({ ...bundle, said: { ...assumed, ...bundle.said } }))
  const ready = { ...gang, bundles }
  return launcher.byHand?.(ready) ?? bundles.flatMap((_, index) => ownLine(launcher, ready, index))
}

const MOST_PORTS = 64

function ownLine(launcher: Launcher, gang: LaunchedGang, index: number): readonly HandLine[] {
  const step = launcher.next(gang, index)
  const { host = '', devices = [] } = gang.bundles[index] ?? {}
  if (step.kind !== 'start') return []
  const variables = {
    ...(devices.length === 0 ? {} : { CUDA_VISIBLE_DEVICES: devices.join() }),
    ...step.environment,
    ...gang.spec.environment,
    ...gang.environment,
  }
  const words = Object.entries(variables).map(([name, value]) => `${name}=${shellQuote(value)} `)
  return [{ host, command: `${words.join('')}${step.command.replace(/^exec /, '').replace(AS_RANK, '')}` }]
}
