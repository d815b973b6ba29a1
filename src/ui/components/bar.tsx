/** A line across the whole screen: parts from the left, parts from the right, the bar's colour between. */
import { Box, Text } from 'ink'
import type { ReactNode } from 'react'
import { defined } from '../../base/defined.ts'
import { textWidth } from '../../base/text-width.ts'
import type { Theme, ThemeColour } from '../theme/theme.ts'

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

export type ThemedProps = {
  readonly colour?: ThemeColour
  readonly fill?: ThemeColour
  readonly isFilled?: boolean
  readonly isBold?: boolean
  readonly isDim?: boolean
  readonly children?: ReactNode
}

export function Themed({ colour, fill, isFilled = false, isBold = false, isDim = false, children }: ThemedProps) {
  return (
    <Text
      wrap="truncate"
      bold={isBold}
      dimColor={isDim}
      inverse={isFilled && fill === undefined}
      {...defined({ color: colour, backgroundColor: fill })}
    >
      {children}
    </Text>
  )
}
