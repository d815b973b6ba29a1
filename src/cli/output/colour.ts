/** Colours on stdout: as `--color` says, by default on a terminal unless NO_COLOR is set. */
import { styleText } from 'node:util'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'

type Paint = (format: Parameters<typeof styleText>[0], text: string) => string

/** Undefined: no colours. */
export function painterOf({ color = 'auto' }: GlobalOptions, { stdout, environment }: CliContext): Paint | undefined {
  const isWanted = color === 'always' || (color === 'auto' && stdout.isTTY === true && !environment.NO_COLOR)
  return isWanted ? (format, text) => styleText(format, text, { validateStream: false }) : undefined
}
