/** All watched hosts as one, for the charts below the table. Pure, but keeps its last answer for a second. */
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'

const RECENT_MS = 5 * 60_000
const SECOND_MS = 1000
/** The newest seconds are left out: some hosts have not reported them yet. */
const OPEN_SECONDS = 2

let last: { readonly key: string; readonly host: WatchedHost } | undefined

export function allHosts(hosts: readonly WatchedHost[]): WatchedHost {
  const others = hosts.filter(({ isOwn }) => isOwn !== true)
  const newest = Math.max(0, ...others.map(({ samples }) => samples.at(-1)?.atMs ?? 0))
  const secondOf = ({ atMs }: Sample) => Math.floor(atMs / SECOND_MS)
  const key = JSON.stringify([
    Math.floor(newest / SECOND_MS),
    others.map(({ host, samples }) => [host, samples[0]?.cpu]),
  ])
  if (last?.key === key) return last.host
  const recent = others.flatMap(({ samples }) =>
    samples.slice(samples.findIndex(({ atMs }) => atMs > newest - RECENT_MS)),
  )
  const seconds = [...Map.groupBy(recent, secondOf)].toSorted(([one], [other]) => one - other)
  const whole = seconds.length > OPEN_SECONDS ? seconds.slice(0, -OPEN_SECONDS) : seconds
  last = { key, host: { host: 'all hosts', samples: whole.map(([second, all]) => combine(second * SECOND_MS, all)) } }
  return last.host
}

/** Sums, but the mean of CPU use, weighted by cores. */
function combine(atMs: number, samples: readonly Sample[]): Sample {
  const sum = (pick: (sample: Sample) => number | undefined) =>
    samples.reduce((total, sample) => total + (pick(sample) ?? 0), 0)
  const cores = sum((sample) => sample.cores)
  return {
    atMs,
    cores,
    cpu: cores === 0 ? 0 : sum((sample) => sample.cpu * sample.cores) / cores,
    memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    memoryUsedBytes: sum(({ memoryUsedBytes }) => memoryUsedBytes),
    swapBytes: sum(({ swapBytes }) => swapBytes),
    swapUsedBytes: sum(({ swapUsedBytes }) => swapUsedBytes),
    readBytes: sum(({ readBytes }) => readBytes),
    writtenBytes: sum(({ writtenBytes }) => writtenBytes),
    receivedBytes: sum(({ receivedBytes }) => receivedBytes),
    sentBytes: sum(({ sentBytes }) => sentBytes),
    cards: [],
    gpus: samples.flatMap(({ gpus }) => gpus),
  }
}
