/** `muster left [TARGET]`: what Muster has left on hosts, and its removal. */
import type { CliContext } from '../command-line/context.ts'
import type { VerbCode } from '../command-line/verb.ts'
import type { LeftOptions } from './left.ts'

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('[target]', 'hosts (default: all)')
      .option('--remove', 'show the plan, ask, and remove what nothing uses')
      .option('--dry-run', 'show what would be removed, without doing it')
      .option('--area <names>', 'only these areas (default: all)', (text: string) => text.split(','))
      .option(
        '--also <dir>',
        'also search this directory of the hosts; can be given several times',
        (path: string, before: readonly string[] = []) => [...before, path],
      ),
  help: `
Examples:
  muster left                      what Muster left on each host of hosts.yaml
  muster left m[1-3] --remove      show the plan, ask, and remove it
  muster left --remove --dry-run   show the plan only
  muster left --area jobs,copy     only these areas
  muster left --also /data         search /data for unfinished copies, too

left: it can be removed · used: a process or a job uses it · declared: hosts.yaml declares it, and muster down removes it ·
kept: your data, or another account's · unknown: the host did not tell.
The home directory and the directories for temporary files are searched, 7 levels deep, on one file system each.
Exit codes: 0 told or removed, 4 some host could not be reached, 5 it could not be completed, 130 declined or interrupted.
`,
  run: async (target: string | undefined, options: LeftOptions, context: CliContext) =>
    (await import('./left.ts')).showOrRemove(target, options, context),
}
