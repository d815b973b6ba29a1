import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

export const packingKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.' },
  {
    id: 'what-if',
    keys: ['w'],
    title: 'what if',
    help: 'Asks for a gang and shows where it would go, without submitting it; once more, and it is gone.',
    isMeant: ({ queue }) => queue.picture === 'queue',
  },
  {
    id: 'right',
    keys: ['Right'],
    title: 'the next',
    help: 'Of what is tried: the next policy, strategy, or a bundle more, whichever slider is marked.',
    isMeant: ({ queue }) => queue.whatIf !== undefined,
  },
  { id: 'left', keys: ['Left'], help: 'Of what is tried: the one before, or a bundle less.' },
  {
    id: 'slider',
    keys: ['Tab'],
    title: 'other slider',
    help: 'Of what is tried: Left and Right change the next of policy, bundles and strategy.',
    isMeant: ({ queue }) => queue.whatIf !== undefined,
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
    isMeant: ({ ray }) => ray.view.kind === 'up',
  },
  { id: 'down', keys: ['Down', 'j', 'PageDown'], title: 'more hosts', help: 'A row of hosts down.' },
  { id: 'up', keys: ['Up', 'k', 'PageUp'], help: 'A row of hosts up.' },
])

export type PackingCommand = (typeof packingKeys)[number]['id']
