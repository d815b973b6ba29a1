/** `muster up`, `down` and `status` for all areas, and the same for one (`muster nfs up`). */
import type { Command } from 'commander'
import type { AreaEntry } from '../../ops/kernel/area-entry.ts'
import type { CliContext, VerbCode } from '../command-line/verb.ts'
import { AREAS } from './areas.ts'
import type { BringUpOptions } from './prepare.ts'

const CHANGE_CODES = `
Exit codes: 0 success, 4 a host could not be reached, 5 something could not be completed, 130 declined or interrupted.
`
const STATUS_NOTES = `
good: matches hosts.yaml, and works · missing: does not exist yet · differs: does not match hosts.yaml · failed: matches, but
does not work · blocked: up cannot change it · no answer: the host could not be reached (with --json: away).
Exit codes: 0 all good, 1 something is not good, 4 a host could not be reached.
`

const defineAreas = (command: Command) =>
  command
    .argument('[areas...]', `${AREAS.map(({ name }) => name).join(', ')} (default: all that hosts.yaml declares)`)
    .option('--on <target>', 'work only on these hosts')

const changeTo = async (
  direction: 'up' | 'down',
  areas: readonly string[],
  options: BringUpOptions,
  context: CliContext,
) => (await import('./change.ts')).change(direction, areas, options, context)

export const up: VerbCode = {
  define: defineAreas,
  help: `
Examples:
  muster up                        show the plan for all of hosts.yaml, ask, apply it, and verify it
  muster up trust --dry-run        show the plan only
  muster up env --on m8,m9 -y      apply it to two hosts without asking

Run it again at any time: it changes only what differs from hosts.yaml, and completes an interrupted run.
${CHANGE_CODES.trimStart()}`,
  run: changeTo.bind(undefined, 'up'),
}

export const down: VerbCode = {
  define: defineAreas,
  help: `
Examples:
  muster down trust --dry-run      show what would be undone
  muster down trust                show the plan, ask, and restore the hosts to their state before up

Lines and files that Muster did not write are not changed.
${CHANGE_CODES.trimStart()}`,
  run: changeTo.bind(undefined, 'down'),
}

export const status: VerbCode = {
  define: defineAreas,
  help: `
Examples:
  muster status                    every area of hosts.yaml on each of its hosts
  muster status trust --json       one JSON object per host and area
${STATUS_NOTES}`,
  run: async (areas: readonly string[], options: BringUpOptions, context: CliContext) =>
    (await import('./show-status.ts')).showStatus(areas, options, context),
}

/** `check` is `status` that also proves what it can, with files that it removes again; `sync` is another word for `up`. */
export function areaVerb(area: string, name: keyof AreaEntry['verbs']): VerbCode {
  const isChange = name !== 'status' && name !== 'check'
  const direction = name === 'down' ? 'down' : 'up'
  return {
    define: (command) => command.option('--on <target>', 'work only on these hosts'),
    help: `
Examples:
  muster ${area} ${name}
  muster ${area} ${name} --on m8${isChange ? ' --dry-run' : ' --json'}
${isChange ? CHANGE_CODES : STATUS_NOTES}`,
    async run(options: BringUpOptions, context: CliContext) {
      if (isChange) return await changeTo(direction, [area], options, context)
      const { showStatus } = await import('./show-status.ts')
      return await showStatus([area], options, context, name === 'check' ? 'check' : 'status')
    },
  }
}
