/** A run of text in semantic colours: filled labels fall back to inverse video where a theme has no colours. */
import { Text } from 'ink'
import type { ReactNode } from 'react'
import { defined } from '../../base/defined.ts'
import type { ThemeColour } from '../theme/theme.ts'

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
