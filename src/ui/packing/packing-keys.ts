import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { themes } from '../theme/theme.ts'
import { areaOf } from '../work-views/panel.ts'
import { lastOffset, queueInput } from './packing-panes.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

type Test = (state: ConsoleState) => boolean

const showsQueue: Test = ({ queue }) => queue.picture === 'queue'
const isTrying: Test = (state) => showsQueue(state) && state.queue.whatIf !== undefined
const isTall: Test = (state) =>
  !showsQueue(state) || lastOffset(queueInput(state.queue, areaOf(state), themes[state.themeName], state.clockMs)) > 0

/** In the order of the footer. */
export const packingKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.' },
  {
    id: 'what-if',
    keys: ['w'],
    title: 'what-if',
    help: 'Ask for a gang and show where it would go, without submitting it. Enter alone takes the last one, or an example.',
    isMeant: (state) => showsQueue(state) && !isTrying(state),
  },
  { id: 'end-what-if', keys: ['w'], title: 'clear what-if', help: 'Clear the what-if.', isMeant: isTrying },
  {
    id: 'right',
    keys: ['Right'],
    title: 'next option',
    help: 'What-if: the next policy or strategy, or one bundle more, whichever is marked.',
    isMeant: isTrying,
  },
  { id: 'left', keys: ['Left'], help: 'What-if: the option before, or one bundle less.' },
  {
    id: 'slider',
    keys: ['Tab'],
    title: 'next slider',
    help: 'What-if: Left and Right change the next of policy, bundles and strategy.',
    isMeant: isTrying,
  },
  { id: 'strategy', keys: ['s'], help: 'What-if: the next strategy.' },
  {
    id: 'policy',
    keys: ['p'],
    help: "What-if: the next policy: the queue's own, Ray's, or one of `muster simulate` for each bundle.",
  },
  { id: 'more', keys: ['+'], help: 'What-if: add a bundle.' },
  { id: 'fewer', keys: ['-'], help: 'What-if: remove a bundle.' },
  {
    id: 'ray',
    keys: ['y'],
    title: 'Ray or queue',
    help: 'Show what Ray has placed, or the queue again. Needs a Ray head that answers.',
    isMeant: (state) => state.ray.view.kind === 'up' || !showsQueue(state),
  },
  {
    id: 'down',
    keys: ['Down', 'j', 'PageDown'],
    title: 'more hosts',
    help: 'Scroll one row of hosts down.',
    isMeant: isTall,
  },
  { id: 'up', keys: ['Up', 'k', 'PageUp'], help: 'Scroll one row of hosts up.' },
])

export type PackingCommand = (typeof packingKeys)[number]['id']
