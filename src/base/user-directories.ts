/** Where the user's files are, by the XDG base directory specification, which ignores relative paths. */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** `$XDG_STATE_HOME/muster`, by default `~/.local/state/muster`. */
export function stateDirectory(environment: Environment): string {
  return join(base(environment, 'XDG_STATE_HOME', '.local/state'), 'muster')
}

/** `$XDG_CONFIG_HOME`, by default `~/.config`. */
export function configurationDirectory(environment: Environment): string {
  return base(environment, 'XDG_CONFIG_HOME', '.config')
}

function base(environment: Environment, name: string, fallback: string): string {
  const named = environment[name]
  return named !== undefined && isAbsolute(named) ? named : join(environment.HOME || homedir(), fallback)
}
