import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

export const packingKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.' },
  { id: 'down', keys: ['Down', 'j', 'PageDown'], title: 'more hosts', help: 'A row of hosts down.' },
  { id: 'up', keys: ['Up', 'k', 'PageUp'], help: 'A row of hosts up.' },
])
