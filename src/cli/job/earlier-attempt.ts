/** An earlier attempt of a job. The queue does not record where it ran, but the hosts keep what it wrote until `job clean`. */

import { MusterError } from '../../base/errors.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { reasonOfResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { isOfAttempt, parseBundleKey } from '../../scheduler/jobs/orders.ts'
import type { CliContext } from '../command-line/verb.ts'
import type { ConnectedHosts } from './hosts.ts'
import type { OpenQueue } from './open-queue.ts'
import { DELETED_HINT } from './rank-logs.ts'

/**
 * The job as it was in that attempt, ended, with the hosts that have its output: of a bundle that several claim to have, the first
 * of hosts.yaml. A bundle that none has is said to be on one that has another. stderr names the hosts that have something of it, as
 * nothing else proves that it ran there, and those that do not answer.
 * @throws MusterError `usage` for an attempt that was never made, or of which no host has anything
 */
export async function earlierAttempt(
  job: Job,
  attempt: number,
  { store, inventory }: OpenQueue,
  hosts: ConnectedHosts,
  { signal, stderr }: CliContext,
): Promise<Job> {
  const { id, spec } = job
  if (spec.engine !== undefined)
    throw new MusterError(
      'usage',
      `job ${id} runs with --engine ${spec.engine}: only the output of its last attempt is kept`,
    )
  if (attempt > job.attempt)
    throw new MusterError('usage', `job ${id} has made ${job.attempt === 1 ? '1 attempt' : `${job.attempt} attempts`}`)
  const key = `${store.id}-${id}-${attempt}`
  const program = `cd ${JOBS_DIRECTORY} 2>/dev/null && for d in ${key}-*; do [ ! -d "$d" ] || echo "$d"; done; true`
  const found = await Promise.all(
    inventory.hosts.map(async ({ name: host }) => {
      const result = await hosts.exec(host, program, signal)
      if (result.outcome.kind !== 'exit')
        stderr.write(`muster: ${host}: ${printable(reasonOfResult(result, formatOutcome))}\n`)
      const bundles = Buffer.from(result.stdout)
        .toString()
        .split('\n')
        .flatMap((line) => {
          const name = parseBundleKey(store.id, line)
          return name !== undefined && isOfAttempt(name, { ...job, attempt }) ? [name.rank] : []
        })
      return { host, bundles: new Set(bundles) }
    }),
  )
  const any = found.find(({ bundles }) => bundles.size > 0)
  if (any === undefined)
    throw new MusterError('usage', `no host has output of attempt ${attempt} of job ${id}`, {
      hint: DELETED_HINT,
    })
  const having = found.flatMap(({ host, bundles }) => (bundles.size > 0 ? [host] : []))
  stderr.write(`muster: attempt ${attempt} of job ${id}, from the files on ${foldHostSet(having)}\n`)
  const places = Array.from({ length: spec.bundles }, (_, bundle) => ({
    host: (found.find(({ bundles }) => bundles.has(bundle)) ?? any).host,
    devices: [],
  }))
  return { ...job, attempt, state: { kind: 'failed', places, endedMs: 0, reason: '' } }
}
