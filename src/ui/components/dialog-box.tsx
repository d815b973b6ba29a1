/** Draws a dialog's view inside its rectangle. */
import { Box, Text } from 'ink'
import { Fragment, type ReactNode } from 'react'
import { defined } from '../../base/defined.ts'
import { clip, padEnd, partsWidth, textWidth } from '../../base/text-width.ts'
import { type Rect, type Theme, type ThemeColour, toneColour } from '../compositor/scene.ts'
import type { DialogLine, DialogView } from '../dialogs/dialog.ts'
import { type BarPart, type BarProps, layoutDialog, printableView, shownInput } from './layout-dialog.ts'

export function Bar({ theme, columns, left, right }: BarProps) {
  const gap = ' '.repeat(Math.max(0, columns - partsWidth(left) - partsWidth(right)))
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

type FramedProps = {
  readonly rect: Rect
  readonly theme: Theme
  readonly edge: ThemeColour
  readonly children: ReactNode
}

/** A frame over the panes. */
export const Framed = ({ rect: { row, column, width, height }, theme, edge, children }: FramedProps) => (
  <Box
    position="absolute"
    top={row}
    left={column}
    width={width}
    height={height}
    flexDirection="column"
    borderStyle="round"
    overflow="hidden"
    {...defined({ borderColor: edge, borderBackgroundColor: theme.dialog })}
  >
    {children}
  </Box>
)

function BodyRow({ theme, line, width }: { theme: Theme; line: DialogLine; width: number }) {
  const right = line.right ? clip(line.right, Math.max(0, width - 12)) : ''
  const room = width - (right ? textWidth(right) + 3 : 0)
  const text = padEnd(clip(`${line.isSelected ? '▸ ' : '  '}${line.text}`, room), room)
  const fill = line.isSelected ? theme.accent : theme.dialog
  const colour = line.isSelected
    ? theme.name === 'light'
      ? '#ffffff'
      : theme.receivingText
    : toneColour(theme, line.tone)
  return (
    <Box height={1} flexShrink={0}>
      <Themed
        colour={colour}
        fill={fill}
        isFilled={line.isSelected ?? false}
        isDim={theme.name === 'none' && line.tone === 'muted'}
      >
        {text}
      </Themed>
      {right ? (
        <Themed colour={line.isSelected ? colour : theme.muted} fill={fill} isFilled={line.isSelected ?? false}>
          {` ${right}  `}
        </Themed>
      ) : null}
    </Box>
  )
}

function InputLine({ theme, input, width }: { theme: Theme; input: NonNullable<DialogView['input']>; width: number }) {
  const isEmpty = input.text === ''
  const { label, before, at, after } = shownInput(input, width)
  return (
    <Box height={1} flexShrink={0}>
      <Themed colour={theme.muted} fill={theme.dialog}>
        {label}
      </Themed>
      <Themed colour={theme.barText} fill={theme.dialog} isBold>
        {before}
      </Themed>
      <Themed colour={theme.dialog ?? undefined} fill={theme.barText} isFilled>
        {at}
      </Themed>
      <Themed colour={isEmpty ? theme.muted : theme.barText} fill={theme.dialog} isBold={!isEmpty}>
        {after}
      </Themed>
    </Box>
  )
}

export type DialogBoxProps = {
  readonly theme: Theme
  readonly view: DialogView
  readonly columns: number
  readonly rows: number
}

export function DialogBox({ theme, view: given, columns, rows }: DialogBoxProps) {
  const view = printableView(given)
  const { rect, hasBlanks, hasTitle, errors, body, keys } = layoutDialog(view, columns, rows)
  const width = rect.width - 2
  const edge = view.tone === 'danger' ? theme.danger : theme.accent
  const row = (text: string, colour: ThemeColour, isBold = false) => (
    <Box height={1} flexShrink={0}>
      <Themed colour={colour} fill={theme.dialog} isBold={isBold}>
        {padEnd(clip(text, width), width)}
      </Themed>
    </Box>
  )
  const blank = hasBlanks ? row('', theme.muted) : null
  return (
    <Framed rect={rect} theme={theme} edge={edge}>
      {hasTitle ? row(`  ${view.title}`, edge, true) : null}
      {blank}
      {view.input ? <InputLine theme={theme} input={view.input} width={width} /> : null}
      {errors.map((line) => (
        <Fragment key={line}>{row(`  ${line}`, theme.danger)}</Fragment>
      ))}
      {view.input ? blank : null}
      {body.map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the place is the identity
        <BodyRow key={index} theme={theme} line={line} width={width} />
      ))}
      {blank}
      {keys.map((hints) => {
        const text = hints.map((hint) => hint.text).join('')
        return <Fragment key={text}>{row(text, theme.muted)}</Fragment>
      })}
    </Framed>
  )
}
