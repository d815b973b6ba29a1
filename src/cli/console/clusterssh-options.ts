/** The options of clusterssh: those that Muster does not need are accepted; for the others, the error names what to use instead. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { shortPath } from '../../base/short-path.ts'
import { homeDirectory } from '../../base/user-directories.ts'

/** The console does this anyway. */
const NEEDLESS = ['--fillscreen', '-g, --tile', '-m, --unique-servers', '-Q', '-K, --use-all-a-records']

const IMPORT = 'Import the file once: muster import clusterssh FILE -o hosts.yaml'
const SETTINGS = 'Set fonts and window sizes in your terminal, and the minimum pane size as pane in preferences.yaml.'

const INSTEAD: readonly (readonly [flags: string, hint: string])[] = [
  [
    '-G, --no-tile',
    'Panes are always tiled. Ctrl-] z fills the screen with one host, Ctrl-] > and < change the pane size.',
  ],
  ['-a, --action <command>', 'Run: muster run TARGET -- COMMAND, or press Ctrl-] ! in the console.'],
  ['-c, --cluster-file <file>', IMPORT],
  ['-r, --tag-file <file>', IMPORT],
  [
    '-C, --config-file <file>',
    'Muster reads ~/.config/muster/preferences.yaml. To import a clusterssh configuration: muster import clusterssh',
  ],
  ['-e, --evaluate <host>', 'Run: muster hosts TARGET --check'],
  ['-L, --list', 'Run: muster hosts'],
  ['-o, --options <options>', 'Write ssh options to ~/.ssh/config; Muster honours them.'],
  ['-t, --term-args <options>', SETTINGS],
  ['-T, --title <title>', 'Name the cluster in hosts.yaml: cluster: NAME'],
  ['-f, --font <font>', SETTINGS],
  ['-x, --cols <columns>', SETTINGS],
  ['--rows <rows>', SETTINGS],
  ['-s, --show-history', 'Press Ctrl-] [ to scroll back, Ctrl-] e for a report of what you typed.'],
  ['-q, --autoquit', 'The console stays open after the last shell has ended. Press Ctrl-] q to quit.'],
  ['-u, --dump-config', 'Press Ctrl-] , in the console to see the settings.'],
  ['-d, --debug', 'Use --verbose.'],
]

const optionsOf = (flags: readonly string[]): Option[] =>
  flags.map((flag) => new Option(flag, 'of clusterssh').hideHelp())

export function addClusterSshOptions(command: Command): void {
  for (const option of optionsOf([...NEEDLESS, ...INSTEAD.map(([flags]) => flags)])) command.addOption(option)
}

/** @throws MusterError `usage` for an option of clusterssh that Muster does not have */
export function refuseClusterSshOptions(options: Readonly<Record<string, unknown>>): void {
  for (const [flags, hint] of INSTEAD) {
    const option = new Option(flags)
    const value = options[option.attributeName()]
    if (option.negate ? value !== false : value === undefined) continue
    throw new MusterError('usage', `${option.long} is an option of clusterssh that Muster does not have`, { hint })
  }
}

const PLACES = ['/etc/clusters', '/etc/tags']

/**
 * Muster reads the files of clusterssh only to import them. `isHost`: what the word names here.
 * @throws MusterError `usage` for a word that names a cluster in them and nothing here
 */
export async function refuseClusterName(
  word: string,
  environment: Readonly<Record<string, string | undefined>>,
  isHost: () => Promise<boolean>,
): Promise<void> {
  const home = homeDirectory(environment)
  if (![join(home, '.clusterssh'), ...PLACES].some((place) => existsSync(place))) return
  const { clusterFileOf } = await import('../../inventory/import/clusterssh.ts')
  const file = clusterFileOf(word, { home })
  if (file === undefined || (await isHost())) return
  throw new MusterError('usage', `${word} is a cluster of clusterssh, in ${shortPath(file, environment)}`, {
    hint: `To open it here, run once: muster import clusterssh -o hosts.yaml. Then run: muster @${word}. A machine of that name is written as user@${word} or ${word}:22.`,
  })
}
