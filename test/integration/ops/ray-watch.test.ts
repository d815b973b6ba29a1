/** How soon a head with a dead part is reported: the program that runs on the head, with a fake clock. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { WATCH_PROGRAM } from '../../../src/ops/ray/watch.ts'
import { requirement } from '../../support/requirements.ts'

const IN_NO_TIME = join(import.meta.dirname, '../../support/ray-watch-in-no-time.py')
const GONE = [['gcs'], ['raylet'], ['dashboard'], ['gcs', 'raylet', 'dashboard']]
const MOMENTS_S = Array.from({ length: 40 }, (_, index) => 6 + index * 0.31)

type Result = { readonly toldS: number; readonly early: number; readonly longestSilenceS: number }

function watched(intervalS: number, lagS: number, hangs: boolean): readonly Result[] {
  const cases = GONE.flatMap((gone) => MOMENTS_S.map((goneAt) => ({ gone, goneAt, hangs, intervalS, lagS })))
  const input = JSON.stringify({ program: WATCH_PROGRAM, cases })
  const { stdout, stderr } = spawnSync('python3', [IN_NO_TIME], { input, encoding: 'utf8' })
  expect(stderr).toBe('')
  return JSON.parse(stdout) as readonly Result[]
}

describe.skipIf(!requirement('python3'))('a head of which a part has died', () => {
  it.each([
    [0.5, 0],
    [2, 0],
    [4, 0.05],
    [4, 1.2],
    [60, 0.3],
  ])('is reported within ten seconds, with a check every %d s of a dashboard that answers after %d s', (intervalS, lagS) => {
    for (const hangs of [false, true]) {
      const results = watched(intervalS, lagS, hangs)
      expect(results).toHaveLength(GONE.length * MOMENTS_S.length)
      expect(Math.max(...results.map(({ toldS }) => toldS))).toBeLessThan(9.5)
      expect(Math.max(...results.map(({ longestSilenceS }) => longestSilenceS))).toBeLessThan(9)
      expect(Math.max(...results.map(({ early }) => early))).toBe(0)
    }
  })
})
