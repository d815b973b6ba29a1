/** `muster job submit --copy-dir`: a directory of this machine, brought to the hosts before the job is submitted. */
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { reasonOfResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { JOBS_DIRECTORY } from '../../scheduler/jobs/host-program.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { connectHosts } from './hosts.ts'
import type { OpenQueue } from './open-queue.ts'

export type CopiedDirectory = {
  /** For a job to run in: beside the directories of jobs. */
  readonly directory: string
  /** The hosts that have it; the others are listed on stderr. */
  readonly hosts: readonly string[]
}

/** @throws MusterError 'unreachable' when no host has it. */
export async function copyDirectory(
  source: string,
  names: readonly string[],
  { store, inventory }: OpenQueue,
  options: GlobalOptions,
  context: CliContext,
): Promise<CopiedDirectory> {
  const name = `${store.id}-copied-${randomBytes(6).toString('hex')}`
  using hosts = await connectHosts(inventory, options, context)
  const bring = async (host: string): Promise<string | undefined> => {
    const program = `umask 077; mkdir -p ${JOBS_DIRECTORY} && cd ${JOBS_DIRECTORY} && pwd`
    const found = await hosts.exec(host, program, context.signal)
    const place = Buffer.from(found.stdout).toString().trim()
    if (found.outcome.kind !== 'exit' || found.outcome.code !== 0 || !place.startsWith('/'))
      return reasonOfResult(found, formatOutcome)
    const delivery = { from: undefined, path: resolve(context.workingDirectory, source), to: `${place}/${name}` }
    const brought = await hosts.deliver(host, delivery, names.length, context.signal)
    return brought.outcome.kind === 'exit' && brought.outcome.code === 0
      ? undefined
      : reasonOfResult(brought, formatOutcome)
  }
  const ends = await Promise.all(names.map(async (host) => ({ host, trouble: await bring(host) })))
  for (const { host, trouble } of ends)
    if (trouble !== undefined)
      context.stderr.write(`muster: ${host}: ${printable(trouble)}: it gets neither the directory nor the job\n`)
  const well = ends.flatMap(({ host, trouble }) => (trouble === undefined ? [host] : []))
  if (well.length === 0) throw new MusterError('unreachable', `no host has ${printable(source)}: nothing was submitted`)
  return { directory: `../${name}`, hosts: well }
}
