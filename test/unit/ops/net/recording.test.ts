import { expect, it } from 'vitest'
import { parseRecording, Replay, recordingLine } from '../../../../src/ops/net/watch/recording.ts'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'

const SAMPLE: Sample = {
  ...{ atMs: 1, cores: 4, cpu: 0.5, memoryBytes: 8, memoryUsedBytes: 4, swapBytes: 2, swapUsedBytes: 1 },
  ...{
    upSeconds: 9,
    load: 1.5,
    swapped: 0,
    readBytes: 1,
    writtenBytes: 2,
    diskBusy: 0.1,
    receivedBytes: 3,
    sentBytes: 4,
  },
  fullest: { point: '/', used: 0.5 },
  nfs: { readBytes: 1, writtenBytes: 2, operations: 3, roundTripMs: 4 },
  cards: [{ name: 'eth0', receivedBytes: 3, sentBytes: 4 }],
  gpus: [{ id: '0', name: 'A100', busy: 0.5, usedBytes: 1, totalBytes: 2, celsius: 50, watts: 9, processes: [7] }],
}

it('reads what it wrote', () => {
  const one = { host: 'm1', sample: SAMPLE }
  expect(parseRecording(recordingLine(one))).toEqual([one])
})

it('leaves out lines of another shape, and values that are none', () => {
  const parsed = (rest: object) => parseRecording(JSON.stringify({ host: 'm1', ...SAMPLE, ...rest }))
  const whole = parsed({ gpus: [null], cards: [null, 7], load: '\u001b[2J', fullest: 3, nfs: [] })
  const { load: _, fullest: __, nfs: ___, ...rest } = SAMPLE
  expect(whole).toEqual([{ host: 'm1', sample: { ...rest, gpus: [], cards: [] } }])
  for (const bad of [{ atMs: 1e308 }, { cpu: undefined }, { memoryBytes: 'x' }, { gpus: 1 }, { host: 1 }])
    expect(parsed(bad)).toEqual([])
})

it('replays hosts by name, whichever answered first', () => {
  const lineOf = (host: string, atMs: number) => JSON.stringify({ host, ...SAMPLE, atMs })
  const lines = ['m10', 'm2', 'm1'].map((host, at) => lineOf(host, at))
  const replay = new Replay(parseRecording(lines.join('\n')))
  expect(replay.hosts().map(({ host }) => host)).toEqual(['m1', 'm2', 'm10'])
})
