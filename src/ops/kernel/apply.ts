/**
 * Applies a plan: hosts in parallel, the operations of a host in sequence, each after those that it waits for. A host stops at its
 * first failure, and operations elsewhere that wait for it are skipped with the reason. It can be interrupted at any time: nothing
 * is remembered, and the next plan is made from new facts. When it returns, nothing that it started is running.
 */
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { formatOutcome, isSuccess, type RunOutcome } from '../run/outcome.ts'
import { type OpsHosts, reasonOfResult, type ScriptOptions, type ScriptResult } from './host-port.ts'
import type { Action, Operation, StdinPart, Step } from './operation.ts'
import type { Plan } from './plan.ts'

export type StepEnd =
  | { readonly kind: 'done' }
  /** Its check already held. */
  | { readonly kind: 'unneeded' }
  /** `outcome`: of the script, or of the check that did not hold after it; the reason is printable. */
  | { readonly kind: 'failed'; readonly outcome: RunOutcome; readonly reason: string; readonly isUndone?: boolean }
  | { readonly kind: 'cancelled' }
  /** It did not start, because something before it failed. */
  | { readonly kind: 'skipped'; readonly reason: string }

export type ApplyEvent = { readonly operation: Operation; readonly step: Step } & (
  | { readonly type: 'begin' }
  /** The text is not printable yet. */
  | { readonly type: 'output'; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly type: 'end'; readonly end: StepEnd; readonly durationMs: number }
)

export type ApplyOptions = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  /** Hosts at work at once. */
  readonly fanOut: number
  /** Multiplies every time limit, for slow hosts; 1 unless given. */
  readonly limitFactor?: number
  now(): number
  onEvent(event: ApplyEvent): void
}

export type ApplyResult = {
  readonly ends: ReadonlyMap<string, StepEnd>
  /** Every step is done or was not needed. */
  readonly isComplete: boolean
}

const TIMEOUT_MS = 60_000
const CHECK_TIMEOUT_MS = 20_000
/** Limit of the output that another step may read. */
const OUTPUT_CHARACTERS = 16_384

/** If `onEvent` throws, everything that runs is stopped, and then it rejects with that error. */
export async function applyPlan(plan: Plan, options: ApplyOptions): Promise<ApplyResult> {
  const run = new Application(options)
  await run.all(plan.operations.filter(({ verdict }) => verdict.kind !== 'nothing'))
  const ends = run.ends
  return { ends, isComplete: [...ends.values()].every(({ kind }) => kind === 'done' || kind === 'unneeded') }
}

/** Undefined: all steps are done; otherwise why the operations after it cannot run. */
type OperationEnd = string | undefined

/** `begun`: everything that it waits for has ended. */
type OperationRun = { readonly begun: Promise<void>; readonly ended: Promise<OperationEnd> }

class Application {
  readonly ends = new Map<string, StepEnd>()
  readonly #options: ApplyOptions
  readonly #outputs = new Map<string, string>()
  /** Steps whose output another step reads. */
  readonly #used = new Set<string>()
  /** How many hosts get the same files. */
  readonly #deliveries = new Map<string, number>()
  readonly #slots: Slots
  /** Stops all operations at the first defect, or when the options' signal is aborted. */
  readonly #signal: AbortSignal
  readonly #broken = new AbortController()
  #defect: { readonly error: unknown } | undefined
  /** How many steps may still start early: at most one for each slot. */
  #earlyStarts: number

  constructor(options: ApplyOptions) {
    this.#options = options
    this.#slots = new Slots(options.fanOut)
    this.#signal = AbortSignal.any([options.signal, this.#broken.signal])
    this.#earlyStarts = options.fanOut
  }

