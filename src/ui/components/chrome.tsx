/** Everything on the screen that Ink draws: header, footer, the log, dialogs. The compositor draws the panes. */
import { Box } from 'ink'
import { useSyncExternalStore } from 'react'
import { clip } from '../../base/text-width.ts'
import { footerBars, headerBars, type PageInfo } from '../console/header.ts'
import type { Keymap } from '../keys/registry.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { themes } from '../theme/theme.ts'
import { Bar } from './bar.tsx'
import { DialogBox } from './dialog-box.tsx'
import { LogPanel } from './log-panel.tsx'
import { Themed } from './themed.tsx'

export type ChromeSource = {
  subscribe(onChange: () => void): () => void
  /** The state to draw: the same object until it changes. */
  state(): ConsoleState
  pageInfo(state: ConsoleState): PageInfo
}

export function Chrome({ source, keymap }: { source: ChromeSource; keymap: Keymap }) {
  const state = useSyncExternalStore(source.subscribe, source.state)
  const theme = themes[state.themeName]
  const header = headerBars(state, theme, source.pageInfo(state))
  const footer = footerBars(state, theme, keymap)
  const { columns, rows } = state
  return (
    <Box flexDirection="column" width={columns} height={rows} overflow="hidden">
      <Bar theme={theme} columns={columns} left={header.left} right={header.right} />
      <Box flexGrow={1} width={columns} overflow="hidden">
        {state.tab === 'log' ? (
          <LogPanel
            theme={theme}
            entries={state.log}
            offset={state.logOffset}
            columns={columns}
            rows={Math.max(0, rows - 2)}
          />
        ) : null}
        {state.tab === 'shells' && state.hosts.size === 0 ? (
          <Themed colour={theme.muted}>
            {clip(`  No hosts: ${state.leaderLabel} + adds one, ${state.leaderLabel} q quits.`, columns)}
          </Themed>
        ) : null}
      </Box>
      <Bar theme={theme} columns={columns} left={footer.left} right={footer.right} />
      {state.mode.kind === 'dialog' ? (
        <DialogBox theme={theme} view={state.mode.dialog} columns={columns} rows={rows} />
      ) : null}
    </Box>
  )
}
