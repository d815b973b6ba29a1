/**
 * The clipboard of the user's terminal, written with OSC 52 (xterm ctlseqs, "Manipulate Selection Data"), which also works
 * over SSH. Nothing is ever read from it. What hosts print cannot get here: their emulators drop OSC 52.
 */

/** tmux drops a sequence of more than 1 MB, and base64 makes text a third longer. */
export const CLIPBOARD_BYTES = 512 * 1024

/** Undefined: the text is too long. */
export function clipboardSequence(text: string): Buffer | undefined {
  // A paste elsewhere must not act: only line ends and tabs are kept of the control characters.
  const clean = text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
  const bytes = Buffer.from(clean)
  return bytes.length > CLIPBOARD_BYTES ? undefined : Buffer.from(`\x1b]52;c;${bytes.toString('base64')}\x07`)
}
