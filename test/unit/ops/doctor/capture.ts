/** Answers of the fact script as hosts gave them (Debian), or as the manuals of busybox and macOS describe them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type MachineFacts, parseFacts } from '../../../../src/ops/doctor/fact-script.ts'

type Capture = 'debian-12-dash' | 'debian-12-full-tmp' | 'alpine-busybox' | 'macos'

export function captured(name: Capture): string {
  return readFileSync(join(import.meta.dirname, '../../../fixtures/doctor', `${name}.txt`), 'utf8')
}

export function factsOf(name: Capture): MachineFacts {
  return parseFacts(captured(name), 'mark')
}

/** Facts of a host that says nothing. */
export const NO_FACTS: MachineFacts = { ...parseFacts('', 'mark'), hanging: [] }
