/**
 * `muster --complete SHELL WORD…`: what the shell runs at Tab. The first line of its output says what may follow (`words`: only the
 * candidates, `open`: candidates that may be continued, or `files`). Then each line is a candidate: the whole word, a tab, a
 * description. It connects to no host.
 */
import type { Command } from 'commander'
import { printable } from '../../base/printable.ts'
import { clip } from '../../base/text-width.ts'
import { HOST, lastOperand, operandsOf } from '../../inventory/complete-host-set.ts'
import { findHostsFile, loadInventory } from '../../inventory/load-inventory.ts'
import { CHANGED_KINDS } from '../../scheduler/jobs/job.ts'
import type { JobStore } from '../../scheduler/jobs/store.ts'
import { environmentValue } from '../command-line/options.ts'
import type { VerbTree } from '../command-line/tree.ts'
import { type CliContext, EXIT } from '../command-line/verb.ts'
import { inventorySource } from '../connect/endpoints.ts'
import { parseIds } from '../job/arguments.ts'
import { jobsToName } from '../job/jobs-to-name.ts'
import { positionOf, type Wanted } from './position.ts'
import { readBashLine } from './shells.ts'

type Candidate = readonly [word: string, about: string]
type Candidates = { readonly kind: 'words' | 'open' | 'files'; readonly found: readonly Candidate[] }

