/** The environment variables of the command line, for docs/commands.md and muster(1): the shared options', and what decides about colours. */
import { VARIABLES } from '../src/cli/command-line/options.ts'

/** Each with its meaning, as plain text. */
export const ENVIRONMENT_VARIABLES: readonly (readonly [name: string, meaning: string])[] = [
  ...VARIABLES.map(([name, option]): readonly [string, string] => [
    name,
    option.isBoolean() ? `1 or 0: whether ${option.long} is given` : `as ${option.flags}`,
  ]),
  [
    'MUSTER_PAGER, PAGER',
    'the command that shows a report longer than the terminal (default: less, with LESS=FRX unless LESS is set); empty or cat: none',
  ],
  [
    'MUSTER_RUNTIME_DIR',
    'a directory of your own for the sockets of consoles and of kept connections (default: muster-UID in /tmp)',
  ],
  ['NO_COLOR', 'if not empty: no colours, unless --color or MUSTER_COLOR says otherwise'],
  ['FORCE_COLOR', 'if not empty: colours without a terminal too, unless NO_COLOR is set; 0 or false: no colours'],
  ['CLICOLOR_FORCE', 'if neither empty nor 0: as FORCE_COLOR=1; FORCE_COLOR overrides it'],
]

export const ABOUT_VARIABLES =
  'Options on the command line override the environment. A variable sets a shared option for the verbs that take it, except MUSTER_DRY_RUN, which applies to every verb. An empty variable counts as unset, and a wrong value is refused. In a job of Muster, MUSTER_HOSTS names the hosts of the job and is not read.'
