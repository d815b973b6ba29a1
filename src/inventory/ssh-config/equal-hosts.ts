/**
 * Saves `ssh -G` for hosts that match the same blocks of ssh_config: ssh is asked about two of them, and if the answers differ
 * only in what was set for each of them, the others get the same answer with their own values. The files that ssh says it has
 * read are only searched for what distinguishes hosts; if anything is not plain, ssh is asked about every host.
 */
import { readBoundedSync } from '../../base/read-bounded.ts'
import { matchesGlob } from '../host-name.ts'
import { FILE_REMARK, LONGEST_PATH } from './remembered-answers.ts'
import {
  NO_ANSWER,
  type SshConfigAnswer,
  type SshConfigQuestion,
  type SshConfigValues,
  settingOf,
  splitLine,
} from './source.ts'

/** The output of ssh: its answer, and with `-v` its debug messages. */
export type SshReply = { readonly answer: SshConfigAnswer; readonly remarks: readonly string[] }

/** What is set for a host alone, before any line that others share: by the question, or by a block of its own in ssh_config. */
type Own = { address?: string | undefined; port?: number | undefined; user?: string | undefined }
type Asked = Readonly<Own> & { readonly question: SshConfigQuestion }

/** Fewer are asked one by one. */
const WORTHWHILE = 4
/** Names that ssh uses unchanged: no user, no port, no URI, no capitals. */
const PLAIN_NAME = /^[a-z0-9][a-z0-9._-]*$/
const PLAIN_ADDRESS = /^[a-z0-9][a-z0-9.:_-]*$/
const PLAIN_PORT = /^[1-9]\d{0,4}$/
const LAST_PORT = 65_535
/** Other characters separate words here and not in ssh, or the other way round. */
const PLAIN_LINE = /^[\t -~]{0,500}\r?$/

