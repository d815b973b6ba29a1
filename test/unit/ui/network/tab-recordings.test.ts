/** What the Network tab has recorded, from the newest back. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { TabRecordings } from '../../../../src/ui/network/tab-recordings.ts'

let state: string
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'muster-recordings-'))
})
afterEach(() => rmSync(state, { recursive: true }))

it('shows the later of two recordings of one second first', () => {
  const environment = { XDG_STATE_HOME: state }
  using earlier = new TabRecordings(environment)
  using later = new TabRecordings(environment)
  const words = [earlier, later].map((each) => each.toggle(0))
  const [first = '', second] = words.map((text) => / into (\S+) in /.exec(text)?.[1])
  expect(words[0]).toBe(`recording into ${first} in ${join(state, 'muster/recordings')}`)
  expect(second).toBe(`${first}-2`)
  using reader = new TabRecordings(environment)
  expect(reader.showOlder()).toBe(`${join(state, 'muster/recordings', `${first}-2`, 'network.jsonl')} is empty`)
  expect(later.toggle(1)).toBe(`recorded, o replays it: ${first}-2 in ${join(state, 'muster/recordings')}`)
})

it('shows nothing that another user could have put there', () => {
  const environment = { XDG_STATE_HOME: state }
  using own = new TabRecordings(environment)
  own.toggle(0)
  using reader = new TabRecordings(environment)
  chmodSync(join(state, 'muster/recordings'), 0o777)
  expect(reader.showOlder()).toBe('no recordings yet: r records')
})
