import { MusterError } from './errors.ts'

/** @throws MusterError `usage` if it was removed */
export function workingDirectory(): string {
  try {
    return process.cwd()
  } catch (cause) {
    throw new MusterError('usage', 'the working directory was removed', { cause, hint: 'Change to another one: cd ~' })
  }
}
