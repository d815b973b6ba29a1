import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { themes } from '../theme/theme.ts'
import { areaOf } from '../work-views/panel.ts'
import { lastOffset, queueInput } from './packing-panes.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

type Meant = (state: ConsoleState) => boolean

const ofQueue: Meant = ({ queue }) => queue.picture === 'queue'
const isTrying: Meant = (state) => ofQueue(state) && state.queue.whatIf !== undefined
const isTall: Meant = (state) =>
  !ofQueue(state) || lastOffset(queueInput(state.queue, areaOf(state), themes[state.themeName], state.clockMs)) > 0

export const packingKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.' },
  {
    id: 'what-if',
    keys: ['w'],
    title: 'what if',
    help: 'Asks for a gang and shows where it would go, without submitting it; Enter alone takes the last one, or an example.',
    isMeant: (state) => ofQueue(state) && !isTrying(state),
  },
  {
    id: 'end-what-if',
    keys: ['w'],
    title: 'without it',
    help: 'The gang that is tried is gone again.',
    isMeant: isTrying,
  },
  {
    id: 'right',
    keys: ['Right'],
    title: 'the next',
    help: 'Of what is tried: the next policy, strategy, or a bundle more, whichever slider is marked.',
    isMeant: isTrying,
  },
  { id: 'left', keys: ['Left'], help: 'Of what is tried: the one before, or a bundle less.' },
  {
    id: 'slider',
    keys: ['Tab'],
    title: 'other slider',
    help: 'Of what is tried: Left and Right change the next of policy, bundles and strategy.',
    isMeant: isTrying,
  },
  { id: 'strategy', keys: ['s'], help: 'Of what is tried: the next strategy.' },
  {
    id: 'policy',
    keys: ['p'],
    help: "Of what is tried: the next policy. Placed as the queue does it, in Ray's way, or each bundle by a policy of muster simulate.",
  },
  { id: 'more', keys: ['+'], help: 'Of what is tried: one bundle more.' },
  { id: 'fewer', keys: ['-'], help: 'Of what is tried: one bundle less.' },
  {
    id: 'ray',
    keys: ['y'],
    title: 'Ray or queue',
    help: 'What Ray has handed out, or what the queue has; Ray where its head answers.',
    isMeant: (state) => state.ray.view.kind === 'up' || !ofQueue(state),
  },
  { id: 'down', keys: ['Down', 'j', 'PageDown'], title: 'more hosts', help: 'A row of hosts down.', isMeant: isTall },
  { id: 'up', keys: ['Up', 'k', 'PageUp'], help: 'A row of hosts up.' },
])

export type PackingCommand = (typeof packingKeys)[number]['id']
