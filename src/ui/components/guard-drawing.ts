/**
 * Ink lays out and prints inside React's commit. An error there stops React for good, and one that passes through Yoga, which
 * is WebAssembly, loses a part of its stack each time. So both are caught before they get there.
 */
import type { DOMElement } from 'ink'
import type { Clock } from '../../base/clock.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'

const PRINT_MS = 1000 / 60

/** Why texts of the last layout could not be measured. */
const measureErrors: unknown[] = []

/** Guards the drawing that a node is part of. Nodes that are there already are not guarded. */
export function guardDrawing(node: DOMElement, clock: Clock, onFault: (error: unknown) => void): Disposable {
  const root = rootOf(node)
  const { onComputeLayout, onImmediateRender, yogaNode } = root
  if (!onComputeLayout || !onImmediateRender || !yogaNode) throw new Error('Ink draws in another way now')
  guardMeasures(Object.getPrototypeOf(yogaNode))
  root.onComputeLayout = () => {
    measureErrors.length = 0
    onComputeLayout()
    if (measureErrors.length > 0) onFault(measureErrors[0])
  }
  // Ink's own throttle prints from a timer that nothing can catch.
  const printing = new ThrottledAction({ clock, everyMs: PRINT_MS }, () => {
    try {
      onImmediateRender()
    } catch (error) {
      onFault(error)
    }
  })
  root.onRender = () => printing.nowOrSoon()
  return printing
}

function rootOf(node: DOMElement): DOMElement {
  let root = node
  while (root.parentNode) root = root.parentNode
  return root
}

type YogaNodes = Pick<NonNullable<DOMElement['yogaNode']>, 'setMeasureFunc'>
const guarded = new WeakSet<YogaNodes>()

/** Those of all nodes that are made from now on. */
function guardMeasures(nodes: YogaNodes): void {
  if (guarded.has(nodes)) return
  guarded.add(nodes)
  const { setMeasureFunc } = nodes
  nodes.setMeasureFunc = function (measure) {
    const safe: typeof measure = (...given) => {
      try {
        return measure?.(...given) ?? NOTHING
      } catch (error) {
        measureErrors.push(error)
        return NOTHING
      }
    }
    setMeasureFunc.call(this, measure && safe)
  }
}

const NOTHING = { width: 0, height: 0 }
