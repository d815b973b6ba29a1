/** A password as programs print it again: `set` and `declare` of shells, `printf %q`, JSON, HTML, URLs. Pure. */

const FORMS: readonly ((text: string) => string)[] = [
  (text) => text,
  // Within '…', within $'…', within "…", without quotes.
  (text) => text.replaceAll("'", "'\\''"),
  (text) => text.replaceAll("'", `'"'"'`),
  (text) => text.replace(/['\\]/g, '\\$&'),
  (text) => text.replace(/["\\$`]/g, '\\$&'),
  (text) => text.replace(/[^\p{L}\p{N}_@%+=:,./-]/gu, '\\$&'),
  (text) => JSON.stringify(text).slice(1, -1),
  (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
  (text) => (text.isWellFormed() ? encodeURIComponent(text) : text),
]

/** Itself first, each once. */
export const writtenForms = (text: string): readonly string[] => [...new Set(FORMS.map((form) => form(text)))]
