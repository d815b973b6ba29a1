/** `muster study import`: reads a study that runs elsewhere, and lets the scheduler follow it. */

import { resolve } from 'node:path'
import type { Command } from 'commander'
import { accountName } from '../../base/account.ts'
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { fileTitle, type Inventory } from '../../inventory/inventory.ts'
import { mirrorTrials } from '../../scheduler/jobs/mirror-rows.ts'
import { NOTHING_KNOWN, type ReadSource, readStudy, refreshStudy } from '../../scheduler/jobs/study-sources.ts'
import { MOST_SOURCE_TRIALS, shownUrl, sourceMetrics, sourceSentence } from '../../scheduler/study/source.ts'
import type { Study, StudySource, StudySpec } from '../../scheduler/study/study.ts'
import { repeatable } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { parseJobEnvironment, pythonSetUp } from '../job/environment.ts'
import { connectHosts } from '../job/hosts.ts'
import { type OpenQueue, openQueue } from '../job/open-queue.ts'
import { metricsOf } from '../job/submit.ts'
import { jsonLine } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
import { type CallPython, callPython, readSourceWith } from './python-program.ts'

export type PlaceOptions = { readonly on?: string; readonly fromEnv?: string; readonly studyName?: string }

type ImportOptions = GlobalOptions & PlaceOptions & { readonly metric: readonly string[]; readonly once?: boolean }

/** `what`: of Optuna's Python, there. */
export const withPlace = (command: Command, what: string): Command =>
  command
    .option('--study-name <name>', 'name of the study there')
    .option('--on <host>', `${what} on this host (default: this machine)`)
    .option(
      '--from-env <what>',
      'use the Python of this environment there: declared, venv:PATH, conda:NAME or image:NAME',
    )

export const verb: VerbCode = {
  define: (command) =>
    withPlace(
      command
        .argument('<study>', 'its name here')
        .argument(
          '<url>',
          'sqlite:///FILE, journal:///FILE, postgresql://…, mysql://…, or the directory of a Ray Tune experiment',
        ),
      'read it',
    )
      .addOption(
        repeatable(
          '--metric <name>',
          'of Ray Tune, what the study optimises: max:accuracy if higher is better (default: as Ray says, lower is better)',
        ),
      )
      .option('--once', 'read it now, and do not follow it'),
  help: `
Examples:
  muster study import wf sqlite:///optuna.db                   a study of Optuna's, on this machine
  muster study import wf sqlite:////srv/optuna.db --on m1      a file on m1
  muster study import wf postgresql://me@db/optuna --study-name wf --from-env venv:~/optuna
  muster study import tune ~/ray_results/train_2026 --on m1 --metric max:accuracy

Nothing is changed there. muster job work reads it again every ten seconds while it changes, until nothing has changed for an
hour. Import it again to read it now. SQLite files, journals and Ray's directories need only Python; other databases need Optuna
and their driver.
`,
  async run(name: string, url: string, options: ImportOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    const source = sourceOf(url, options, queue.inventory, context)
    using python = await openPython(source.host, queue, options, context)
    const read = readSourceWith(python.call)
    const known = queue.store.studies.find(name)
    const begun = known === undefined ? await begin(name, source, read, queue, options, context) : undefined
    const study = begun?.study ?? again(known, source, queue, context)
    const refreshed =
      begun?.hasMore === false
        ? { kind: 'new' as const, total: begun.total }
        : await refreshStudy({ store: queue.store, read, signal: context.signal, now: context.now }, study.id)
    if (refreshed?.kind === 'trouble')
      throw new MusterError('unreachable', refreshed.reason, defined({ hint: refreshed.hint }))
    report(study, refreshed?.total ?? 0, queue, options, context)
    return EXIT.ok
  },
}

export type OpenPython = Disposable & { readonly call: CallPython }

/** @throws MusterError 'usage' for a host that is unknown. */
export async function openPython(
  host: string | undefined,
  { inventory }: OpenQueue,
  options: GlobalOptions,
  context: CliContext,
): Promise<OpenPython> {
  if (host !== undefined && !inventory.hosts.some((one) => one.name === host))
    throw new MusterError('usage', `--on ${printable(host)}: ${fileTitle(inventory)} has no such host`)
  const hosts = host === undefined ? undefined : await connectHosts(inventory, options, context)
  return {
    call: callPython(() => {
      if (hosts === undefined) throw new MusterError('internal', 'no host is reached')
      return hosts.ops
    }, context),
    [Symbol.dispose]: () => hosts?.[Symbol.dispose](),
  }
}

const SCHEMES = /^(sqlite|sqlite\+\w+|postgresql|postgresql\+\w+|mysql|mysql\+\w+|mariadb|mariadb\+\w+|journal):\/\//
const MOST_URL = 2_000

