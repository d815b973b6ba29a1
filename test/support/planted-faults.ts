/** Loaded by a test into the program. In the Bring-up tab, `X` makes drawing throw, `Y` the key itself, `Z` a later event, `W` many promises. */
import { BringUpPage } from '../../src/ui/bring-up/bring-up-page.ts'

const { panes, handleKey } = BringUpPage.prototype
let isBroken = false

BringUpPage.prototype.panes = function draw(...given) {
  if (isBroken) throw new Error('planted while drawing')
  return panes.apply(this, given)
}

BringUpPage.prototype.handleKey = function handle(label) {
  if (label === 'X') {
    isBroken = !isBroken
    // What makes the page draw again.
    return handleKey.call(this, 'r')
  }
  if (label === 'Y') throw new Error('planted in a key')
  else if (label === 'Z') setImmediate(() => fail('planted in an event'))
  else if (label === 'W') for (let count = 0; count < 20; count += 1) void Promise.reject(new Error('planted often'))
  else return handleKey.call(this, label)
  return true
}

function fail(message: string): never {
  throw new Error(message)
}
