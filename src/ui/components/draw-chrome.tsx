/** Draws the chrome with Ink, which takes as long to load as the rest of the console: the panes are shown before. */
import chalk from 'chalk'
import { render } from 'ink'
import type { Keymap } from '../keys/registry.ts'
import { createVirtualStdin } from '../tty/virtual-terminal.ts'
import { Chrome, type ChromeProps } from './chrome.tsx'

/** `draw`: again, with other keys. */
export type ChromeDrawing = Disposable & { draw(): void }

type DrawChromeOptions = Pick<ChromeProps, 'source' | 'onFault'> & {
  /** A virtual terminal. */
  readonly stdout: NodeJS.WriteStream
  keymap(): Keymap
  /** It cannot be drawn any more. */
  onEnd(error: unknown): void
}

export function drawChrome({ source, stdout, keymap, onFault, onEnd }: DrawChromeOptions): ChromeDrawing {
  // The virtual terminal has all colours; the compositor maps them.
  chalk.level = 3
  const chromeNow = () => <Chrome source={source} keymap={keymap()} onFault={onFault} />
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
