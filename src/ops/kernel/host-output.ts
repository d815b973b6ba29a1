/** What jobs of an engine printed, where programs of one host can read it. */
import { printable } from '../../base/printable.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import { type OpsHosts, reasonOfResult } from './host-port.ts'

export type LogPiece = {
  readonly key: string
  /** Of a gang; undefined: of a job of one bundle. */
  readonly rank: number | undefined
  /** Of what it printed, stdout and stderr together; negative: from its end. */
  readonly fromByte: number
  readonly mostBytes: number
}

/** What is searched for metrics: `tails` are programs that print the end of each job's output. */
export type LogSearch = {
  readonly jobs: readonly { readonly key: string; readonly isGang: boolean }[]
  readonly mostBytes: number
  programOf(tails: ReadonlyMap<string, string>): string
}

const READ_MS = 60_000
/** The exit code of a script that found no files of the job. */
export const NO_FILES_CODE = 66
export const NO_FILES = 'its files were deleted'

/** `script`: prints a piece, and fails if that cannot be read. */
export function outputOn(host: string, script: (piece: LogPiece) => string) {
  const read = async (program: string, hosts: OpsHosts, signal: AbortSignal) =>
    await hosts.exec(host, 'exec sh -s', { stdin: Buffer.from(program), timeoutMs: READ_MS, signal })
  return {
    /** Empty: there is none. A string: why it cannot be read, such as NO_FILES. Never rejects. */
    async log(piece: LogPiece, hosts: OpsHosts, signal: AbortSignal): Promise<Uint8Array | string> {
      const result = await read(script(piece), hosts, signal)
      if (result.outcome.kind === 'exit' && result.outcome.code === NO_FILES_CODE) return NO_FILES
      return result.outcome.kind === 'exit'
        ? result.stdout
        : `${host}: ${printable(reasonOfResult(result, formatOutcome))}`
    },

    /** Undefined: it could not run. Never rejects. */
    async searchOutput({ jobs, mostBytes, programOf }: LogSearch, hosts: OpsHosts, signal: AbortSignal) {
      const tailOf = ({ key, isGang }: LogSearch['jobs'][number]) =>
        withoutFiles(script({ key, rank: isGang ? 0 : undefined, fromByte: -mostBytes, mostBytes }))
      const program = programOf(new Map(jobs.map((job) => [job.key, tailOf(job)])))
      const { outcome, stdout } = await read(program, hosts, signal)
      const text = Buffer.from(stdout).toString()
      if (isSuccess(outcome)) return text
      // What it has printed in time.
      const length = text.lastIndexOf('\n') + 1
      return length === 0 ? undefined : text.slice(0, length)
    },
  }
}

/** Succeeds also where there are no files: there is nothing to search. */
const withoutFiles = (script: string): string => `(${script}
)
code=$?
[ $code -eq ${NO_FILES_CODE} ] || (exit $code)`
