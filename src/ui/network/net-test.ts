/** A measurement in the Network tab: a prompt takes its order, and it continues while another view or tab is shown. */
import { sentenceOf } from '../../base/errors.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { type PromptOptions, promptDialog } from '../dialogs/prompt-dialog.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { PageContext } from '../state/console-state.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import type { NetTestsPort } from './net-tests-port.ts'
import type { NetworkView, NetworkViewId } from './network-view.ts'

export type NetTestParts = {
  readonly context: PageContext
  readonly port: NetTestsPort
  readonly resolveHosts: ResolveHosts
  show(id: NetworkViewId): void
}

const SHOW_EVERY_MS = 200

/** `O`: the order of the user. */
export abstract class NetTest<O> implements NetworkView {
  protected readonly parts: NetTestParts
  protected readonly showing: ThrottledAction
  /** Stops what runs now. */
  protected working: AbortController | undefined
  protected isDisposed = false

  constructor(parts: NetTestParts) {
    this.parts = parts
    const every = { clock: parts.context.clock, everyMs: SHOW_EVERY_MS }
    this.showing = new ThrottledAction(every, () => this.publish())
  }

  /** What is measured now, for the question before leaving. */
  abstract get busy(): { readonly title: string; readonly hosts: readonly string[] } | undefined
  abstract panes(rect: Rect, theme: Theme): readonly PaneView[]
  abstract handleKey(label: string): boolean | 'leave'
  abstract scrollBy(rows: number): void
  /** @throws MusterError */
  protected abstract read(text: string): O
  protected abstract begin(order: O): void
  /** Writes the measurement into the console's state. */
  protected abstract publish(): void

  open(): void {}

  /** `preview`: shows what an order would do. */
  protected prompt(
    options: Omit<PromptOptions, 'check' | 'onSubmit'>,
    preview: (order: O) => readonly DialogLine[],
  ): void {
    this.parts.context.openDialog(
      promptDialog({
        ...options,
        check: (text) => {
          try {
            return { preview: preview(this.read(text)) }
          } catch (error) {
            return { error: sentenceOf(error) }
          }
        },
        onSubmit: (text) => this.begin(this.read(text)),
      }),
    )
  }

  [Symbol.dispose](): void {
    this.isDisposed = true
    this.working?.abort()
    this.showing[Symbol.dispose]()
  }
}
