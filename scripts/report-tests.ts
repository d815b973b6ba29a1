/** Prints `N passed, N failed` out of vitest's JSON report (the one argument); fails unless tests ran and all passed. */
import { readFileSync } from 'node:fs'
import { formatReport, parseReport } from '../test/support/vitest-run.ts'

const { line, isGood } = formatReport(parseReport(readFileSync(process.argv[2] ?? '', 'utf8')))
process.stdout.write(`${line}\n`)
process.exitCode = isGood ? 0 : 1
