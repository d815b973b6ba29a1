/** Every room of Muster that may leave something on a host, in the order in which it is shown. Each declares its own. */
import { envLeft } from '../../ops/env/left.ts'
import { filesLeft } from '../../ops/kernel/files-left.ts'
import type { LeftRoom } from '../../ops/kernel/left.ts'
import { tracesLeft } from '../../ops/kernel/left-traces.ts'
import { iperfLeft } from '../../ops/net/mesh/install-iperf.ts'
import { nfsLeft } from '../../ops/nfs/left.ts'
import { rayLeft } from '../../ops/ray/left.ts'
import { trustLeft } from '../../ops/trust/left.ts'
import { jobsLeft, type OwnQueue } from '../../scheduler/jobs/left.ts'
import { copyLeft } from '../../ssh/copy/left.ts'
import { execLeft } from '../../ssh/exec/left.ts'
import { persistLeft } from '../../ssh/persist/left.ts'
import { recordsLeft } from './records.ts'

export function leftRooms(queue: OwnQueue | undefined): readonly LeftRoom[] {
  const traces = [jobsLeft(queue), copyLeft, execLeft, persistLeft, filesLeft, recordsLeft]
  return [trustLeft, nfsLeft, envLeft, rayLeft, iperfLeft, ...traces.map(tracesLeft)]
}
