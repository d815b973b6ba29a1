/** Draws `instead` while its children cannot be drawn, and tries them again with the next version. */
import { Box, type DOMElement } from 'ink'
import { Component, type ReactNode } from 'react'
import type { Clock } from '../../base/clock.ts'
import { guardDrawing } from './guard-drawing.ts'

type Props = {
  /** When it changes, the children are tried again. */
  readonly version: unknown
  readonly instead: ReactNode
  readonly clock: Clock
  onFault(error: unknown): void
  readonly children: ReactNode
}
type State = { readonly version?: unknown; readonly hasFailed: boolean; readonly isGuarded: boolean }

export class FaultBoundary extends Component<Props, State> {
  override state: State = { hasFailed: false, isGuarded: false }
  #guard: Disposable | undefined

  static getDerivedStateFromError(): Partial<State> {
    return { hasFailed: true }
  }

  static getDerivedStateFromProps({ version }: Props, state: State): Partial<State> | null {
    return version === state.version ? null : { version, hasFailed: false }
  }

  override componentDidMount(): void {
    this.setState({ isGuarded: true })
  }

  override componentDidCatch(error: unknown): void {
    this.props.onFault(error)
  }

  override componentWillUnmount(): void {
    this.#guard?.[Symbol.dispose]()
  }

  /** An error outside of components, which React does not catch. */
  readonly #fail = (error: unknown): void => {
    this.props.onFault(error)
    this.setState({ hasFailed: true })
  }

  readonly #takeNode = (node: DOMElement | null): void => {
    if (node) this.#guard = guardDrawing(node, this.props.clock, this.#fail)
  }

  override render(): ReactNode {
    const { hasFailed, isGuarded } = this.state
    if (!isGuarded) return <Box ref={this.#takeNode} />
    return hasFailed ? this.props.instead : this.props.children
  }
}
