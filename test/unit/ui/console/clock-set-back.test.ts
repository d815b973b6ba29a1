/** A pause ends when the clock of this machine is set back in the middle of it, so that nothing stands still for an hour. */
import { describe, expect, it } from 'vitest'
import { Emitter } from '../../../../src/base/emitter.ts'
import { ThrottledChrome } from '../../../../src/ui/console/chrome-source.ts'
import type { ConsoleApp } from '../../../../src/ui/console/console-app.ts'
import { Dialogs } from '../../../../src/ui/console/dialogs.ts'
import { PromptHistory } from '../../../../src/ui/dialogs/prompt-history.ts'
import { ThrottledAction } from '../../../../src/ui/rows/throttled-action.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const HOUR_MS = 3_600_000

describe('when the clock is set back by an hour', () => {
  it('a throttled action still runs within its interval', () => {
    const clock = new ManualClock()
    let runs = 0
    const action = new ThrottledAction({ clock, everyMs: 100 }, () => runs++)
    action.now()
    clock.set(-HOUR_MS)
    action.soon()
    clock.advance(100)
    expect(runs).toBe(2)
  })

  it('the chrome still shows the latest state', () => {
    const clock = new ManualClock()
    const changes = new Emitter<void>()
    const app = { state: {}, store: { on: (listener: () => void) => changes.on(listener) } }
    using chrome = new ThrottledChrome(app as unknown as ConsoleApp, clock)
    for (const setByMs of [0, -HOUR_MS]) {
      clock.set(setByMs)
      app.state = {}
      changes.emit()
      clock.advance(100)
      expect(chrome.isIdle).toBe(true)
    }
  })

  it('a question still opens once the keyboard is quiet', () => {
    const clock = new ManualClock()
    using dialogs = new Dialogs({
      clock,
      history: new PromptHistory(),
      lookUp: async () => [],
      isBusy: () => false,
      onChange: () => {},
    })
    dialogs.noteKey()
    clock.set(-HOUR_MS)
    dialogs.openWhenQuiet(() => ({ view: () => ({ id: 'q', title: '', lines: [], keys: [] }), key() {}, cancel() {} }))
    clock.advance(800)
    expect(dialogs.isAsking).toBe(true)
  })
})
