/** Hosts for tests of the kernel: each script is answered by a function, and what ran is remembered. */
import type { OpsHosts, ScriptOptions, ScriptResult } from '../../../../src/ops/kernel/host-port.ts'
import type { Operation, Step } from '../../../../src/ops/kernel/operation.ts'
import type { RunOutcome } from '../../../../src/ops/run/outcome.ts'

export type Answer = { readonly outcome?: RunOutcome; readonly stdout?: string; readonly stderr?: string }
export type Ran = { readonly host: string; readonly script: string; readonly stdin: string }

const NONE = new Uint8Array()
const CANCELLED: ScriptResult = { outcome: { kind: 'cancelled' }, stdout: NONE, stderr: NONE, durationMs: 0 }

export class StandInHosts implements OpsHosts {
  readonly ran: Ran[] = []
  /** What became of scripts that were to wait for their turn; one whose name ends with `that ends` does not wait. */
  readonly turns: string[] = []
  readonly #answer: (host: string, script: string, signal: AbortSignal) => Answer | Promise<Answer>

  constructor(answer: (host: string, script: string, signal: AbortSignal) => Answer | Promise<Answer> = () => ({})) {
    this.#answer = answer
  }

  async exec(host: string, script: string, { stdin, turn, signal, onOutput }: ScriptOptions): Promise<ScriptResult> {
    this.ran.push({ host, script, stdin: Buffer.from(stdin ?? []).toString() })
    if (turn !== undefined && (await this.#isOverBefore(turn, script, signal))) return CANCELLED
    const { outcome = { kind: 'exit', code: 0 }, stdout = '', stderr = '' } = await this.#answer(host, script, signal)
    if (stdout !== '') onOutput?.('stdout', stdout)
    return { outcome, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr), durationMs: 0 }
  }

  async #isOverBefore(turn: Promise<void>, script: string, signal: AbortSignal): Promise<boolean> {
    const over = Promise.withResolvers<'over'>()
    signal.addEventListener('abort', () => over.resolve('over'), { once: true })
    if (script.endsWith('that ends')) over.resolve('over')
    const isOver = (await Promise.race([turn, over.promise])) === 'over'
    this.turns.push(`${script}: ${isOver ? 'ended' : 'went on'}`)
    return isOver
  }

  /** `HOST SCRIPT` of what ran, in that order. */
  get scripts(): string[] {
    return this.ran.map(({ host, script }) => `${host} ${script}`)
  }
}

/** An operation `area/NAME@HOST` whose steps run scripts of these names. */
export function operationOf(
  name: string,
  host: string,
  scripts: readonly (string | (Partial<Step> & { readonly id: string }))[],
  after: readonly string[] = [],
): Operation {
  const id = `area/${name}@${host}`
  const steps = scripts.map((script): Step => {
    const own = typeof script === 'string' ? { id: script } : script
    return { title: own.id, changes: [], run: { script: own.id }, ...own, id: `${id}/${own.id}` }
  })
  const verdict =
    steps.length > 0
      ? ({ kind: 'steps', state: 'missing', steps } as const)
      : ({ kind: 'nothing', because: 'it is so' } as const)
  return { id, area: 'area', host, title: name, after, verdict }
}

export const failure: Answer = { outcome: { kind: 'exit', code: 1 }, stderr: 'no\n' }
