/** Everything on the screen that Ink draws: header, footer, dialogs. The compositor draws the panes. */
import { Box, Text } from 'ink'
import { useSyncExternalStore } from 'react'
import type { Clock } from '../../base/clock.ts'
import { clip } from '../../base/text-width.ts'
import { themes } from '../compositor/scene.ts'
import type { ThrottledChrome } from '../console/chrome-source.ts'
import { footerBars, headerBars, noticeBar } from '../console/header.ts'
import { keyGrid } from '../keys/key-grid.ts'
import { commandLabel } from '../keys/registry.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { Bar, DialogBox, Themed } from './dialog-box.tsx'
import { FaultBoundary } from './fault-boundary.tsx'
import { KeyGridBox } from './key-grid-box.tsx'

export type ChromeProps = {
  readonly source: Pick<ThrottledChrome, 'subscribe' | 'state' | 'pageInfo'>
  readonly clock: Clock
  /** Called when the chrome cannot be drawn. */
  onFault(error: unknown): void
}

export function Chrome({ source, clock, onFault }: ChromeProps) {
  const state = useSyncExternalStore(source.subscribe, source.state)
  const { columns, rows } = state
  const instead = (
    <Box width={columns} height={rows}>
      <Text>
        {clip(
          ` Error in Muster: cannot draw header and footer. ${commandLabel(state, 'tab-log')} shows the Log.`,
          columns,
        )}
      </Text>
    </Box>
  )
  return (
    <FaultBoundary version={state} instead={instead} clock={clock} onFault={onFault}>
      <ChromeOf state={state} source={source} />
    </FaultBoundary>
  )
}

function ChromeOf({ state, source }: Omit<ChromeProps, 'clock' | 'onFault'> & { readonly state: ConsoleState }) {
  const theme = themes[state.themeName]
  const header = headerBars(state, theme, source.pageInfo())
  const footer = footerBars(state, theme)
  const notice = noticeBar(state, theme)
  const grid = keyGrid(state)
  const { columns, rows } = state
  return (
    <Box flexDirection="column" width={columns} height={rows} overflow="hidden">
      <Bar theme={theme} columns={columns} left={header.left} right={header.right} />
      <Box flexGrow={1} width={columns} overflow="hidden">
        {state.tab === 'shells' && state.hosts.size === 0 ? (
          <Themed colour={theme.muted}>
            {clip(
              `  No hosts: ${commandLabel(state, 'add-host')} adds one, ${commandLabel(state, 'quit')} quits.`,
              columns,
            )}
          </Themed>
        ) : null}
      </Box>
      <Bar theme={theme} columns={columns} left={footer.left} right={footer.right} />
      {notice === undefined ? null : (
        <Box position="absolute" top={notice.rect.row} left={notice.rect.column} height={1}>
          <Themed {...notice.part} fill={theme.bar} isFilled={theme.name === 'none'}>
            {notice.part.text}
          </Themed>
        </Box>
      )}
      {grid ? <KeyGridBox theme={theme} grid={grid} /> : null}
      {state.mode.kind === 'dialog' ? (
        <DialogBox theme={theme} view={state.mode.dialog} columns={columns} rows={rows} />
      ) : null}
    </Box>
  )
}
