/** The options of a verb in text that is typed in the console. */
import { Command } from 'commander'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'

/** `add` declares what may be typed. `rest`: what is no option. @throws MusterError `usage` */
export function readOptions<T extends object>(
  words: readonly string[],
  add: (command: Command) => Command,
): { readonly options: T; readonly rest: readonly string[] } {
  const command = add(new Command())
    .exitOverride()
    .helpOption(false)
    .configureOutput({ writeErr() {}, outputError() {} })
  try {
    command.parse(words, { from: 'user' })
  } catch (error) {
    throw new MusterError(
      'usage',
      printable(
        messageOf(error)
          .replace(/^error: /, '')
          .replaceAll('\n', ' '),
      ),
    )
  }
  return { options: command.opts<T>(), rest: command.args }
}
