/** What happened, newest at the bottom. */
import { Box } from 'ink'
import { clip, clipName, padEnd } from '../../base/text-width.ts'
import type { LogEntry } from '../state/console-state.ts'
import { type Theme, toneColour } from '../theme/theme.ts'
import { Themed } from './themed.tsx'

const time = (atMs: number): string => new Date(atMs).toTimeString().slice(0, 8)

export type LogPanelProps = {
  readonly theme: Theme
  readonly entries: readonly LogEntry[]
  readonly offset: number
  readonly columns: number
  readonly rows: number
}

export function LogPanel({ theme, entries, offset, columns, rows }: LogPanelProps) {
  const end = Math.max(0, entries.length - offset)
  const shown = entries.slice(Math.max(0, end - rows), end)
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