  async all(operations: readonly Operation[]): Promise<void> {
    for (const { verdict } of operations) {
      for (const { run, check } of verdict.kind === 'steps' ? verdict.steps : []) {
        const key = JSON.stringify(run.files)
        if (run.files !== undefined) this.#deliveries.set(key, (this.#deliveries.get(key) ?? 0) + 1)
        for (const part of [...(run.stdin ?? []), ...(check?.stdin ?? [])])
          if (typeof part === 'object' && 'output' in part) this.#used.add(part.output)
      }
    }
    const byId = new Map<string, OperationRun>()
    const lastOf = new Map<string, Promise<OperationEnd>>()
    for (const operation of operations) {
      const { id, host, after } = operation
      const begun = Promise.withResolvers<void>()
      const others = after.flatMap((other) => byId.get(other) ?? [])
      const ended = this.#operation(operation, lastOf.get(host), others, begun.resolve).catch((error: unknown) => {
        begun.resolve()
        this.#break(error)
        return 'cancelled'
      })
      byId.set(id, { begun: begun.promise, ended })
      lastOf.set(host, operation.isAlone === true ? ended.then(() => undefined) : ended)
    }
    await Promise.all([...byId.values()].map(({ ended }) => ended))
    if (this.#defect !== undefined) throw this.#defect.error
  }

  #break(error: unknown): void {
    this.#defect ??= { error }
    this.#broken.abort()
  }

  async #operation(
    operation: Operation,
    before: Promise<OperationEnd> | undefined,
    others: readonly OperationRun[],
    onBegin: () => void,
  ): Promise<OperationEnd> {
    const all = Promise.all([before, ...others.map(({ ended }) => ended)])
    // Once the operations that it waits for are running: earlier ones may change what it loads.
    const isFirst = await Promise.all([before, ...others.map(({ begun }) => begun)]).then(([why]) => why === undefined)
    await using early = isFirst && others.length > 0 ? this.#startEarly(operation) : undefined
    const reasons = await all
    onBegin()
    const { verdict, host, title } = operation
    if (verdict.kind === 'nothing') return undefined
    let reason = reasons.find((each) => each !== undefined)
    if (verdict.kind === 'blocked') {
      return reason ?? `${title} on ${host} is blocked: ${printable(verdict.findings[0]?.cause ?? '')}`
    }
    for (const [index, step] of verdict.steps.entries()) {
      if (reason !== undefined) {
        this.#end(operation, step, { kind: 'skipped', reason }, 0)
        continue
      }
      const end = await this.#slots.use(() => this.#step(operation, step, index === 0 ? early : undefined))
      if (end.kind === 'failed') reason = `${step.title} failed on ${host}`
      if (end.kind === 'cancelled') reason = 'cancelled'
    }
    return reason
  }

  #startEarly(operation: Operation): EarlyStart | undefined {
    const { verdict, host } = operation
    const { hosts, limitFactor = 1 } = this.#options
    const [step] = verdict.kind === 'steps' ? verdict.steps : []
    if (step?.run.early === undefined || this.#earlyStarts === 0) return undefined
    this.#earlyStarts -= 1
    const { early, timeoutMs = TIMEOUT_MS } = step.run
    return new EarlyStart(hosts, host, early, {
      signal: this.#signal,
      timeoutMs: timeoutMs * limitFactor,
      onOutput: this.#tellOutput(operation, step),
    })
  }

  #tellOutput(operation: Operation, step: Step): NonNullable<ScriptOptions['onOutput']> {
    return (stream, text) => {
      try {
        this.#options.onEvent({ type: 'output', operation, step, stream, text })
      } catch (error) {
        // The source of the output cannot report this error.
        this.#break(error)
      }
    }
  }

  async #step(operation: Operation, step: Step, early: EarlyStart | undefined): Promise<StepEnd> {
    const { now, onEvent } = this.#options
    const signal = this.#signal
    const sinceMs = now()
    const end = (ended: StepEnd): StepEnd => this.#end(operation, step, ended, now() - sinceMs)
    if (signal.aborted) return end({ kind: 'cancelled' })
    onEvent({ type: 'begin', operation, step })
    // A step whose output another step needs has to run anyway.
    const first = this.#used.has(step.id) ? undefined : step.check
    if (first !== undefined && (await this.#holds(operation, first)) === undefined) {
      return end({ kind: 'unneeded' })
    }
    const stdin = this.#stdinOf(step.run.stdin ?? [])
    if (typeof stdin === 'string') return end({ kind: 'failed', outcome: { kind: 'exit', code: 1 }, reason: stdin })
    const onOutput = step.run.isSecret === true ? undefined : this.#tellOutput(operation, step)
    const result = (await early?.goOn()) ?? (await this.#run(operation, step.run, stdin, onOutput))
    if (result.outcome.kind === 'cancelled') return end({ kind: 'cancelled' })
    let failure = failureOf(step.run.isSecret === true ? { ...result, stdout: new Uint8Array() } : result)
    if (failure === undefined && step.check !== undefined && step.run.isProof !== true) {
      const why = await this.#holds(operation, step.check)
      if (why !== undefined) failure = { outcome: result.outcome, reason: `it ran, but ${step.check.lack}: ${why}` }
    }
    if (failure === undefined) {
      this.#outputs.set(step.id, Buffer.from(result.stdout).toString().slice(0, OUTPUT_CHARACTERS))
      return end({ kind: 'done' })
    }
    if (step.undo === undefined || signal.aborted) return end({ kind: 'failed', ...failure })
    const undone = failureOf(await this.#run(operation, step.undo, this.#stdinOf(step.undo.stdin ?? [])))
    const more = undone === undefined ? `undone: ${step.undo.title}` : `and undoing it failed: ${undone.reason}`
    const reason = `${failure.reason}; ${more}`
    return end({ kind: 'failed', outcome: failure.outcome, reason, isUndone: undone === undefined })
  }

  /** Undefined: it holds; otherwise its message. */
  async #holds({ host }: Operation, check: NonNullable<Step['check']>): Promise<string | undefined> {
    const { hosts, limitFactor = 1 } = this.#options
    const signal = this.#signal
    const { script, asRoot = false, timeoutMs = CHECK_TIMEOUT_MS } = check
    const stdin = this.#stdinOf(check.stdin ?? [])
    if (typeof stdin === 'string') return stdin
    const more = defined({ stdin: stdin.length === 0 ? undefined : stdin })
    return failureOf(await hosts.exec(host, script, { asRoot, timeoutMs: timeoutMs * limitFactor, signal, ...more }))
      ?.reason
  }

  async #run(
    { host }: Operation,
    { script, files, asRoot = false, timeoutMs = TIMEOUT_MS }: Action,
    stdin: Uint8Array | string,
    onOutput?: (stream: 'stdout' | 'stderr', text: string) => void,
  ): Promise<ScriptResult> {
    const { hosts, limitFactor = 1 } = this.#options
    const signal = this.#signal
    if (files !== undefined) {
      const together = this.#deliveries.get(JSON.stringify(files)) ?? 1
      const brought = await hosts.deliver?.(host, files, { signal, together, ...defined({ onOutput }) })
      if (brought === undefined) throw new MusterError('internal', 'these hosts cannot be brought files')
      if (!isSuccess(brought.outcome)) return brought
    }
    const bytes = Buffer.from(stdin)
    const more = defined({ stdin: bytes.length === 0 ? undefined : bytes, onOutput })
    return await hosts.exec(host, script, { asRoot, timeoutMs: timeoutMs * limitFactor, signal, ...more })
  }

  /** The bytes, or why there are none. */
  #stdinOf(parts: readonly StdinPart[]): Uint8Array | string {
    const pieces: Uint8Array[] = []
    for (const part of parts) {
      if (typeof part === 'string') pieces.push(Buffer.from(part))
      else if (part instanceof Uint8Array) pieces.push(part)
      else {
        const line = this.#outputs.get(part.output)?.trim()
        if (line === undefined) return `there is no output of ${part.output}`
        if (!new RegExp(`^(?:${part.pattern})$`).test(line)) return `${part.output} printed unexpected output`
        pieces.push(Buffer.from(line))
      }
    }
    return Buffer.concat(pieces)
  }

  #end(operation: Operation, step: Step, end: StepEnd, durationMs: number): StepEnd {
    this.ends.set(step.id, end)
    this.#options.onEvent({ type: 'end', operation, step, end, durationMs })
    return end
  }
}

