/**
 * All watched hosts as one, for the charts below the table: means of what is a part, sums of what is a rate. Pure, but that
 * the last answer is remembered for its second.
 */
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'

const RECENT_MS = 5 * 60_000
const SECOND_MS = 1000
/** Of the last two not everybody has spoken yet. */
const OPEN_SECONDS = 2

let last: { readonly key: string; readonly host: WatchedHost } | undefined

export function allHosts(hosts: readonly WatchedHost[]): WatchedHost {
  const others = hosts.filter(({ isOwn }) => isOwn !== true)
  const newest = Math.max(0, ...others.map(({ samples }) => samples.at(-1)?.atMs ?? 0))
  const key = JSON.stringify([
    Math.floor(newest / SECOND_MS),
    others.map(({ host, samples }) => [host, samples[0]?.cpu]),
  ])
  if (last?.key === key) return last.host
  const seconds = new Map<number, Sample[]>()
  for (const { samples } of others) {
    for (const sample of samples.slice(samples.findIndex(({ atMs }) => atMs > newest - RECENT_MS))) {
      const second = Math.floor(sample.atMs / SECOND_MS)
      const there = seconds.get(second)
      if (there === undefined) seconds.set(second, [sample])
      else there.push(sample)
    }
  }
  const order = [...seconds].toSorted(([one], [other]) => one - other)
  const whole = order.length > OPEN_SECONDS ? order.slice(0, -OPEN_SECONDS) : order
  const samples = whole.map(([second, all]) => together(second * SECOND_MS, all))
  last = { key, host: { host: 'all hosts', samples } }
  return last.host
}

function together(atMs: number, samples: readonly Sample[]): Sample {
  const sum = (pick: (sample: Sample) => number | undefined) =>
    samples.reduce((total, sample) => total + (pick(sample) ?? 0), 0)
  const cores = sum(({ cores: count }) => count)
  return {
    atMs,
    cores,
    cpu: cores === 0 ? 0 : sum(({ cpu, cores: count }) => cpu * count) / cores,
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
