/** A load from a trace in which each request comes once, for the benchmark of placement under departures. */
import { createRandomNumbers } from '../../src/scheduler/policies/random.ts'
import {
  askedMilliSeconds,
  gpuMilliOf,
  inOrder,
  type LoadInput,
  spanOf,
  timesOf,
  turn,
} from '../../src/scheduler/simulate/churn.ts'

const MOST_FASTER = 1e6
const HALVINGS = 40

/**
 * The trace once, its requests coming faster; how long each stays is the trace's own. As there are only so many of them, the
 * load cannot be more than all of them at once: it is what comes nearest.
 */
export function pressTogether({ pods, hosts, load, seed }: LoadInput) {
  const timed = timesOf(pods)
  const wholeS = spanOf(timed)
  const wantedMilli = load * gpuMilliOf(hosts)
  let slow = 1
  let fast = MOST_FASTER
  for (let step = 0; step < HALVINGS; step++) {
    const faster = Math.sqrt(slow * fast)
    const spanS = wholeS / faster
    if (askedMilliSeconds(timed, spanS) < wantedMilli * spanS) slow = faster
    else fast = faster
  }
  const spanS = wholeS / slow
  const pressed = timed.map((one) => ({ ...one, arrivalS: one.arrivalS / slow }))
  return { requests: inOrder(turn(pressed, spanS, createRandomNumbers(seed)() * spanS)), faster: slow }
}
