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
    id: 'strategy',
    keys: ['s'],
    title: 'strategy',
    help: 'Of what is tried: the next strategy.',
    isMeant: ({ queue }) => queue.whatIf !== undefined,
  },
  {
    id: 'policy',
    keys: ['p'],
    title: 'policy',
    help: "Of what is tried: placed by Muster, or in Ray's way.",
    isMeant: ({ queue }) => queue.whatIf !== undefined,
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
