import { printable } from '../../base/printable.ts'

/** Text that a spreadsheet would take for a formula gets an apostrophe, also after a semicolon, which starts a cell in some locales. */
export function csvCell(value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'number') return String(Number(value.toFixed(3)))
  const text = printable(value.replace(/(^|;)(?=\s*[=+@-])/g, "$1'"))
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