/** What of a directive may distinguish hosts in another way than by patterns of names; `Match all` is the same for all. */
const DISTINGUISHING = new Map([
  ['host', /[\\']/],
  ['match', /^(?![\s="]*(?:(?:final|canonical)[\s="]+)*all["\s]*$)/i],
  ['include', /[%$]/],
])

export async function askAboutEqualHosts(
  questions: readonly SshConfigQuestion[],
  ask: (questions: readonly SshConfigQuestion[]) => Promise<readonly SshReply[]>,
  read: (path: string) => string = (path) => readBoundedSync(path).toString(),
): Promise<readonly SshConfigAnswer[]> {
  const answers = new Map<SshConfigQuestion, SshConfigAnswer>()
  const askNow = async (some: readonly SshConfigQuestion[]): Promise<readonly SshReply[]> => {
    const replies = await ask(some)
    for (const [index, question] of some.entries()) answers.set(question, replies[index]?.answer ?? NO_ANSWER)
    return replies
  }
  const plain = questions.filter(isPlain)
  if (plain.length >= WORTHWHILE) {
    const [scout] = await askNow(samplesOf(plain.map((question) => ({ ...question, question }))))
    const config = scout === undefined ? undefined : configIn(scout.remarks, read)
    if (config !== undefined) {
      const groups = Map.groupBy(plain.map(config.withOwn), (each) => shapeOf(each, config))
      const worthwhile = [...groups.values()].filter((group) => group.length >= WORTHWHILE)
      const unasked = worthwhile.flatMap(samplesOf).filter((question) => !answers.has(question))
      if (unasked.length > 0) await askNow(unasked)
      for (const group of worthwhile) derive(group, answers, config)
    }
  }
  const rest = questions.filter((question) => !answers.has(question))
  if (rest.length > 0) await askNow(rest)
  return questions.map((question) => answers.get(question) ?? NO_ANSWER)
}

/** The others are asked separately. */
const isPlain = ({ alias, address }: SshConfigQuestion): boolean =>
  PLAIN_NAME.test(alias) && (address === undefined || PLAIN_ADDRESS.test(address))

/** Equal for hosts that match the same shared blocks, and otherwise differ at most in name, address and port. */
const shapeOf = ({ question, address, port, user }: Asked, { matchesOf }: Config): string =>
  JSON.stringify([
    matchesOf(question.alias),
    address !== undefined,
    port !== undefined,
    user ?? null,
    question.identityFiles ?? null,
  ])

/** Two hosts that differ in all that differs among these: what their answers share (such as a hash) depends on none of it. */
function samplesOf(group: readonly Asked[]): readonly SshConfigQuestion[] {
  const [first] = group
  if (first === undefined) return []
  const varying = (['address', 'port'] as const).filter((key) => group.some((each) => each[key] !== first[key]))
  const other = group.findLast(
    (each) => each.question.alias !== first.question.alias && varying.every((key) => each[key] !== first[key]),
  )
  return [first.question, ...(other === undefined ? [] : [other.question])]
}

type Config = {
  /** Which patterns of shared blocks match a name, with and without regard to case: nothing else about ssh's matching matters. */
  matchesOf(name: string): string
  withOwn(question: SshConfigQuestion): Asked
  hasOwn(name: string): boolean
}

type Directive = { readonly keyword: string; readonly rest: string; readonly line: string }

/** Undefined: something else than names may distinguish hosts. */
function configIn(remarks: readonly string[], read: (path: string) => string): Config | undefined {
  // Without ssh's messages, it is unknown which files it has read.
  if (!remarks.some((line) => line.startsWith('OpenSSH_'))) return undefined
  const files = remarks.flatMap((line) => FILE_REMARK.exec(line)?.[1] ?? [])
  const counts = new Map<string, number>()
  let blocks: ReturnType<typeof ownBlocks> = new Map()
  for (const [index, file] of [...new Set(files)].entries()) {
    if (file.length > LONGEST_PATH || !file.startsWith('/')) return undefined
    let text: string
    try {
      text = read(file)
    } catch {
      return undefined
    }
    const directives = directivesIn(text)
    if (directives.some(({ keyword, rest }) => DISTINGUISHING.get(keyword)?.test(rest))) return undefined
    for (const { keyword, rest } of directives)
      if (keyword === 'host')
        for (const pattern of patternsOf(rest)) counts.set(pattern, (counts.get(pattern) ?? 0) + 1)
    // The first value of a setting counts, and this file is read first.
    if (index === 0) blocks = ownBlocks(directives)
  }
  const ownOf = (name: string): Own | undefined => {
    const block = blocks.get(name)
    return block !== undefined && block.count === counts.get(name) ? block.own : undefined
  }
  const shared = [...counts.keys()].filter((pattern) => ownOf(pattern) === undefined)
  const matches = (pattern: string, name: string) => (matchesGlob(pattern, name) ? '1' : '0')
  return {
    matchesOf: (name) =>
      shared.map((each) => matches(each, name) + matches(each.toLowerCase(), name.toLowerCase())).join(''),
    withOwn: (question) => {
      const { address, port, user } = question
      const own = ownOf(question.alias)
      return { question, address: address ?? own?.address, port: port ?? own?.port, user: user ?? own?.user }
    },
    hasOwn: (name) => ownOf(name) !== undefined,
  }
}

const directivesIn = (text: string): readonly Directive[] =>
  text.split('\n').flatMap((line) => {
    const { keyword, rest = '' } = /^[^\w#]*(?<keyword>[a-z]+)(?<rest>.*)/is.exec(line)?.groups ?? {}
    return keyword === undefined ? [] : { keyword: keyword.toLowerCase(), rest, line }
  })

const patternsOf = (rest: string): readonly string[] => rest.split(/[\s="]+/).map((word) => word.replace(/^!/, ''))

/** Blocks of one host each that set nothing but its address, port and user, where no line before them has set these for it. */
function ownBlocks(directives: readonly Directive[]) {
  const blocks = new Map<string, { own: Own; count: number }>()
  /** Lines of other blocks that set these; undefined: for all hosts. */
  const earlier: { readonly keyword: string; readonly patterns: readonly string[] | undefined }[] = []
  const starts = directives.flatMap(({ keyword }, index) => (keyword === 'host' || keyword === 'match' ? [index] : []))
  for (const [index, start] of [0, ...starts].entries()) {
    const block = directives.slice(start, starts[index])
    // What an included file says about the hosts is not searched.
    if (block.some(({ keyword }) => keyword === 'include')) break
    const [head, ...lines] = block
    const isHost = head?.keyword === 'host'
    const [name = '', ...others] = isHost ? splitLine(head.line).words : []
    const isOne = PLAIN_NAME.test(name) && others.length === 0 && block.every(({ line }) => PLAIN_LINE.test(line))
    const own = isOne ? ownIn(lines) : undefined
    const isSet = ({ keyword, patterns }: (typeof earlier)[number]) =>
      lines.some((line) => line.keyword === keyword) &&
      (patterns === undefined || patterns.some((pattern) => matchesGlob(pattern.toLowerCase(), name)))
    if (own !== undefined && !earlier.some(isSet)) {
      const before = blocks.get(name)
      blocks.set(name, { own: { ...own, ...before?.own }, count: (before?.count ?? 0) + 1 })
    } else {
      const patterns = isHost ? patternsOf(head.rest) : undefined
      for (const { keyword } of block) earlier.push({ keyword, patterns })
    }
  }
  return blocks
}

/** Undefined: something else is set, or in a way that only ssh understands. */
function ownIn(lines: readonly Directive[]): Own | undefined {
  const own: Own = {}
  for (const { keyword, line } of lines) {
    const [value = '', ...others] = splitLine(line).keyword === keyword ? splitLine(line).words : []
    if (others.length > 0) return undefined
    if (keyword === 'hostname' && PLAIN_ADDRESS.test(value)) own.address ??= value
    else if (keyword === 'port' && PLAIN_PORT.test(value) && Number(value) <= LAST_PORT) own.port ??= Number(value)
    else if (keyword === 'user' && PLAIN_NAME.test(value)) own.user ??= value
    else return undefined
  }
  return own
}

/** Fills in the answers of a group of which two were asked, if these two agree. */
function derive(
  group: readonly Asked[],
  answers: Map<SshConfigQuestion, SshConfigAnswer>,
  { matchesOf, hasOwn }: Config,
): void {
  const samples = new Set(samplesOf(group))
  const [one, other] = group
    .filter(({ question }) => samples.has(question))
    .map((asked) => {
      const answer = answers.get(asked.question)
      return answer?.ok ? templateOf(asked, answer.values) : undefined
    })
  if (one === undefined || one.text !== other?.text) return
  // In a second pass (Match final) ssh compares this name with the patterns.
  const isOther = (alias: string, hostName: string) =>
    matchesOf(hostName) !== matchesOf(one.hostName) || (hasOwn(hostName) && hostName !== alias)
  for (const { question, address, port } of group) {
    if (answers.has(question)) continue
    const { alias } = question
    const hostName = address ?? one.parts.join(alias)
    if (isOther(alias, hostName)) continue
    const values = new Map(one.values).set('host', [alias]).set('hostname', [hostName])
    if (port !== undefined) values.set('port', [String(port)])
    answers.set(question, { ok: true, values })
  }
}

/** An answer without what is set for the host alone, and how it derives the name to connect to; undefined: not conclusive. */
function templateOf({ question, address, port, user }: Asked, values: SshConfigValues) {
  const { alias } = question
  const hostName = settingOf(values, 'hostname')
  const isCanonicalized = !['no', 'false', undefined].includes(settingOf(values, 'canonicalizehostname'))
  if (isCanonicalized || hostName === undefined || !values.has('host')) return undefined
  // Without an address the name is made of the alias, or is the same for all.
  const parts = address === undefined ? hostName.split(alias) : []
  if (address === undefined ? parts.length > 2 : hostName !== address) return undefined
  if (port !== undefined && settingOf(values, 'port') !== String(port)) return undefined
  if (user !== undefined && settingOf(values, 'user') !== user) return undefined
  const own = ['host', 'hostname', ...(port === undefined ? [] : ['port'])]
  const others = [...values].filter(([keyword]) => !own.includes(keyword))
  return { values, hostName, parts, text: JSON.stringify([parts, others]) }
}
