/**
 * All tests but the heavy ones, or what the arguments for vitest choose; in CI, files that failed get a second try. The last line
 * is `N passed, N failed`. The tests start the program thousands of times: as it is installed, that takes a third of the time.
 */
import { join } from 'node:path'
import { SeenOutput } from '../test/support/json-output.ts'
import { vitest } from '../test/support/vitest-run.ts'
import { bundle } from './build.ts'

const root = join(import.meta.dirname, '..')
const directory = join(root, 'dist')
await bundle(root, directory)

const args = process.argv.slice(2)
// Integration and lab tests run hosts' scripts, which are for Linux, and read /proc.
const isLinux = process.platform === 'linux'
if (!isLinux) process.stderr.write('the integration and lab tests need Linux and are left out\n')
const most = isLinux ? ['--project=!heavy'] : ['--project=unit', '--project=unit-isolated']
const projects = args.some((arg) => arg.startsWith('--project')) ? [] : most
const environment = { MUSTER_TEST_PROGRAM: join(directory, 'main.js') }
const isWhole = isLinux && args.length === 0 && process.env.MUSTER_LAB === 'required'
using seen = isWhole ? new SeenOutput() : undefined
process.exitCode = await vitest([...projects, ...args], environment, { repeatsFailed: process.env.CI === 'true' })
const missing = (await seen?.missing()) ?? []
if (missing.length > 0) {
  process.stderr.write(`no test has seen what these verbs print with --json: ${missing.join(', ')}\n`)
  process.exitCode = 1
}
