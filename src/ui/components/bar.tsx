/** A line across the whole screen: parts from the left, parts from the right, the bar's colour between. */
import { Box } from 'ink'
import { textWidth } from '../../base/text-width.ts'
import type { Theme } from '../theme/theme.ts'
import { Themed, type ThemedProps } from './themed.tsx'

export type BarPart = Omit<ThemedProps, 'isDim' | 'children'> & { readonly text: string }

export type BarProps = {
  readonly theme: Theme
  readonly columns: number
  readonly left: readonly BarPart[]
  readonly right: readonly BarPart[]
}

export function Bar({ theme, columns, left, right }: BarProps) {
  const taken = [...left, ...right].reduce((sum, part) => sum + textWidth(part.text), 0)
  const gap = ' '.repeat(Math.max(0, columns - taken))
  const draw = (part: BarPart, index: number) => (
    <Themed
      key={index}
      {...part}
      colour={part.colour ?? theme.barText}
      fill={part.fill ?? theme.bar}
      isFilled={part.isFilled ?? false}
    >
      {part.text}
    </Themed>
  )
  return (
    <Box width={columns} height={1} flexShrink={0} overflow="hidden">
      {left.map(draw)}
      <Themed fill={theme.bar}>{gap}</Themed>
      {right.map(draw)}
    </Box>
  )
}
