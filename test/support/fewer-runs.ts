/** For property tests that do not say how many random cases they try. */
import fc from 'fast-check'
import { randomRuns } from './random-runs.ts'

fc.configureGlobal({ numRuns: randomRuns(100) })
