/** The aliases of ssh_config. Their settings stay there: Muster reads them from ssh_config whenever it connects. */
import { globSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import SSHConfig, { type Directive } from 'ssh-config'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { isAddress } from '../host-name.ts'
import { matchesHostPatterns } from '../ssh-config/named-here.ts'
import { splitLine } from '../ssh-config/source.ts'
import { type ImportFormat, type ImportSource, readSource, refuse, sourcesOf } from './format.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'
import { jumpOfCommand } from './proxy-command.ts'

const MAX_INCLUDED_FILES = 1000

/** A directive with its line, from 1, and the words of its value. */
type Setting = { readonly keyword: string; readonly words: readonly string[]; readonly line: number }
/** What applies to the names that match; `patterns` undefined: Match, which only ssh can evaluate. */
type Block = {
  readonly path: string
  readonly line: number
  readonly patterns: readonly string[] | undefined
  readonly settings: Setting[]
}

function settingsOf({ path, text }: SourceFile): Setting[] {
  const settings: Setting[] = []
  let line = 1
  const visit = (entries: SSHConfig): void => {
    for (const entry of entries) {
      line += newlinesIn(entry.before)
      if ('param' in entry) settings.push({ keyword: entry.param.trim().toLowerCase(), words: wordsOf(entry), line })
      line += newlinesIn(entry.after)
      if ('config' in entry) visit(entry.config)
    }
  }
  try {
    visit(SSHConfig.parse(text))
  } catch (error) {
    refuse(path, 0, `it is not an ssh_config: ${printable(messageOf(error))}`)
  }
  return settings
}

const newlinesIn = (text: string): number => text.split('\n').length - 1

const wordsOf = ({ value, quoted, param }: Directive): string[] => {
  if (Array.isArray(value)) return value.map(({ val }) => val)
  return quoted ? [value] : splitLine(`${param} ${value}`).words
}

/** For an alias, the jump host if its first proxy is a ProxyCommand that is only a jump. */
function jumpFinder(blocks: readonly Block[]): (alias: string) => string | undefined {
  const proxies = blocks.flatMap(({ patterns, settings }) => {
    const proxy = settings.find(({ keyword }) => keyword === 'proxycommand' || keyword === 'proxyjump')
    return patterns === undefined || proxy === undefined ? [] : [{ patterns, proxy }]
  })
  // Thousands of blocks with a name each are not compared with every name.
  const named = new Map<string, number>()
  const others: number[] = []
  for (const [index, { patterns }] of proxies.entries()) {
    if (patterns.some((pattern) => /[*?!]/.test(pattern))) others.push(index)
    else for (const name of patterns.map((each) => each.toLowerCase())) if (!named.has(name)) named.set(name, index)
  }
  return (alias) => {
    const matching = others.find((index) => matchesHostPatterns(proxies[index]?.patterns ?? [], alias))
    const first = Math.min(matching ?? proxies.length, named.get(alias.toLowerCase()) ?? proxies.length)
    const proxy = proxies[first]?.proxy
    const found = proxy?.keyword === 'proxycommand' ? jumpOfCommand(proxy.words) : undefined
    return found?.leftOut.length === 0 ? found.jump : undefined
  }
}

function read(source: ImportSource, inventory: ImportedInventory): void {
  const directory = join(source.home, '.ssh')
  const blocks: Block[] = []
  let included = 0
  const readFile = (file: SourceFile): void => {
    let block: Block = { path: file.path, line: 0, patterns: ['*'], settings: [] }
    blocks.push(block)
    for (const setting of settingsOf(file)) {
      const { keyword, words, line } = setting
      if (keyword === 'include') {
        for (const word of words) include(word)
        // What follows belongs to the block that the Include is in.
        block = { ...block, settings: [] }
        if (block.patterns?.join() !== '*') block = { ...block, line: 0 }
        blocks.push(block)
      } else if (keyword === 'host' || keyword === 'match') {
        if (keyword === 'match') inventory.note(file.path, line, `Match ${printable(words.join(' '))} names no host`)
        block = { path: file.path, line, patterns: keyword === 'host' ? words : undefined, settings: [] }
        blocks.push(block)
      } else block.settings.push(setting)
    }
  }
  const include = (word: string): void => {
    const name = word.startsWith('~/') ? join(source.home, word.slice(2)) : word
    for (const path of globSync(resolve(directory, name)).sort()) {
      included += 1
      if (included <= MAX_INCLUDED_FILES) readFile(readSource(path))
      else inventory.note(path, 0, 'left out: too many files, or they include each other')
    }
  }
  for (const file of sourcesOf(source, 'ssh', [join(directory, 'config')])) readFile(file)

  const jumpOf = jumpFinder(blocks)
  for (const { path, line, patterns, settings } of blocks) {
    // Several aliases with one HostName are one machine; without it, or with `%h` in it, they are several.
    const aliases = line === 0 ? [] : (patterns ?? []).filter((word) => !/[*?!]/.test(word))
    const hostName = settings.find(({ keyword }) => keyword === 'hostname')?.words[0] ?? '%h'
    const isOneMachine = !hostName.includes('%h')
    const first = aliases.find(isAddress) ?? aliases[0] ?? ''
    const others = aliases.filter((alias) => alias !== first)
    if (isOneMachine && others.length > 0)
      inventory.note(path, line, `${printable(others.join(' '))}: other names of ${printable(first)}`)
    for (const alias of isOneMachine && aliases.length > 0 ? [first] : aliases) {
      const jump = jumpOf(alias)
      inventory.addHost(alias, jump === undefined ? {} : { jump }, path, line)
    }
  }
}

export const ssh: ImportFormat = {
  name: 'ssh',
  about: 'aliases of ssh_config (default: ~/.ssh/config)',
  recognises: ({ path, text }) =>
    basename(path) === 'ssh_config' ||
    /^\s*Host[ \t=]+\S.*\n(?:\s*(?:#.*)?\n)*[ \t]*(?:HostName|User|Port|IdentityFile|ProxyJump|ProxyCommand)[ \t=]/im.test(
      text,
    ),
  read,
}
