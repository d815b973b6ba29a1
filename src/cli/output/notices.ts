/**
 * Progress, notices and summaries: what `--quiet` leaves out. Results are written to stdout, warnings and errors to stderr, whether
 * it is given or not.
 */
import type { CliContext } from '../command-line/verb.ts'

export type NoticeContext = Pick<CliContext, 'isQuiet'> & { readonly stderr: { write(text: string): unknown } }

/** `text`: printable lines, with their line breaks. */
export function notice({ stderr, isQuiet }: NoticeContext, text: string): void {
  if (isQuiet !== true) stderr.write(text)
}
