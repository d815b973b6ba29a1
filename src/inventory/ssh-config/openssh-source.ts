/** Asks `ssh -G`: one ssh process per host, started by a few shells, because starting 200 processes from here takes a third of a second. */

import { execFile } from 'node:child_process'
import { accessSync, constants, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, join } from 'node:path'
import { eachAtOnce } from '../../base/collections.ts'
import { shortageOf } from '../../base/errors.ts'
import { freeFiles } from '../../base/open-files.ts'
import { printable } from '../../base/printable.ts'
import { matchesGlob } from '../host-name.ts'
import { usualFiles } from './named-here.ts'
import { FILE_REMARK, LONGEST_PATH, RememberedAnswers } from './remembered-answers.ts'
import {
  NO_ANSWER,
  optionsOf,
  parseSshConfigValues,
  type SshConfigAnswer,
  type SshConfigQuestion,
  type SshConfigSource,
  type SshConfigValues,
  settingOf,
} from './source.ts'

export type OpenSshOptions = {
  /** Absolute path of the program. */
  readonly ssh: string
  /** `ssh -F`: read only this file. */
  readonly configFile?: string
  readonly env: Readonly<Record<string, string | undefined>>
}

const MAX_SHELLS = 4
/** Open files per shell: three pipes, with twice as many ends and two more while it starts. */
const FILES_A_SHELL = 8
// Far below the smallest ARG_MAX of the platforms (macOS: 1 MiB for arguments and environment).
const MAX_QUESTIONS_A_SHELL = 500
const TIMEOUT_MS = 60_000
// -n (no stdin) has no effect with -G: it fills the places of a host that needs fewer options than others.
const FILLER = '-n'

