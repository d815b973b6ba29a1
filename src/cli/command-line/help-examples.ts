import type { Command } from 'commander'

/** Help of a verb that has verbs of its own: they show those lines of its examples that begin with their name. */
export function addExamples(command: Command, text: string): void {
  command.addHelpText('after', text)
  for (const below of command.commands) {
    const start = `  muster ${command.name()} ${below.name()}`
    const lines = text.split('\n').filter((line) => line === start || line.startsWith(`${start} `))
    if (lines.length > 0) below.addHelpText('after', `\nExamples:\n${lines.join('\n')}\n`)
  }
}
