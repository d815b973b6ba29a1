/** What plays the mutations notices what it is there for. */
import { describe, expect, it } from 'vitest'
import { playMutations } from '../../support/hostile-host/play.ts'

describe('the player of mutations', () => {
  it('finds a few kilobytes that each mutation leaves behind', async () => {
    const kept: Buffer[] = []
    await expect(playMutations(() => void kept.push(Buffer.alloc(4096)))).rejects.toThrow(/it keeps \d+ MiB more/)
    await expect(playMutations(() => void Buffer.alloc(4096))).resolves.toBeUndefined()
  })

  it('finds the one mutation that uses a lot of memory', async () => {
    const greedy = playMutations(({ seed }) => void (seed % 100 === 0 ? Buffer.alloc(700 * 2 ** 20, 1) : 0), 0.01)
    await expect(greedy).rejects.toThrow(/it took \d+ MiB in passing/)
  })

  it('names the seed and its mutations, and finds unhandled rejections', async () => {
    const play = playMutations(({ seed, note }) => {
      note('cut')
      if (seed === 7) throw new Error('believed')
    })
    await expect(play).rejects.toThrow(/^seed 7 \(cut\) fails[\s\S]*MUSTER_SEED=7 [\s\S]*believed$/)
    const silent = playMutations(async ({ seed }) => {
      if (seed === 3) void Promise.reject(new Error('nobody hears it'))
      await new Promise((resolve) => setImmediate(resolve))
    }, 0.001)
    await expect(silent).rejects.toThrow('nobody hears it')
  })
})
