/** Draws the commands while the leader waits. */
import { Box } from 'ink'
import { textWidth } from '../../base/text-width.ts'
import type { Theme } from '../compositor/scene.ts'
import type { GridCell, KeyGrid } from '../keys/key-grid.ts'
import { Framed, Themed } from './dialog-box.tsx'

const restOf = (cells: readonly GridCell[], width: number): number =>
  Math.max(0, width - cells.reduce((sum, { key, text }) => sum + textWidth(key) + textWidth(text), 0))

export function KeyGridBox({ theme, grid: { rows, rect } }: { readonly theme: Theme; readonly grid: KeyGrid }) {
  const colours = { title: theme.accent, plain: theme.barText, disabled: theme.muted }
  return (
    <Framed rect={rect} theme={theme} edge={theme.accent}>
      {rows.map((cells, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the place is the identity
        <Box key={row} height={1} flexShrink={0}>
          <Themed fill={theme.dialog}> </Themed>
          {cells.map(({ key, text, tone }, column) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the place is the identity
            <Box key={column} flexShrink={0}>
              <Themed colour={tone === 'disabled' ? theme.muted : theme.accent} fill={theme.dialog} isBold>
                {key}
              </Themed>
              <Themed
                colour={colours[tone]}
                fill={theme.dialog}
                isBold={tone === 'title'}
                isDim={theme.name === 'none' && tone === 'disabled'}
              >
                {text}
              </Themed>
            </Box>
          ))}
          <Themed fill={theme.dialog}>{' '.repeat(restOf(cells, rect.width - 3))}</Themed>
        </Box>
      ))}
    </Framed>
  )
}
