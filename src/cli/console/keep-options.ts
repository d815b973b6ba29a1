/** `--keep` and `--no-keep`: what happens to a console when its terminal is lost. */
import type { Command } from 'commander'

/** `otherwise`: the default, in words. */
export function addKeepOptions(command: Command, otherwise: string): Command {
  return command
    .option('--keep', `detach, instead of ending, when the terminal is lost (default: ${otherwise})`)
    .option('--no-keep', 'end when the terminal is lost, whatever preferences.yaml says')
}
