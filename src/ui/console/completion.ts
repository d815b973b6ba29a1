/** The words that Tab offers in prompts: hosts and groups of the console, files of this machine. */
import type { Completing } from '../dialogs/dialog.ts'
import type { ConsoleState } from '../state/console-state.ts'

export type ListFiles = (directory: string) => Promise<readonly string[]>

const MOST_WORDS = 1_000
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/** Those that begin with this word, in order; at most as many as a user can look through. */
export async function lookUp(
  { hosts, groups }: Pick<ConsoleState, 'hosts' | 'groups'>,
  listFiles: ListFiles | undefined,
  kind: Completing['kind'],
  word: string,
): Promise<readonly string[]> {
  if (kind === 'path') return listFiles === undefined ? [] : await pathsFrom(listFiles, word)
  const words = kind === 'host-set' ? [...hosts.keys(), ...[...groups.keys()].map((name) => `@${name}`), 'all'] : kind
  return words.filter((one) => one.startsWith(word)).slice(0, MOST_WORDS)
}

/** Hidden files only where the dot was typed. */
async function pathsFrom(listFiles: ListFiles, word: string): Promise<readonly string[]> {
  const directory = word.slice(0, word.lastIndexOf('/') + 1)
  const start = word.slice(directory.length)
  const names = await listFiles(directory)
  return names
    .filter((name) => name.startsWith(start) && (start !== '' || !name.startsWith('.')) && !CONTROL.test(name))
    .toSorted()
    .slice(0, MOST_WORDS)
    .map((name) => directory + name)
}
