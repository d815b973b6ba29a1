/** Where recordings go: one folder for each time that recording was switched on, one file a host. */
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** `$XDG_STATE_HOME/muster` (XDG base directory specification, default `~/.local/state`). */
export function stateDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return join(environment.XDG_STATE_HOME || join(environment.HOME || homedir(), '.local', 'state'), 'muster')
}

/** Makes `recordings/2026-11-21T10-15-30` (only the user may look into it) and gives its path. */
export function createRecordingDirectory(
  environment: Readonly<Record<string, string | undefined>>,
  nowMs: number,
): string {
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '-')
  const directory = join(stateDirectory(environment), 'recordings', stamp)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return directory
}
