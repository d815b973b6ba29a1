/** One command line of `muster` in this process, with streams of its own. */
import { PassThrough, Readable } from 'node:stream'
import type { CliContext, VerbTable } from '../../src/cli/command-line/verb.ts'
import { runProgram } from '../../src/cli/program.ts'
import { checkJsonOutput } from './json-output.ts'

export type RunMusterOptions = Partial<Omit<CliContext, 'stdin' | 'stdout' | 'stderr'>> & {
  /** Its working directory, and home unless `environment` says otherwise. */
  readonly directory: string
  readonly stdin?: readonly string[]
  readonly verbs?: VerbTable
  /** stdout is a terminal. */
  readonly isTerminal?: boolean
}

/** What a verb gets from the program, with `directory` as its home and working directory. */
export const contextIn = (directory: string): CliContext => ({
  stdin: new PassThrough(),
  stdout: new PassThrough(),
  stderr: new PassThrough(),
  environment: { HOME: directory },
  workingDirectory: directory,
  signal: new AbortController().signal,
  now: Date.now,
})

export async function runMuster(
  args: readonly string[],
  { directory, stdin = [], verbs, isTerminal = false, ...context }: RunMusterOptions,
): Promise<{ readonly exitCode: number; readonly output: string; readonly messages: string }> {
  const [stdout, stderr] = [Object.assign(new PassThrough(), { isTTY: isTerminal }), new PassThrough()]
  const whole: CliContext = {
    ...contextIn(directory),
    environment: { HOME: directory, PATH: process.env.PATH },
    ...context,
    stdin: Readable.from(stdin.map((piece) => Buffer.from(piece))),
    stdout,
    stderr,
  }
  const exitCode = await runProgram(args, whole, verbs)
  const output = String(stdout.read() ?? '')
  if (verbs === undefined) await checkJsonOutput(args, output)
  return { exitCode, output, messages: String(stderr.read() ?? '') }
}
