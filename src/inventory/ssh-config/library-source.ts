/** Answers like `ssh -G` where ssh is not installed: the `ssh-config` package reads the same files. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import SSHConfig from 'ssh-config'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import {
  type LocalUser,
  optionsOf,
  type SshConfigAnswer,
  type SshConfigQuestion,
  type SshConfigSource,
  type SshConfigValues,
  splitLine,
} from './source.ts'

export type LibraryOptions = {
  readonly configFile?: string
  readonly localUser: LocalUser
  readonly systemFile?: string
}

const SYSTEM_FILE = '/etc/ssh/ssh_config'
const MAX_INCLUDE_DEPTH = 16
const DEFAULT_KEYS = ['rsa', 'ecdsa', 'ecdsa_sk', 'ed25519', 'ed25519_sk', 'xmss', 'dsa']
// The library compares these by their usual spelling; ssh ignores case.
const SPELLING: Readonly<Record<string, string>> = { hostname: 'HostName', user: 'User', host: 'Host', match: 'Match' }

/** As ssh checks the user's own file and what it includes (readconf.c, SSHCONF_CHECKPERM), because they can name commands. */
function requireOwn(path: string): void {
  const { uid, mode } = statSync(path)
  const isOwn = uid === 0 || uid === (process.getuid?.() ?? uid)
  if (!isOwn || (mode & 0o022) !== 0) throw new Error(`bad owner or permissions on ${path}`)
}

/**
 * The text of a file with its Includes in place (ssh_config(5), Include: relative names are below ~/.ssh, or /etc/ssh in
 * the system's file; globs in order; missing files are skipped).
 */
function readWithIncludes(path: string, includeDirectory: string, home: string, isUsers = false, depth = 0): string[] {
  if (isUsers) requireOwn(path)
  if (depth > MAX_INCLUDE_DEPTH) throw new Error(`${path}: Include goes deeper than ${MAX_INCLUDE_DEPTH} files`)
  const lines: string[] = []
  let isInBlock = false
  for (const [index, line] of readFileSync(path, 'utf8').split(/\r?\n/).entries()) {
    const { keyword, value, words } = splitLine(line)
    isInBlock ||= keyword === 'host' || keyword === 'match'
    if (keyword !== 'include') {
      const spelling = SPELLING[keyword]
      lines.push(spelling === undefined ? line : `${spelling} ${value}`)
      continue
    }
    const files = words.flatMap((word) => {
      const name = word.startsWith('~/') ? join(home, word.slice(2)) : word
      const pattern = name.startsWith('/') ? name : join(includeDirectory, name)
      return /[*?[]/.test(pattern) ? globSync(pattern).sort() : existsSync(pattern) ? [pattern] : []
    })
    for (const file of files) {
      const included = readWithIncludes(file, includeDirectory, home, isUsers, depth + 1)
      lines.push(...included)
      if (!included.some((inner) => /^\s*(?:host|match)\b/i.test(inner))) continue
      if (isInBlock)
        throw new Error(
          `${path}:${index + 1}: an Include inside Host or Match contains Host or Match blocks, which only ssh can read`,
        )
      lines.push('Host *')
    }
  }
  return lines
}

function valuesOf(text: string, question: SshConfigQuestion, { localUser }: LibraryOptions): SshConfigValues {
  const overrides = optionsOf(question).map((option) => option.replace(/^-o(\w+)=/, '$1 '))
  const config = SSHConfig.parse([...overrides, text].join('\n'))
  const computed = config.compute({ Host: question.alias }, { ignoreCase: true })
  const values = new Map<string, readonly string[]>()
  for (const [keyword, value] of Object.entries(computed)) {
    const list = Array.isArray(value) ? value : [value]
    const isList = ['identityfile', 'certificatefile'].includes(keyword)
    values.set(keyword, isList ? list : [list.join(' ')])
  }
  const fill = (keyword: string, ...fallback: string[]): void => {
    if (!values.has(keyword)) values.set(keyword, fallback)
  }
  const name = values.get('hostname')?.[0] ?? question.alias
  values.set('hostname', [name.replace(/%([%h])/g, (_, letter) => (letter === 'h' ? question.alias : '%'))])
  fill('user', localUser.name)
  fill('port', '22')
  fill('identityfile', ...DEFAULT_KEYS.map((kind) => `~/.ssh/id_${kind}`))
  fill('userknownhostsfile', '~/.ssh/known_hosts ~/.ssh/known_hosts2')
  fill('globalknownhostsfile', '/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2')
  // The first of the two in the files wins, and the other is ignored.
  const keywords = Object.keys(computed)
  const isJump = keywords.indexOf('proxyjump') < keywords.indexOf('proxycommand')
  if (values.has('proxyjump') && values.has('proxycommand')) values.delete(isJump ? 'proxycommand' : 'proxyjump')
  return values
}

export function createLibrarySource(options: LibraryOptions): SshConfigSource {
  const { home } = options.localUser
  let text: string | undefined
  const readFiles = (): string => {
    if (options.configFile !== undefined)
      return readWithIncludes(options.configFile, join(home, '.ssh'), home).join('\n')
    const user = join(home, '.ssh/config')
    const system = options.systemFile ?? SYSTEM_FILE
    const lines = existsSync(user) ? readWithIncludes(user, join(home, '.ssh'), home, true) : []
    // The lines before the first Host of the system's file apply to every host.
    if (existsSync(system)) lines.push('Host *', ...readWithIncludes(system, '/etc/ssh', home))
    return lines.join('\n')
  }
  return {
    async ask(questions) {
      return questions.map((question): SshConfigAnswer => {
        try {
          text ??= readFiles()
          return { ok: true, values: valuesOf(text, question, options) }
        } catch (error) {
          return { ok: false, reason: printable(messageOf(error)) }
        }
      })
    },
  }
}
