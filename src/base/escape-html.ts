import { printable } from './printable.ts'

/** Text for HTML, SVG and XML, also inside an attribute in quotes. What XML cannot hold becomes visible. */
export function escapeHtml(text: string): string {
  return printable(text)
    .replace(/[\ufffe\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16)}`)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