const MOST = 1_000
const MOST_STUDIES = 50
const LONGEST_ABOUT = 70
/** The shell puts a candidate into the command line, so it may have no character that the shell acts on, except the operators of a host set. */
const SAFE = /^[\p{L}\p{N}\p{M}_@%+=:,./^!&(-]+$/u
/** Bash inserts a candidate as it is and acts on these outside quotes; users type them with a backslash. */
const ACTING = /[&!(]/g

/** Never fails: if something is wrong, the shell offers nothing, and the verb itself reports it when it runs. */
export async function complete(
  tree: VerbTree,
  [shell = '', ...given]: readonly string[],
  context: CliContext,
): Promise<number> {
  const { words, cut, isQuoted } =
    shell === 'bash' ? readBashLine(given[0] ?? '', given[1] ?? '') : { words: given, cut: 0, isQuoted: false }
  const forBash = (text: string): string => (isQuoted ? text : text.replace(ACTING, '\\$&'))
  const word = words.at(-1) ?? ''
  try {
    const { command, wanted, hosts = environmentValue('--hosts', context.environment) } = await positionOf(tree, words)
    const lists = await Promise.all(wanted.map((each) => candidatesOf(each, word, command, hosts, context)))
    const fits = (text: string): boolean => text.startsWith(word) && SAFE.test(text)
    const matching = lists.filter(({ found }) => found.some(([text]) => fits(text)))
    const found = matching.flatMap((list) => list.found.filter(([text]) => fits(text))).slice(0, MOST)
    const isOpen = matching.length > 0 && matching.every(({ kind }) => kind === 'open')
    const isFile = found.length === 0 && lists.some(({ kind }) => kind === 'files')
    const kind = isFile ? 'files' : isOpen ? 'open' : 'words'
    // zsh lists words with the same description on one line, in reverse.
    const shown = (about: string): string => (shell === 'zsh' && about === HOST ? '' : about)
    const lines = found.map(([text, about]) =>
      shell === 'bash' ? forBash(text.slice(cut)) : `${text}\t${clip(printable(shown(about)), LONGEST_ABOUT)}`,
    )
    context.stdout.write(`${[kind, ...lines].join('\n')}\n`)
  } catch {
    context.stdout.write('words\n')
  }
  return EXIT.ok
}

async function candidatesOf(
  wanted: Wanted,
  word: string,
  command: Command,
  hosts: string | undefined,
  context: CliContext,
): Promise<Candidates> {
  const words = (found: readonly Candidate[]): Candidates => ({ kind: 'words', found })
  if (wanted.kind === 'verbs') {
    const below = command.createHelp().visibleCommands(command)
    return words([
      ...below.map((each) => [each.name(), each.description()] as const),
      ['help', 'show how to use a verb'],
    ])
  }
  if (wanted.kind === 'options')
    return words(wanted.options.flatMap(({ long, description }) => (long ? [[long, description]] : [])))
  const { before } = wanted
  if (wanted.kind === 'choices') return words(wanted.choices.map((choice) => [before + choice, '']))
  if (wanted.kind === 'list') return { kind: 'open', found: wanted.choices.map((name) => [before + name, '']) }
  const value = VALUES[wanted.name]
  if (value === undefined) return words([])
  const list = await value(word.slice(before.length), { hosts, verb: command.name() }, context)
  return { ...list, found: list.found.map(([text, about]) => [before + text, about]) }
}

/** `verb`: the last word of its name. */
type Asked = { readonly hosts: string | undefined; readonly verb: string }

/** Finds values for a placeholder, which means the same in every verb. `typed`: the value so far. */
type Value = (typed: string, asked: Asked, context: CliContext) => Promise<Candidates>

const files: Value = async () => ({ kind: 'files', found: [] })

const target: Value = async (typed, { hosts }, context) => {
  const operand = lastOperand(typed)
  if (operand === undefined) return { kind: 'words', found: [] }
  const start = typed.slice(0, operand.from)
  return { kind: 'open', found: (await hostsAndGroups(hosts, context)).map(([name, about]) => [start + name, about]) }
}

const host: Value = async (_typed, { hosts }, context) => ({
  kind: 'words',
  found: (await hostsAndGroups(hosts, context)).filter(([, about]) => about === HOST),
})

/** Of hosts.yaml; without one, the names in ~/.ssh/config. */
async function hostsAndGroups(hosts: string | undefined, context: CliContext): Promise<readonly Candidate[]> {
  const source = inventorySource(hosts === undefined ? {} : { hosts }, context)
  if (findHostsFile(source) !== undefined) return operandsOf(await loadInventory(source))
  const { sshAliases } = await import('../connect/ssh-aliases.ts')
  return Array.from((await sshAliases(context)).keys(), (name) => [name, HOST])
}

/** Values from the queue, if there is one. */
const fromQueue =
  (read: (store: JobStore, typed: string, verb: string) => readonly Candidate[]): Value =>
  async (typed, { hosts, verb }, context) => {
    const { isQueueAt, queuePath, readQueue } = await import('../job/open-queue.ts')
    const options = hosts === undefined ? {} : { hosts }
    const inventory = await loadInventory(inventorySource(options, context))
    if (!isQueueAt(queuePath(inventory, context))) return { kind: 'words', found: [] }
    using queue = await readQueue(options, context, 0)
    return { kind: 'words', found: read(queue.store, typed, verb) }
  }

/** For a verb that changes jobs, those that it changes; it may wait for those that can be cancelled. Others take any job. */
const KINDS: Readonly<Record<string, readonly string[]>> = { ...CHANGED_KINDS, wait: CHANGED_KINDS.cancel }

const jobs = fromQueue((store, typed, verb) => {
  const start = typed.slice(0, typed.lastIndexOf(',') + 1)
  const given = new Set(start === '' ? [] : parseIds(start.slice(0, -1)))
  return jobsToName(store, KINDS[verb])
    .filter(({ id }) => !given.has(id))
    .map(({ id, state, spec }) => [`${start}${id}`, `${state.kind}: ${spec.name ?? ''}`] as const)
})

/** Launchers in hosts.yaml. */
const rows: Value = async (_typed, { hosts }, context) => {
  const { rowNames } = await import('../launch/row-names.ts')
  const names = await rowNames(inventorySource(hosts === undefined ? {} : { hosts }, context))
  return { kind: 'words', found: names.map((name) => [name, 'row of hosts.yaml'] as const) }
}

/** Muster's own, and those in hosts.yaml. */
const launchers: Value = async (...asked) => {
  const { LAUNCHERS } = await import('../../scheduler/launch/launchers.ts')
  const { found } = await rows(...asked)
  return { kind: 'words', found: [...LAUNCHERS.map(({ name }) => [name, 'launcher'] as const), ...found] }
}

const VALUES: Readonly<Record<string, Value>> = {
  target,
  targets: async (...asked) => {
    const list = await target(...asked).catch(() => undefined)
    return list?.found.some(([name]) => name.startsWith(asked[0])) ? list : await files(...asked)
  },
  host,
  a: host,
  b: host,
  id: jobs,
  ids: jobs,
  kind: launchers,
  row: rows,
  study: fromQueue((store) => store.studies.list(MOST_STUDIES).map(({ name, state }) => [name, state.kind])),
  areas: async () => {
    const { AREAS } = await import('../bring-up/areas.ts')
    return { kind: 'words', found: AREAS.map(({ name, summary }) => [name, summary]) }
  },
  schema: async () => {
    const { installedSchemas } = await import('../schema.ts')
    return { kind: 'words', found: installedSchemas().map(({ name, verbs }) => [name, verbs.join(', ')]) }
  },
  ports: async () => {
    const { DASHBOARDS, titleOf } = await import('../../ssh/forward/plan-forwards.ts')
    return { kind: 'words', found: DASHBOARDS.map((name) => [name, titleOf(name)]) }
  },
  console: async (_typed, _options, { environment }) => {
    const { sessionNames } = await import('../sessions/session-directory.ts')
    return { kind: 'words', found: sessionNames(environment).map((name) => [name, 'console']) }
  },
  ...Object.fromEntries(
    ['file', 'format', 'paths', 'path', 'dir', 'directory', 'command'].map((name) => [name, files]),
  ),
}
