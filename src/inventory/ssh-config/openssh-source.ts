/** Asks `ssh -G`: one ssh process per host, started by a few shells, because starting 200 processes from here takes a third of a second. */

import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, join } from 'node:path'
import { eachAtOnce } from '../../base/collections.ts'
import { shortageOf } from '../../base/errors.ts'
import { freeFiles } from '../../base/open-files.ts'
import { printable } from '../../base/printable.ts'
import { askAboutEqualHosts, type SshReply } from './equal-hosts.ts'
import { usualFiles } from './named-here.ts'
import { RememberedAnswers } from './remembered-answers.ts'
import { optionsOf, parseSshConfigValues, type SshConfigQuestion, type SshConfigSource } from './source.ts'

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
