/** The Python environment with Ray for the hosts of a lab. */
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from './python-environment.ts'

export const RAY_PLACE = ENVIRONMENT_PLACE
/** The environment of the hosts, as hosts.yaml names it. */
export const RAY_VENV = ENVIRONMENT

export async function rayEnvironment(): Promise<string> {
  return await pythonEnvironment('ray')
}
