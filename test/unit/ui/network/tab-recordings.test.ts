/** What the Network tab has recorded, from the newest back. */
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'
import { TabRecordings } from '../../../../src/ui/network/tab-recordings.ts'

let state: string
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'muster-recordings-'))
})
afterEach(() => rmSync(state, { recursive: true }))

const sample = (atMs: number): Sample => ({
  ...{ atMs, cores: 4, cpu: 0, memoryBytes: 8, memoryUsedBytes: 4, swapBytes: 0, swapUsedBytes: 0 },
  ...{ gpus: [], cards: [] },
})
const nameIn = (notice: string): string => / into (\S+) in /.exec(notice)?.[1] ?? ''

it('shows the later of two recordings of one second first', () => {
  const environment = { XDG_STATE_HOME: state }
  using earlier = new TabRecordings(environment)
  using later = new TabRecordings(environment)
  const words = [earlier, later].map((each) => each.toggle(0))
  const first = nameIn(words[0] ?? '')
  expect(words).toEqual([first, `${first}-2`].map((name) => `recording into ${name} in ${state}/muster/recordings`))
  earlier.write('m1', sample(1))
  later.write('m2', sample(1))
  using reader = new TabRecordings(environment)
  expect(reader.showOlder()).toBeUndefined()
  expect(reader.shown?.replay.hosts().map(({ host }) => host)).toEqual(['m2'])
  expect(later.toggle(1)).toBe(`recorded, o replays it: ${first}-2 in ${state}/muster/recordings`)
})

it('keeps nothing of a recording that got no data', () => {
  using own = new TabRecordings({ XDG_STATE_HOME: state })
  own.toggle(0)
  expect(own.toggle(1)).toBe('stopped recording: no data came, nothing was kept')
  expect(readdirSync(join(state, 'muster/recordings'))).toEqual([])
})

it('skips what cannot be replayed, and names it', () => {
  const environment = { XDG_STATE_HOME: state }
  using own = new TabRecordings(environment)
  const old = nameIn(own.toggle(0))
  own.write('m1', sample(1))
  own.toggle(1)
  const damaged = [2000, 4000].map((ms) => {
    const name = nameIn(own.toggle(ms))
    own.write('m1', sample(ms))
    own.toggle(ms)
    writeFileSync(join(state, 'muster/recordings', name, 'network.jsonl'), Buffer.from([0, 255, 10, 1]))
    return name
  })
  using reader = new TabRecordings(environment)
  expect(reader.showOlder()).toBe(`skipped ${damaged[1]}, which has no data (and 1 more)`)
  expect(reader.shown).toMatchObject({ index: 2, count: 3 })
  expect(reader.showOlder()).toBe('no older recording')
  reader.leaveReplay()
  rmSync(join(state, 'muster/recordings', old), { recursive: true })
  expect(reader.showOlder()).toBe(`nothing to replay: ${damaged[1]}, which has no data (and 1 more)`)
})

it('shows nothing that another user could have put there', () => {
  const environment = { XDG_STATE_HOME: state }
  using own = new TabRecordings(environment)
  own.toggle(0)
  using reader = new TabRecordings(environment)
  chmodSync(join(state, 'muster/recordings'), 0o777)
  expect(reader.showOlder()).toBe('no recordings yet: r records')
})
