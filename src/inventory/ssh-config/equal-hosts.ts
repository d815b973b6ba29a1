/**
 * Saves `ssh -G` for hosts that match the same blocks of ssh_config: ssh is asked about two of them, and if the two answers
 * differ only in the name, the others get the same answer with their own name. ssh itself says which files it has read;
 * they are only searched for Host and Match here. Whatever might distinguish hosts in another way, or is unknown,
 * means that ssh is asked about every host.
 */

import { readFileSync } from 'node:fs'
import { matchesGlob } from '../glob.ts'
import { NO_ANSWER, type SshConfigAnswer, type SshConfigQuestion, type SshConfigValues, settingOf } from './source.ts'

/** The output of ssh: its answer, and with `-v` its debug messages. */
export type SshReply = { readonly answer: SshConfigAnswer; readonly remarks: readonly string[] }

export type AskSsh = (questions: readonly SshConfigQuestion[]) => Promise<readonly SshReply[]>

/** Fewer are asked one by one. */
const WORTHWHILE = 4
/** Names that ssh uses unchanged: no user, no port, no URI, no capitals. */
const PLAIN_NAME = /^[a-z0-9][a-z0-9._-]*$/
const PLAIN_ADDRESS = /^[a-z0-9][a-z0-9.:_-]*$/
/** The line of ssh's debug messages; longer paths would be cut there. */
const FILE_REMARK = /^debug1: Reading configuration data (.*)$/
const LONGEST_PATH = 190

/** What of a directive may distinguish hosts in another way than by patterns of names; `Match all` is the same for all. */
const DISTINGUISHING = new Map([
  ['host', /[\\']/],
  ['match', /^(?![\s="]*(?:(?:final|canonical)[\s="]+)*all["\s]*$)/i],
  ['include', /[%$]/],
])

export async function askAboutEqualHosts(
  questions: readonly SshConfigQuestion[],
  ask: AskSsh,
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
