/** Where the user's files are, by the XDG base directory specification, which ignores relative paths. */
import { isAbsolute, join } from 'node:path'
import { currentAccount } from './account.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** `$HOME`, always absolute: an empty or relative one counts as missing, and then it is the home directory of the account. */
export function homeDirectory({ HOME }: Environment): string {
  // os.homedir() is empty where HOME is.
  return [HOME, process.env.HOME].find((home) => home !== undefined && isAbsolute(home)) ?? currentAccount().home
}

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
  return named !== undefined && isAbsolute(named) ? named : join(homeDirectory(environment), fallback)
}
