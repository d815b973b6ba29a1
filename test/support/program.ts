/** A program of a test's own in place of a real one. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** `script`: for sh. The directory is made, and a program that is there replaced. */
export function writeProgram(path: string, script: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
}
