/** Draws the chrome with Ink. It takes as long to load as the rest of the console, so the panes are shown first. */
import chalk from 'chalk'
import { render } from 'ink'
import type { Keymap } from '../keys/registry.ts'
import { createVirtualStdin } from '../tty/virtual-terminal.ts'
import { Chrome, type ChromeProps } from './chrome.tsx'

/** `draw` draws it again, with the present keys. */
export type ChromeDrawing = Disposable & { draw(): void }

type DrawChromeOptions = Pick<ChromeProps, 'source' | 'clock' | 'onFault'> & {
  /** A virtual terminal. */
  readonly stdout: NodeJS.WriteStream
  keymap(): Keymap
  /** Called when it can no longer be drawn. */
  onEnd(error: unknown): void
}

export function drawChrome({ source, stdout, keymap, clock, onFault, onEnd }: DrawChromeOptions): ChromeDrawing {
  // The virtual terminal has all colours; the compositor maps them.
  chalk.level = 3
  const chromeNow = () => <Chrome source={source} keymap={keymap()} clock={clock} onFault={onFault} />
  const ink = render(chromeNow(), {
    stdout,
    stdin: createVirtualStdin(),
    interactive: true,
    patchConsole: false,
    exitOnCtrlC: false,
    maxFps: 60,
  })
  ink.waitUntilExit().catch(onEnd)
  return {
    draw: () => ink.rerender(chromeNow()),
    [Symbol.dispose]: () => ink.unmount(),
  }
}
