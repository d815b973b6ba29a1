/** What populations need of hosts, over SSH: scripts beside their checkpoints, and copies from host to host. */
import { reasonOfResult, type ScriptResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { CheckpointPort, CheckpointResult } from '../../scheduler/jobs/population.ts'
import type { ConnectedHosts } from '../job/hosts.ts'

/** A checkpoint may be large, and a disk slow. */
const COPY_MS = 3_600_000

export const checkpointPort = ({ ops, deliver }: ConnectedHosts): CheckpointPort => ({
  run: async (host, program, signal) =>
    resultOf(await ops.exec(host, 'exec sh -s', { stdin: Buffer.from(program), timeoutMs: COPY_MS, signal })),
  copy: async (from, to, signal) =>
    resultOf(
      await deliver(
        to.host,
        { from: from.host, path: from.path, kind: 'directory', keepsLinks: true, to: to.path },
        1,
        signal,
      ),
    ),
})

function resultOf(result: ScriptResult): CheckpointResult {
  const { outcome, stdout } = result
  return outcome.kind === 'exit' && outcome.code === 0
    ? { kind: 'ok', text: Buffer.from(stdout).toString() }
    : { kind: 'failed', reason: reasonOfResult(result, formatOutcome) }
}
