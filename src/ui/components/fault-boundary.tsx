/** Draws `instead` while its children cannot be drawn, and tries them again with the next version. */
import { Component, type ReactNode } from 'react'

type Props = {
  /** When it changes, the children are tried again. */
  readonly version: unknown
  readonly instead: ReactNode
  onFault(error: unknown): void
  readonly children: ReactNode
}
type State = { readonly version?: unknown; readonly hasFailed: boolean }

export class FaultBoundary extends Component<Props, State> {
  override state: State = { hasFailed: false }

  static getDerivedStateFromError(): Partial<State> {
    return { hasFailed: true }
  }

  static getDerivedStateFromProps({ version }: Props, state: State): State | null {
    return version === state.version ? null : { version, hasFailed: false }
  }

  override componentDidCatch(error: unknown): void {
    this.props.onFault(error)
  }

  override render(): ReactNode {
    return this.state.hasFailed ? this.props.instead : this.props.children
  }
}
