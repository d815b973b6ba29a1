/** Hosts of operations of which one lies: what they run is answered by a function, in time that does not pass. */
import type { OpsHosts, ScriptOptions, ScriptResult } from '../../../src/ops/kernel/host-port.ts'
import type { RunOutcome } from '../../../src/ops/run/outcome.ts'
import type { HostileAnswer, HostileEnd } from './mutate.ts'

export type GoodAnswer = { readonly stdout?: Buffer; readonly stderr?: Buffer }

const STDOUT_LIMIT = 1024 * 1024
const STDERR_LIMIT = 64 * 1024
/** Of an answer without end, before the host is cut off. */
const ENDLESS_PIECES = 1100
/** Of lines: each is looked at by itself. */
const ENDLESS_LINES_PIECES = 10
const NOTHING = Buffer.alloc(0)

const OUTCOMES: Readonly<Record<HostileEnd, RunOutcome>> = {
  well: { kind: 'exit', code: 0 },
  badly: { kind: 'exit', code: 1 },
  killed: { kind: 'signal', signal: 'SIGKILL' },
  lost: { kind: 'unreachable', reason: 'lost: reset' },
  silent: { kind: 'timeout' },
}

/** As createOpsHosts does: cuts long output, and refuses endless output that nothing reads. */
export function resultOf(answer: HostileAnswer, good: GoodAnswer, options: ScriptOptions): ScriptResult {
  const isStdout = good.stdout !== undefined
  const decoder = new TextDecoder()
  const tell = (piece: Buffer) =>
    options.onOutput?.(isStdout ? 'stdout' : 'stderr', decoder.decode(piece, { stream: true }))
  for (const piece of answer.pieces) tell(piece)
  if (answer.endless !== undefined && options.onOutput !== undefined) {
    const most = answer.endless.includes(10) ? ENDLESS_LINES_PIECES : ENDLESS_PIECES
    for (let count = 0; count < most; count++) tell(answer.endless)
  }
  const whole = Buffer.concat([...answer.pieces, ...(answer.endless === undefined ? [] : [answer.endless])])
  const isCut = answer.endless !== undefined && options.onOutput === undefined
  return {
    outcome: isCut ? { kind: 'refused', reason: 'it was cut off' } : OUTCOMES[answer.end],
    stdout: (isStdout ? whole : NOTHING).subarray(0, STDOUT_LIMIT),
    stderr: (isStdout ? (good.stderr ?? NOTHING) : whole).subarray(0, STDERR_LIMIT),
    durationMs: 5,
  }
}

export function goodResult({ stdout = NOTHING, stderr = NOTHING }: GoodAnswer): ScriptResult {
  return { outcome: { kind: 'exit', code: 0 }, stdout, stderr, durationMs: 5 }
}

export function hostileHosts(
  answer: (host: string, script: string, options: ScriptOptions) => ScriptResult | Promise<ScriptResult>,
): OpsHosts {
  return { exec: async (host, script, options) => await answer(host, script, options) }
}
