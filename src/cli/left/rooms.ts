/** Every room of Muster that may leave something on a host, in the order in which it is shown. Each declares its own. */
import { filesLeft } from '../../ops/kernel/files-left.ts'
import type { LeftRoom } from '../../ops/kernel/left.ts'
import { tracesLeft } from '../../ops/kernel/left-traces.ts'
import { iperfLeft } from '../../ops/net/mesh/install-iperf.ts'
import { jobsLeft, type OwnQueue } from '../../scheduler/jobs/left.ts'
import { copyLeft } from '../../ssh/copy/left.ts'
import { execLeft } from '../../ssh/exec/left.ts'
import { persistLeft } from '../../ssh/persist/left.ts'
import { AREAS } from '../bring-up/areas.ts'
import { recordsLeft } from './records.ts'

export async function leftRooms(queue: OwnQueue | undefined): Promise<readonly LeftRoom[]> {
  const areas = await Promise.all(AREAS.map(({ load }) => load()))
  const traces = [jobsLeft(queue), copyLeft, execLeft, persistLeft, filesLeft, recordsLeft]
  return [...areas.flatMap(({ left = [] }) => left), iperfLeft, ...traces.map(tracesLeft)]
}
