/** Everything on the screen that Ink draws: header, footer, the log, dialogs. The compositor draws the panes. */
import { Box } from 'ink'
import { useSyncExternalStore } from 'react'
import { clip, clipName, padEnd } from '../../base/text-width.ts'
import { type Theme, themes, toneColour } from '../compositor/scene.ts'
import type { ThrottledChrome } from '../console/chrome-source.ts'
import { footerBars, headerBars } from '../console/header.ts'
import type { Keymap } from '../keys/registry.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { Bar, DialogBox, Themed } from './dialog-box.tsx'

export function Chrome({
  source,
  keymap,
}: {
  source: Pick<ThrottledChrome, 'subscribe' | 'state' | 'pageInfo'>
  keymap: Keymap
}) {
  const state = useSyncExternalStore(source.subscribe, source.state)
  const theme = themes[state.themeName]
  const header = headerBars(state, theme, source.pageInfo())
  const footer = footerBars(state, theme, keymap)
  const { columns, rows } = state
  return (
    <Box flexDirection="column" width={columns} height={rows} overflow="hidden">
      <Bar theme={theme} columns={columns} left={header.left} right={header.right} />
      <Box flexGrow={1} width={columns} overflow="hidden">
        {state.tab === 'log' ? <LogPanel theme={theme} state={state} /> : null}
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

const time = (atMs: number): string => new Date(atMs).toTimeString().slice(0, 8)

/** What happened, newest at the bottom. */
function LogPanel({ theme, state }: { readonly theme: Theme; readonly state: ConsoleState }) {
  const { log, logOffset, columns } = state
  const rows = Math.max(0, state.rows - 2)
  const end = Math.max(0, log.length - logOffset)
  const shown = log.slice(Math.max(0, end - rows), end)
  return (
    <Box flexDirection="column" width={columns} height={rows} overflow="hidden">
      {shown.length === 0 ? <Themed colour={theme.muted}>{'  Nothing has happened yet.'}</Themed> : null}
      {shown.map((entry, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the place is the identity
        <Box key={index} height={1} flexShrink={0}>
          <Themed colour={theme.muted}>{` ${time(entry.atMs)} `}</Themed>
          <Themed colour={theme.accent} isBold>
            {padEnd(clipName(entry.host, 16), 16)}
          </Themed>
          <Themed colour={toneColour(theme, entry.tone, theme.text)}>
            {` ${clip(entry.text, Math.max(4, columns - 28))}`}
          </Themed>
        </Box>
      ))}
    </Box>
  )
}
