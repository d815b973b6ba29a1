/** Where the user's files are, as the XDG base directory specification says: a path there that is not absolute counts for nothing. */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** `$XDG_STATE_HOME/muster`, else `~/.local/state/muster`. */
export function stateDirectory(environment: Environment): string {
  return join(base(environment, 'XDG_STATE_HOME', '.local/state'), 'muster')
}

/** `$XDG_CONFIG_HOME`, else `~/.config`. */
export function configurationDirectory(environment: Environment): string {
  return base(environment, 'XDG_CONFIG_HOME', '.config')
}

function base(environment: Environment, name: string, fallback: string): string {
  const named = environment[name]
  return named !== undefined && isAbsolute(named) ? named : join(environment.HOME || homedir(), fallback)
}
