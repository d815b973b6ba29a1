/** docs/commands.md: what each verb does, and the options that verbs share, from the table of verbs. */
import { PassThrough } from 'node:stream'
import type { Option } from 'commander'
import { sharedOptionsOf } from '../src/cli/command-line/options.ts'
import { VerbTree } from '../src/cli/command-line/tree.ts'
import type { Effect, Verb } from '../src/cli/command-line/verb.ts'
import { CONSOLE } from '../src/cli/console/entry.ts'
import { ABOUT_VARIABLES, ENVIRONMENT_VARIABLES } from './environment-variables.ts'
import { verbsIn } from './verbs-in.ts'

const EFFECTS: Readonly<Record<Effect, string>> = {
  reads: 'nothing',
  changes: 'changes',
  plans: 'changes, after showing a plan',
  console: 'opens the console',
}

export function renderCommandsDocs(): string {
  const shown = verbsIn().flatMap(([path, verb]) => (verb.isHidden ? [] : [[`muster ${path}`, verb] as const]))
  const verbs = [['muster [TARGET…]', CONSOLE] as const, ...shown]
  const rows = verbs.map(([name, verb]) => `| \`${name}\` | ${verb.summary} | ${effectOf(verb)} |`)
  const { program } = new VerbTree(
    CONSOLE,
    {},
    { stdout: new PassThrough(), stderr: new PassThrough() },
    async () => {},
  )
  const shared = sharedOptionsOf(
    program,
    verbs.map(([, verb]) => verb),
  )
  return `# Commands

<!-- Generated from src/cli/verbs.ts and src/cli/command-line/options.ts by \`npm run docs\`: change them there. -->

\`muster VERB --help\` (or \`muster help VERB\`) shows the arguments, options, examples and exit codes of a verb.

| command | purpose | what it changes |
| --- | --- | --- |
${rows.join('\n')}

A verb that shows a plan asks before it applies it: \`--dry-run\` shows the plan only, \`--yes\` does not ask. Other verbs that change
something take \`--dry-run\` where their help lists it, and refuse it otherwise.

## Output for scripts

\`--json\` prints one object per line, with a schema for each verb ([json.md](json.md)). If stdout is not a terminal, tables have one line for each row, with tabs
between columns. The first line names the columns. Empty columns stay, so that \`cut -f 3\` always means the same column. Nothing
is shortened or coloured, and no text contains a tab or a line break. Words above or below a table, such as a summary, have no tabs:

\`\`\`sh
muster hosts | tail -n +2 | cut -f 1,2
muster job list | awk -F '\\t' '$2 == "failed" { print $1 }'
\`\`\`

## Shared options

Shared options can be given before or after the verb. The help of a verb lists those that apply to it.

| option | meaning |
| --- | --- |
${shared.map(row).join('\n')}

\`--quiet\` leaves out progress on a terminal, notices such as "no scheduler running", and summaries such as
"2 hosts: 2 ok". Results, JSON, warnings, errors, questions and the exit code stay as they are.

On a terminal, a finished report that is longer than the screen is shown in a pager, as git does. JSON and output that continues
(\`--follow\`, \`net watch\`) are not. \`--no-pager\` or an empty \`MUSTER_PAGER\` turns it off. The exit code is the verb's, however
the pager ends.

On a terminal, the longest texts of a table that is too wide for it are shortened with \`…\`. In a pipe and with \`--json\` they are
whole.

## Environment variables

${ABOUT_VARIABLES}

| variable | meaning |
| --- | --- |
${ENVIRONMENT_VARIABLES.map(([name, meaning]) => `| \`${name}\` | ${meaning.replaceAll('<', '&lt;')} |`).join('\n')}
`
}

const effectOf = ({ effect, changesWith = [] }: Verb): string =>
  [EFFECTS[effect], ...changesWith.map((name) => `unless \`--${name}\` is given`)].join(', ')

function row({ flags, description, argChoices, defaultValue }: Option): string {
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`
  return `| \`${flags}\` | ${description}${choices}${defaultValue === undefined ? '' : ` (default: ${defaultValue})`} |`
}
