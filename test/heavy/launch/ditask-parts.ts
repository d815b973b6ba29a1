/** What all tests with real DI-engine need. */
import { join } from 'node:path'
import { packageRoot } from '../../../src/base/package-root.ts'
import { ENVIRONMENT_PLACE, pythonEnvironment } from '../../lab/cluster/python-environment.ts'

/** For ditask: says who it heard. */
export const HELLO = '--package /srv --main ditask_hello.main'

/** For a lab: its environment, and the programs of fixtures. */
export const ditaskMounts = async (): Promise<Record<string, string>> => ({
  [ENVIRONMENT_PLACE]: await pythonEnvironment('di-engine'),
  '/srv': join(packageRoot(), 'test', 'fixtures', 'launch'),
})
