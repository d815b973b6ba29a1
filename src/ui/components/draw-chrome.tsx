/** Draws the chrome with Ink. It takes as long to load as the rest of the console, so the panes are shown first. */
import chalk from 'chalk'
import { render } from 'ink'
import { createVirtualStdin } from '../tty/virtual-terminal.ts'
import { Chrome, type ChromeProps } from './chrome.tsx'

type DrawChromeOptions = Pick<ChromeProps, 'source' | 'clock' | 'onFault'> & {
  /** A virtual terminal. */
  readonly stdout: NodeJS.WriteStream
  /** Called when it can no longer be drawn. */
  onEnd(error: unknown): void
}

export function drawChrome({ source, stdout, clock, onFault, onEnd }: DrawChromeOptions): Disposable {
  // The virtual terminal has all colours; the compositor maps them.
  chalk.level = 3
  const ink = render(<Chrome source={source} clock={clock} onFault={onFault} />, {
    stdout,
    stdin: createVirtualStdin(),
    interactive: true,
    patchConsole: false,
    exitOnCtrlC: false,
    maxFps: 60,
  })
  ink.waitUntilExit().catch(onEnd)
  return { [Symbol.dispose]: () => ink.unmount() }
}
