/**
 * All tests but the heavy ones, or what the arguments for vitest choose; in CI, files that failed get a second try. The last line
 * is `N passed, N failed`.
 */
import { vitest } from '../test/support/vitest-run.ts'

const args = process.argv.slice(2)
const projects = args.some((arg) => arg.startsWith('--project')) ? [] : ['--project=!heavy']
process.exitCode = await vitest([...projects, ...args], {}, { repeatsFailed: process.env.CI === 'true' })
