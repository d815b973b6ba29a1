/** Sets how many random cases a property test tries if it does not say so itself. */
import fc from 'fast-check'
import { randomRuns } from './random-runs.ts'

fc.configureGlobal({ numRuns: randomRuns(100) })
