import { printable } from './printable.ts'

const NUMBER = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?)$/i

/**
 * A cell of a CSV file (RFC 4180). Text that a spreadsheet would take for a formula gets an apostrophe, also after a semicolon,
 * which starts a cell in some locales. Numbers have at most three decimals; the text of a number stays as it is.
 */
export function csvCell(value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'number') return String(Number(value.toFixed(3)))
  const text = NUMBER.test(value) ? value : printable(value.replace(/(^|;)(?=\s*[=+@-])/g, "$1'"))
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