/** @throws MusterError 'usage' for a URL that is none. */
export function sourceOf(
  url: string,
  { on, fromEnv, studyName, metric = [] }: Partial<ImportOptions>,
  inventory: Inventory,
  context: CliContext,
): StudySource {
  const setUp = fromEnv === undefined ? undefined : pythonSetUp(parseJobEnvironment(fromEnv, inventory))
  const metrics = metricsOf(metric)
  const place = defined({ host: on, setUp })
  if (url.length > MOST_URL || url.includes('\0')) throw new MusterError('usage', 'the URL is too long')
  if (!url.includes('://')) {
    if (studyName !== undefined) throw new MusterError('usage', '--study-name is for storages of Optuna')
    return {
      kind: 'ray',
      url: localPath(url, on, context),
      ...place,
      ...(metrics.length === 0 ? {} : { metrics: metrics.map((one) => one.name) }),
    }
  }
  if (!SCHEMES.test(url))
    throw new MusterError('usage', `cannot use ${shownUrl(url)}`, {
      hint: 'It takes sqlite:///FILE, journal:///FILE, postgresql://…, mysql://…, or the directory of a Ray Tune experiment.',
    })
  if (metrics.length > 0)
    throw new MusterError('usage', '--metric is for experiments of Ray Tune: Optuna says what it optimises')
  const [, scheme, path] = /^(sqlite|journal):\/\/\/(.+)$/s.exec(url) ?? []
  const whole = scheme === undefined || path === undefined ? url : `${scheme}:///${localPath(path, on, context)}`
  return { kind: 'optuna', url: whole, ...place, ...defined({ name: studyName }) }
}

/** On a host a relative path begins in the home directory. */
const localPath = (path: string, host: string | undefined, { workingDirectory }: CliContext): string =>
  host !== undefined || path.startsWith('~/') ? path : resolve(workingDirectory, path)

async function begin(
  name: string,
  source: StudySource,
  read: ReadSource,
  { store }: OpenQueue,
  { metric, once }: ImportOptions,
  context: CliContext,
): Promise<{ readonly study: Study; readonly total: number; readonly hasMore: boolean }> {
  const isMost = metricsOf(metric).map((one) => one.isMost === true)
  const spec = {
    parameters: [],
    method: source.kind,
    seed: 0,
    metrics: isMost.length === 0 ? [] : sourceMetrics(source.metrics ?? [], isMost),
    repeat: 1,
    failures: Number.MAX_SAFE_INTEGER,
    source,
  } satisfies StudySpec
  const reading = await readStudy(read, spec, NOTHING_KNOWN, context.now(), context.signal)
  if (reading.kind === 'trouble') {
    const { reason, hint } = sourceSentence(source, reading)
    throw new MusterError('unreachable', reason, defined({ hint }))
  }
  if (reading.kind !== 'read') throw new MusterError('internal', 'nothing was read')
  return store.together(() => {
    const nowMs = context.now()
    const id = store.studies.create({ name, user: accountName(), priority: 0, spec: reading.spec }, nowMs)
    const study = store.studies.get(id)
    if (study === undefined) throw new MusterError('internal', 'the study was not stored')
    mirrorTrials(store, study, { ...reading, isWhole: true })
    if (once) store.studies.setState(id, { ...study.state, kind: 'stopped', reason: 'read once', endedMs: nowMs })
    return { study, total: reading.total, hasMore: reading.hasMore }
  })
}

/** @throws MusterError 'usage' when the name belongs to another study. */
function again(study: Study | undefined, source: StudySource, { store }: OpenQueue, context: CliContext): Study {
  if (study === undefined) throw new MusterError('internal', 'there is no study')
  const { id, name, spec, state } = study
  const before = spec.source
  if (before?.url !== source.url || before.name !== source.name || before.host !== source.host)
    throw new MusterError('usage', `another study named ${name} already exists`, {
      hint: 'Choose another name for the imported one.',
    })
  const { reason: _, endedMs: __, ...rest } = state
  store.together(() => store.studies.setState(id, { ...rest, kind: 'running', beganMs: context.now() }))
  return study
}

function report(
  { id, name }: Study,
  total: number,
  queue: OpenQueue,
  options: ImportOptions,
  context: CliContext,
): void {
  const { store } = queue
  const study = store.studies.get(id)
  const counts = store.studies.counts(id)
  const read = [...counts.values()].reduce((sum, count) => sum + count, 0)
  if (options.json) {
    context.stdout.write(
      jsonLine(
        {
          type: 'study',
          study: name,
          parameters: study?.spec.parameters ?? [],
          trials: Object.fromEntries(counts),
        },
        context,
      ),
    )
  } else {
    const listed = [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ')
    context.stdout.write(`${name}: ${counted(read, 'trial')} (${listed})\n`)
  }
  if (total > MOST_SOURCE_TRIALS)
    context.stderr.write(`muster: only the first ${MOST_SOURCE_TRIALS} of its ${total} trials are read\n`)
  const isFollowed = study?.state.kind === 'running'
  if (isFollowed && store.lease.owner(context.now()) === undefined)
    notice(context, `muster: no scheduler running, so it is not followed. Run: ${queue.command('job work')}\n`)
}
