import { expect, it } from 'vitest'
import { parseRecording, Replay } from '../../../../src/ops/net/watch/recording.ts'

it('replays hosts by name, whichever answered first', () => {
  const lineOf = (host: string, atMs: number) => JSON.stringify({ host, atMs, gpus: [], cards: [] })
  const lines = ['m10', 'm2', 'm1'].map((host, at) => lineOf(host, at))
  const replay = new Replay(parseRecording(lines.join('\n')))
  expect(replay.hosts().map(({ host }) => host)).toEqual(['m1', 'm2', 'm10'])
})
