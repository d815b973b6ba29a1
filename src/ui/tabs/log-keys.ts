import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

export const logKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.' },
  { id: 'up', keys: ['Up', 'k'], help: 'A line up.' },
  { id: 'down', keys: ['Down', 'j'], help: 'A line down.' },
  { id: 'page-up', keys: ['PageUp', 'b'], title: 'older', help: 'A page up.' },
  { id: 'page-down', keys: ['PageDown', 'Space'], title: 'newer', help: 'A page down.' },
])
