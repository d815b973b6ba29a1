/** All tests, or what the arguments for vitest choose; in CI, files that failed get a second try. The last line is `N passed, N failed`. */
import { vitest } from '../test/support/vitest-run.ts'

process.exitCode = await vitest(process.argv.slice(2), {}, { repeatsFailed: process.env.CI === 'true' })
