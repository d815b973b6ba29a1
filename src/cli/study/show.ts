/** `muster study list`: studies as a table. */
import { printable } from '../../base/printable.ts'
import type { Study } from '../../scheduler/study/study.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { readQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatTable } from '../output/table.ts'

const MOST = 200

export const list: VerbCode = {
  help: `
Examples:
  muster study list
`,
  async run(options: GlobalOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { studies } = queue.store
    const rows = studies.list(MOST).map((study) => ({ study, counts: studies.counts(study.id) }))
    if (options.json) {
      for (const { study, counts } of rows) context.stdout.write(jsonLine(studyJson(study, counts)))
      return EXIT.ok
    }
    const cells = rows.map(({ study, counts }) => [
      study.name,
      study.state.kind,
      study.spec.method,
      ...['done', 'open', 'failed', 'pruned'].map((kind) => String(counts.get(kind) ?? 0)),
      printable(study.state.trouble ?? study.state.reason ?? ''),
    ])
    context.stdout.write(formatTable(['STUDY', 'STATE', 'METHOD', 'DONE', 'OPEN', 'FAILED', 'PRUNED', 'WHY'], cells))
    return EXIT.ok
  },
}

const studyJson = ({ name, user, spec, state, createdMs }: Study, counts: ReadonlyMap<string, number>): object => ({
  type: 'study',
  study: name,
  user,
  method: spec.method,
  state: state.kind,
  created: new Date(createdMs).toISOString(),
  trials: Object.fromEntries(counts),
  ...(state.reason === undefined ? {} : { reason: state.reason }),
  ...(state.trouble === undefined ? {} : { trouble: state.trouble }),
})
