/** One word of a POSIX shell, as Python's `shlex.quote` writes it: words of harmless characters stay as they are. */
export function shellQuote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
