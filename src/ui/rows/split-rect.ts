import type { Rect } from '../compositor/scene.ts'

/** The upper part of this height, and the rest. */
export const splitRows = (rect: Rect, height: number): readonly [Rect, Rect] => [
  { ...rect, height },
  { ...rect, row: rect.row + height, height: rect.height - height },
]

/** The left part of this width, and the rest. */
export const splitColumns = (rect: Rect, width: number): readonly [Rect, Rect] => [
  { ...rect, width },
  { ...rect, column: rect.column + width, width: rect.width - width },
]
