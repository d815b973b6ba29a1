/** Whether a plain name means something on this machine without DNS: an alias of ssh_config, or a name in /etc/hosts. */
import { globSync } from 'node:fs'
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { currentAccount } from '../../base/account.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import { isExplicitSpec, matchesGlob } from '../host-name.ts'
import { splitLine } from './source.ts'

export type NameFiles = {
  /** ssh_config files, each with the directory of its relative Includes. */
  readonly sshConfigs: readonly (readonly [path: string, includeDirectory: string])[]
  /** As /etc/hosts. */
  readonly hosts: string
}

const MAX_FILES = 1000

export function usualFiles(): NameFiles {
  const ssh = join(currentAccount().home, '.ssh')
  return {
    sshConfigs: [
      [join(ssh, 'config'), ssh],
      ['/etc/ssh/ssh_config', '/etc/ssh'],
    ],
    hosts: '/etc/hosts',
  }
}

/** The patterns of a Host line (ssh_config(5), PATTERNS). `!` excludes. */
export function matchesHostPatterns(patterns: readonly string[], name: string): boolean {
  const matches = (pattern: string): boolean => matchesGlob(pattern.toLowerCase(), name.toLowerCase())
  const [excluded, included] = [
    patterns.filter((each) => each.startsWith('!')),
    patterns.filter((each) => !each.startsWith('!')),
  ]
  return included.some(matches) && !excluded.some((each) => matches(each.slice(1)))
}

/** What cannot be read names nothing; ssh reports it when it is asked. */
function linesOf(path: string): readonly string[] {
  try {
    return readBoundedSync(path).toString('utf8').split(/\r?\n/)
  } catch {
    return []
  }
}

/** The patterns of each Host line, and of `Match host` and `Match originalhost`; those that match every name are left out. */
function readPatterns(files: NameFiles['sshConfigs']): readonly (readonly string[])[] {
  const blocks: (readonly string[])[] = []
  let read = 0
  const visit = (path: string, includeDirectory: string): void => {
    read += 1
    if (read > MAX_FILES) return
    for (const line of linesOf(path)) {
      const { keyword, words } = splitLine(line)
      if (keyword === 'include') {
        for (const word of words) {
          const name = word.startsWith('~/') ? join(currentAccount().home, word.slice(2)) : word
          for (const each of globSync(resolve(includeDirectory, name))) visit(each, includeDirectory)
        }
      } else if (keyword === 'host') blocks.push(words)
      else if (keyword === 'match') {
        const at = words.findIndex((word) => /^(?:original)?host$/i.test(word))
        if (at >= 0) blocks.push((words[at + 1] ?? '').split(','))
      }
    }
  }
  for (const [path, includeDirectory] of files) visit(path, includeDirectory)
  return blocks.filter((patterns) => !patterns.some((pattern) => /^[*?]+$/.test(pattern)))
}

/**
 * Of these names of hosts, those that only DNS could know. Reads the files only if a name is neither an address nor written as
 * `user@host` or `host:port`.
 */
export function unknownHere(names: readonly string[], files: NameFiles = usualFiles()): readonly string[] {
  const plain = names.filter((name) => !isExplicitSpec(name) && isIP(name) === 0)
  if (plain.length === 0) return []
  const patterns = readPatterns(files.sshConfigs)
  const local = new Set(
    linesOf(files.hosts).flatMap((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/).slice(1)),
  )
  return plain.filter(
    (name) => !local.has(name.toLowerCase()) && !patterns.some((each) => matchesHostPatterns(each, name)),
  )
}