/** A step's script that starts before its turn, to load what it needs; it changes nothing until then, and is stopped if its turn never comes. */
class EarlyStart implements AsyncDisposable {
  readonly #turn = Promise.withResolvers<void>()
  readonly #unwanted = new AbortController()
  readonly #ended: Promise<ScriptResult>
  #state: 'waits' | 'goes' | 'ended' = 'waits'

  constructor(
    hosts: OpsHosts,
    host: string,
    script: string,
    options: Required<Pick<ScriptOptions, 'signal' | 'timeoutMs' | 'onOutput'>>,
  ) {
    const { signal, timeoutMs, onOutput } = options
    this.#ended = hosts.exec(host, script, {
      timeoutMs,
      signal: AbortSignal.any([signal, this.#unwanted.signal]),
      turn: this.#turn.promise,
      onOutput: (stream, text) => {
        if (this.#state === 'goes') onOutput(stream, text)
      },
    })
    void this.#ended.then(() => {
      this.#state = 'ended'
    })
  }

  /** Called when its turn has come: how it ends. Undefined: it ended before, for whatever reason. */
  async goOn(): Promise<ScriptResult | undefined> {
    if (this.#state === 'ended') return undefined
    this.#state = 'goes'
    this.#turn.resolve()
    return await this.#ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unwanted.abort()
    await this.#ended
  }
}

function failureOf(result: ScriptResult): { outcome: RunOutcome; reason: string } | undefined {
  const { outcome } = result
  if (isSuccess(outcome)) return undefined
  return { outcome, reason: printable(reasonOfResult(result, formatOutcome)) }
}

/** At most `count` at once, in the order of arrival. */
class Slots {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
