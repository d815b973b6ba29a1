/** `muster nfs`: the NFS area of hosts.yaml by itself. */
import type { Command } from 'commander'
import { registerAreaVerbs } from './bring-up/register.ts'
import type { CliContext, Outcome } from './command-line/context.ts'
import { addExamples } from './command-line/help-examples.ts'

const EXAMPLES = `
Examples:
  muster nfs status                 what is exported and mounted, and what is wrong; looks only
  muster nfs check                  the same, and writes a file on each host and reads it on all others
  muster nfs up --dry-run           what would be done
  muster nfs up --on m8             mounts on one client
  muster nfs down                   unmounts, and ends the exports that Muster made

Exit codes: 0 all is as declared, 1 it is not, 4 some host could not be reached, 5 it could not be completed.
`

const VERBS = [
  ['status', 'compares with hosts.yaml; changes nothing'],
  ['check', 'status, and a file written on each host and read on all others, with speed and latency'],
  ['up', 'exports and mounts what hosts.yaml declares'],
  ['down', 'unmounts it, and ends the exports that Muster made'],
] as const

export function registerNfs(program: Command, context: CliContext, outcome: Outcome): void {
  const nfs = program.command('nfs').description('exports and mounts, as hosts.yaml declares them')
  registerAreaVerbs(nfs, 'nfs', VERBS, context, outcome)
  addExamples(nfs, EXAMPLES)
}
