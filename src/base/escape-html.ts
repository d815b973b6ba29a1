import { printable } from './printable.ts'

/** Text for HTML, SVG and XML, also inside an attribute in quotes. Control characters become visible. */
export function escapeHtml(text: string): string {
  return printable(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
