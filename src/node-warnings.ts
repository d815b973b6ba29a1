/** Warnings of Node are for those who work on Muster: users see them with --verbose only, as lines of Muster. */
import { printable } from './base/printable.ts'

export function tameNodeWarnings(print: ((line: string) => void) | undefined): void {
  // Node's own listener prints them, with a stack and advice about flags of node.
  process.removeAllListeners('warning')
  process.on('warning', (warning: Error & { readonly code?: string }) => {
    print?.(`muster: Node warns: ${warning.code ?? warning.name}: ${printable(warning.message)}\n`)
  })
}
