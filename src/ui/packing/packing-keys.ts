import { keyTable } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { themes } from '../theme/theme.ts'
import { areaOf } from '../work-views/panel.ts'
import { lastOffset, queueInput } from './packing-panes.ts'

type Test = (state: ConsoleState) => boolean

const showsQueue: Test = ({ queue }) => queue.picture === 'queue'
const isTrying: Test = (state) => showsQueue(state) && state.queue.whatIf !== undefined
const isTall: Test = (state) =>
  !showsQueue(state) || lastOffset(queueInput(state.queue, areaOf(state), themes[state.themeName], state.clockMs)) > 0

const canTry: Test = (state) => showsQueue(state) && !isTrying(state)
const canSwitch: Test = (state) => state.ray.view.kind === 'up' || !showsQueue(state)

export const packingKeys = keyTable<ConsoleState>()(
  ['to-shells', 'Esc q', 'shells', 'Go back to the shells.'],
  [
    'what-if',
    'w',
    'what-if',
    'Show where a gang would be placed, without submitting it. Enter alone repeats the last request.',
    canTry,
  ],
  ['end-what-if', 'w', 'clear what-if', 'Clear the what-if.', isTrying],
  ['right', 'Right', 'next option', 'What-if: select the next option of the marked slider, or add a bundle.', isTrying],
  ['left', 'Left', '', 'What-if: select the previous option, or remove a bundle.'],
  ['slider', 'Tab', 'next slider', 'What-if: mark the next slider: policy, bundles, strategy.', isTrying],
  ['strategy', 's', '', 'What-if: use the next strategy.'],
  ['policy', 'p', '', "What-if: use the next policy: the queue's, Ray's, or one of `muster simulate` for each bundle."],
  ['more', '+', '', 'What-if: add a bundle.'],
  ['fewer', '-', '', 'What-if: remove a bundle.'],
  [
    'ray',
    'y',
    'Ray or queue',
    'Show what Ray has placed, or the queue again. Needs a Ray head that answers.',
    canSwitch,
  ],
  ['down', 'Down j PageDown', 'more hosts', 'Scroll one row of hosts down.', isTall],
  ['up', 'Up k PageUp', '', 'Scroll one row of hosts up.'],
)

export type PackingCommand = (typeof packingKeys)[number]['id']
