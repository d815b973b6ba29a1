/** `muster ray`: the Ray area of hosts.yaml by itself. */
import type { Command } from 'commander'
import type { BringUpOptions } from './bring-up/prepare.ts'
import { registerAreaVerbs } from './bring-up/register.ts'
import { type CliContext, EXIT, type Outcome } from './command-line/context.ts'
import { addExamples } from './command-line/help-examples.ts'
import { registerJobs } from './ray/register-jobs.ts'

const EXAMPLES = `
Examples:
  muster ray status                 which nodes the head counts as alive, and what would keep the others out; looks only
  muster ray up --dry-run           what would be started, with the exact command lines
  muster ray up --on m8             one worker joins; the others are left alone
  muster ray restart m8             ends one worker and lets it join again
  muster ray down                   ends the processes of this cluster, and no others
  muster ray submit --working-dir . --cpus 2 -- python train.py
  muster ray jobs                   the cluster's jobs, the newest last
  muster ray logs -f ID             what one prints, until it has ended
  muster ray stop ID                ends one
  muster ray watch                  what the nodes do, what waits and why; --json: an object a look

Exit codes: 0 all is as declared, 1 it is not, 4 some host could not be reached, 5 it could not be completed; of submit and of
logs -f that of the job.
`

const VERBS = [
  ['status', 'compares with hosts.yaml; changes nothing'],
  ['up', 'starts the head, then all workers side by side'],
  ['down', 'ends the nodes of this cluster, the head last'],
] as const

export function registerRay(program: Command, context: CliContext, outcome: Outcome): void {
  const ray = program.command('ray').description('a Ray head and its workers, as hosts.yaml declares them')
  registerAreaVerbs(ray, 'ray', VERBS, context, outcome)
  const restart = ray
    .command('restart')
    .description('ends workers and lets them join again, whatever they look like')
    .argument('<target>', 'hosts of workers: m8, m[8-9]')
    .option('--dry-run', 'shows the plans and does nothing')
  restart.action(async (on: string) => {
    const { change } = await import('./bring-up/change.ts')
    const options = { ...restart.optsWithGlobals<BringUpOptions>(), on }
    outcome.exitCode = await change('down', ['ray'], options, context)
    if (outcome.exitCode === EXIT.ok) outcome.exitCode = await change('up', ['ray'], options, context)
  })
  registerJobs(ray, context, outcome)
  addExamples(ray, EXAMPLES)
}