/** The absolute path of a program in PATH, or undefined if it is not installed. A name with a slash is a path itself. */
export function findProgram(name: string, path = ''): string | undefined {
  if (name.includes('/')) return isExecutable(name) ? name : undefined
  const directories = path.split(delimiter).filter((directory) => directory.startsWith('/'))
  return directories.map((directory) => join(directory, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** A shell program whose text depends only on the number of options; all user input comes as arguments. */
function scriptFor(arity: number): string {
  const places = Array.from({ length: arity }, (_, index) => `"\${${index + 1}}"`).join(' ')
  const ask = `"$MUSTER_SSH" -v -G ${places} -- "\${${arity + 1}}"`
  return `while [ $# -gt 0 ]; do ${ask} 2>&1 </dev/null; printf '\\0%d\\0' $?; shift ${arity + 1}; done`
}

/** The error messages of ssh, without its debug messages. */
function reasonIn(output: string): string {
  const lines = output
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('Pseudo-terminal'))
  return printable(lines.join('; ')) || 'ssh -G printed nothing'
}

/** What -v adds. */
const isRemark = (line: string): boolean => /^(?:debug\d: |OpenSSH_)/.test(line)

function repliesIn(output: string, count: number): SshReply[] {
  const fields = output.split('\0')
  return Array.from({ length: count }, (_, index): SshReply => {
    const all = fields[index * 2]
    const status = fields[index * 2 + 1]
    if (all === undefined || status === undefined) return failed('ssh -G was stopped')
    const lines = all.split(/\r?\n/)
    const text = lines.filter((line) => !isRemark(line)).join('\n')
    if (status !== '0') return failed(reasonIn(text))
    return { answer: { ok: true, values: parseSshConfigValues(text) }, remarks: lines.filter(isRemark) }
  })
}

const failed = (reason: string): SshReply => ({ answer: { ok: false, reason }, remarks: [] })

function runShell(
  questions: readonly SshConfigQuestion[],
  { ssh, configFile, env }: OpenSshOptions,
  signal: AbortSignal | undefined,
): Promise<SshReply[]> {
  const options = questions.map((question) => [
    ...(configFile === undefined ? [] : [`-F${configFile}`]),
    ...optionsOf(question),
  ])
  const arity = Math.max(1, ...options.map((list) => list.length))
  const parameters = questions.flatMap((question, index) => {
    const own = options[index] ?? []
    return [...own, ...Array<string>(arity - own.length).fill(FILLER), question.alias]
  })
  return new Promise((resolve, reject) => {
    execFile(
      '/bin/sh',
      ['-c', scriptFor(arity), 'sh', ...parameters],
      {
        env: { ...env, MUSTER_SSH: ssh, LC_ALL: 'C' },
        maxBuffer: 2 ** 30,
        timeout: TIMEOUT_MS,
        ...(signal === undefined ? {} : { signal }),
      },
      (error, stdout) => {
        if (signal?.aborted) reject(signal.reason)
        else if (shortageOf(error) !== undefined) reject(error)
        else if (error !== null && stdout === '') resolve(questions.map(() => failed(printable(error.message))))
        else resolve(repliesIn(stdout, questions.length))
      },
    )
  })
}

const remembered = new RememberedAnswers()

export function createOpenSshSource(options: OpenSshOptions): SshConfigSource {
  const { ssh, configFile, env } = options
  const usual = [ssh, ...(configFile === undefined ? usualFiles().sshConfigs.map(([path]) => path) : [configFile])]
  return {
    ask: (questions, signal) =>
      remembered.ask(JSON.stringify([ssh, configFile, env, questions]), usual, async () => {
        const remarks: string[] = []
        const answers = await askAboutEqualHosts(questions, async (some) => {
          const replies = await askEach(some, options, signal)
          for (const reply of replies) remarks.push(...reply.remarks)
          return replies
        })
        return { answers, remarks }
      }),
  }
}

async function askEach(
  questions: readonly SshConfigQuestion[],
  options: OpenSshOptions,
  signal: AbortSignal | undefined,
): Promise<SshReply[]> {
  const room = Math.max(1, Math.floor(freeFiles() / FILES_A_SHELL))
  const shells = Math.min(MAX_SHELLS, availableParallelism(), room)
  const size = Math.min(MAX_QUESTIONS_A_SHELL, Math.max(1, Math.ceil(questions.length / shells)))
  const chunks: SshConfigQuestion[][] = []
  for (let from = 0; from < questions.length; from += size) chunks.push(questions.slice(from, from + size))
  const replies = new Map<readonly SshConfigQuestion[], SshReply[]>()
  await eachAtOnce(chunks, shells, async (chunk) => void replies.set(chunk, await runShell(chunk, options, signal)))
  return chunks.flatMap((chunk) => replies.get(chunk) ?? [])
}

/** The output of ssh: its answer, and with `-v` its debug messages. */
export type SshReply = { readonly answer: SshConfigAnswer; readonly remarks: readonly string[] }

/** Fewer are asked one by one. */
const WORTHWHILE = 4
/** Names that ssh uses unchanged: no user, no port, no URI, no capitals. */
const PLAIN_NAME = /^[a-z0-9][a-z0-9._-]*$/
const PLAIN_ADDRESS = /^[a-z0-9][a-z0-9.:_-]*$/

/** What of a directive may distinguish hosts in another way than by patterns of names; `Match all` is the same for all. */
const DISTINGUISHING = new Map([
  ['host', /[\\']/],
  ['match', /^(?![\s="]*(?:(?:final|canonical)[\s="]+)*all["\s]*$)/i],
  ['include', /[%$]/],
])

/**
 * Saves `ssh -G` for hosts that match the same blocks of ssh_config: ssh is asked about two of them, and if the answers differ
 * only in the name, the others get the same answer with their own name. The files that ssh says it has read are only searched
 * for Host and Match; if anything else might distinguish hosts, ssh is asked about every host.
 */
export async function askAboutEqualHosts(
  questions: readonly SshConfigQuestion[],
  ask: (questions: readonly SshConfigQuestion[]) => Promise<readonly SshReply[]>,
  read: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): Promise<readonly SshConfigAnswer[]> {
  const answers = new Map<SshConfigQuestion, SshConfigAnswer>()
  const askNow = async (some: readonly SshConfigQuestion[]): Promise<readonly SshReply[]> => {
    const replies = await ask(some)
    for (const [index, question] of some.entries()) answers.set(question, replies[index]?.answer ?? NO_ANSWER)
    return replies
  }
  const shapes = Map.groupBy(questions, shapeOf)
  shapes.delete(undefined)
  const [largest = []] = [...shapes.values()].sort((a, b) => b.length - a.length)
  if (largest.length >= WORTHWHILE) {
    const [scout] = await askNow(samplesOf(largest))
    const patterns = scout === undefined ? undefined : patternsIn(scout.remarks, read)
    if (patterns !== undefined) {
      const matchesOf = matcherOf(patterns)
      const groups = [...shapes.values()].flatMap((shape) => [
        ...Map.groupBy(shape, ({ alias }) => matchesOf(alias)).values(),
      ])
      const worthwhile = groups.filter((group) => group.length >= WORTHWHILE)
      const unasked = worthwhile.flatMap(samplesOf).filter((question) => !answers.has(question))
      if (unasked.length > 0) await askNow(unasked)
      for (const group of worthwhile) derive(group, answers, matchesOf)
    }
  }
  const rest = questions.filter((question) => !answers.has(question))
  if (rest.length > 0) await askNow(rest)
  return questions.map((question) => answers.get(question) ?? NO_ANSWER)
}

/** Equal for questions that differ at most in their names; undefined: this one is asked separately. */
function shapeOf({ alias, address, ...rest }: SshConfigQuestion): string | undefined {
  if (!PLAIN_NAME.test(alias)) return undefined
  if (address !== undefined && !PLAIN_ADDRESS.test(address)) return undefined
  return JSON.stringify([address !== undefined, rest])
}

/** Every pattern of every Host block; undefined: something else may distinguish hosts. */
function patternsIn(remarks: readonly string[], read: (path: string) => string): readonly string[] | undefined {
  // Without ssh's messages, it is unknown which files it has read.
  if (!remarks.some((line) => line.startsWith('OpenSSH_'))) return undefined
  const files = remarks.flatMap((line) => FILE_REMARK.exec(line)?.[1] ?? [])
  const patterns = new Set<string>()
  for (const file of files) {
    if (file.length > LONGEST_PATH || !file.startsWith('/')) return undefined
    let text: string
    try {
      text = read(file)
    } catch {
      return undefined
    }
    for (const line of text.split('\n')) {
      const { keyword = '', rest = '' } = /^[^\w#]*(?<keyword>[a-z]+)(?<rest>.*)/is.exec(line)?.groups ?? {}
      if (DISTINGUISHING.get(keyword.toLowerCase())?.test(rest)) return undefined
      if (keyword.toLowerCase() === 'host')
        for (const word of rest.split(/[\s="]+/)) patterns.add(word.replace(/^!/, ''))
    }
  }
  return [...patterns]
}

/** The patterns that match a name, with and without regard to case: nothing else about ssh's matching matters. */
function matcherOf(patterns: readonly string[]): (name: string) => string {
  const matches = (pattern: string, name: string) => (matchesGlob(pattern, name) ? '1' : '0')
  return (name) =>
    patterns.map((each) => matches(each, name) + matches(each.toLowerCase(), name.toLowerCase())).join('')
}

/** Fills in the answers of a group of which two were asked, if these two agree. */
function derive(
  group: readonly SshConfigQuestion[],
  answers: Map<SshConfigQuestion, SshConfigAnswer>,
  matchesOf: (name: string) => string,
): void {
  const [one, other] = samplesOf(group).map((question) => {
    const answer = answers.get(question)
    return answer?.ok ? templateOf(question, answer.values) : undefined
  })
  if (one === undefined || one.text !== other?.text) return
  for (const question of group) {
    if (answers.has(question)) continue
    const hostName = one.hostNameOf(question)
    // In a second pass (Match final) ssh compares this name with the patterns.
    if (matchesOf(hostName) !== matchesOf(one.hostName)) continue
    const values = new Map(one.values).set('host', [question.alias]).set('hostname', [hostName])
    answers.set(question, { ok: true, values })
  }
}

/** An answer without its names, and how it derives the name to connect to; undefined: not conclusive. */
function templateOf(question: SshConfigQuestion, values: SshConfigValues) {
  const { alias, address } = question
  const hostName = settingOf(values, 'hostname')
  const isCanonicalized = !['no', 'false', undefined].includes(settingOf(values, 'canonicalizehostname'))
  if (isCanonicalized || hostName === undefined || !values.has('host')) return undefined
  const parts = address === undefined ? hostName.split(alias) : []
  if (address === undefined ? parts.length !== 2 : hostName !== address) return undefined
  const others = [...values].filter(([keyword]) => keyword !== 'host' && keyword !== 'hostname')
  return {
    values,
    hostName,
    text: JSON.stringify([parts, others]),
    hostNameOf: (another: SshConfigQuestion) => another.address ?? parts.join(another.alias),
  }
}

/** Two hosts with different names and addresses: what their answers share (such as a hash) does not depend on either. */
function samplesOf(group: readonly SshConfigQuestion[]): readonly SshConfigQuestion[] {
  const [first] = group
  if (first === undefined) return []
  const isOther = ({ alias, address }: SshConfigQuestion) =>
    alias !== first.alias && (address === undefined || address !== first.address)
  return [first, ...group.filter(isOther).slice(-1)]
}
