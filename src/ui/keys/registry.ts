/**
 * The one table of actions. The leader's keys, the footer, the palette, the help, docs/keys.md and the tests derive from
 * it; what an action does stands in src/ui/console/actions.ts under the same id.
 */
import type { ConsoleState } from '../state/console-state.ts'
import { isLive, isTrouble } from '../state/console-state.ts'

export type ActionSection = 'Receivers' | 'Panes' | 'Looking' | 'Commands' | 'Hosts' | 'Program'

export type ActionSpec = {
  readonly id: string
  /** After the leader, in the notation of key labels: `a`, `Space`, `PageUp`, `Ctrl-l`. */
  readonly keys: readonly string[]
  /** A few words, for the footer and the palette. */
  readonly title: string
  /** A sentence, for the help and docs/keys.md. */
  readonly help: string
  readonly section: ActionSection
  readonly danger?: boolean
  /** In the footer while the leader waits, in this order (80 columns: the first ones). */
  readonly footer?: number
  /** Why it cannot be done now, or undefined. */
  readonly disabledReason?: (state: ConsoleState) => string | undefined
}

const needsHost = (state: ConsoleState): string | undefined =>
  state.focus === undefined ? 'there is no host: + adds one' : undefined
const needsHosts = (state: ConsoleState): string | undefined =>
  state.hosts.size === 0 ? 'there is no host: + adds one' : undefined
const needsReceiver = (state: ConsoleState): string | undefined =>
  state.receivers.size === 0 ? 'nobody receives: a chooses all' : undefined
const needsPages = (state: ConsoleState): string | undefined =>
  state.isZoomed ? 'one host is zoomed: z shows all' : undefined

function define<const T extends readonly ActionSpec[]>(specs: T): T {
  return specs
}

export const actionSpecs = define([
  {
    id: 'receive-toggle',
    keys: ['Space'],
    title: 'toggle this host',
    help: 'Adds the focused host to the receivers, or takes it out. Arrows and Space go on choosing until another key is typed.',
    section: 'Receivers',
    footer: 2,
    disabledReason: needsHost,
  },
  {
    id: 'receive-all',
    keys: ['a'],
    title: 'all receive',
    help: 'Every host receives what you type, also the hosts of other pages.',
    section: 'Receivers',
    footer: 3,
    disabledReason: needsHosts,
  },
  {
    id: 'receive-none',
    keys: ['n'],
    title: 'nobody receives',
    help: 'No host receives: typing does nothing until hosts are chosen.',
    section: 'Receivers',
    footer: 4,
    disabledReason: needsHosts,
  },
  {
    id: 'receive-invert',
    keys: ['i'],
    title: 'invert receivers',
    help: 'Hosts that receive stop, the others start.',
    section: 'Receivers',
    disabledReason: needsHosts,
  },
  {
    id: 'receive-different',
    keys: ['f'],
    title: 'only failed or different',
    help: 'Only hosts whose screen differs from the majority, or that are in trouble, receive.',
    section: 'Receivers',
    disabledReason: needsHosts,
  },
  {
    id: 'receive-group',
    keys: ['g'],
    title: 'a group receives',
    help: 'Chooses the receivers from the groups of hosts.yaml.',
    section: 'Receivers',
    footer: 7,
    disabledReason: needsHosts,
  },
  {
    id: 'receive-expression',
    keys: ['/'],
    title: 'host set receives',
    help: 'Chooses the receivers with a host set: m[1-3], @workers!m2, gpu*.',
    section: 'Receivers',
    footer: 5,
    disabledReason: needsHosts,
  },
  {
    id: 'receive-solo',
    keys: ['s'],
    title: 'this host alone',
    help: 'Only the focused host receives; the same key brings the receivers of before back.',
    section: 'Receivers',
    footer: 6,
    disabledReason: needsHost,
  },
  {
    id: 'focus-left',
    keys: ['Left', 'h'],
    title: 'move left',
    help: 'Focuses the pane to the left.',
    section: 'Panes',
    disabledReason: needsHost,
  },
  {
    id: 'focus-down',
    keys: ['Down', 'j'],
    title: 'move down',
    help: 'Focuses the pane below, on the last row the next page.',
    section: 'Panes',
    disabledReason: needsHost,
  },
  {
    id: 'focus-up',
    keys: ['Up', 'k'],
    title: 'move up',
    help: 'Focuses the pane above, on the first row the page before.',
    section: 'Panes',
    disabledReason: needsHost,
  },
  {
    id: 'focus-right',
    keys: ['Right', 'l'],
    title: 'move right',
    help: 'Focuses the pane to the right.',
    section: 'Panes',
    disabledReason: needsHost,
  },
  {
    id: 'focus-next',
    keys: ['Tab'],
    title: 'next host',
    help: 'Focuses the next host, over all pages.',
    section: 'Panes',
    disabledReason: needsHost,
  },
  {
    id: 'focus-previous',
    keys: ['Shift-Tab'],
    title: 'previous host',
    help: 'Focuses the host before, over all pages.',
    section: 'Panes',
    disabledReason: needsHost,
  },
  {
    id: 'page-next',
    keys: ['PageDown'],
    title: 'next page',
    help: 'Shows the next page of hosts.',
    section: 'Panes',
    disabledReason: needsPages,
  },
  {
    id: 'page-previous',
    keys: ['PageUp'],
    title: 'previous page',
    help: 'Shows the page of hosts before.',
    section: 'Panes',
    disabledReason: needsPages,
  },
  {
    id: 'pane-larger',
    keys: ['>'],
    title: 'larger panes',
    help: 'Makes the smallest pane larger: fewer hosts a page.',
    section: 'Panes',
    disabledReason: needsHosts,
  },
  {
    id: 'pane-smaller',
    keys: ['<'],
    title: 'smaller panes',
    help: 'Makes the smallest pane smaller: more hosts a page.',
    section: 'Panes',
    disabledReason: needsHosts,
  },
  {
    id: 'zoom',
    keys: ['z'],
    title: 'zoom',
    help: 'The focused host fills the screen; the same key brings the others back.',
    section: 'Panes',
    footer: 9,
    disabledReason: needsHost,
  },
  {
    id: 'fold',
    keys: ['='],
    title: 'fold equal panes',
    help: 'Hosts with the same screen share one pane, live; a host that comes to differ gets its own.',
    section: 'Looking',
    footer: 11,
    disabledReason: needsHosts,
  },
  {
    id: 'differences',
    keys: ['d'],
    title: 'who differs',
    help: 'Marks the hosts whose screen differs from the majority, and the lines that do.',
    section: 'Looking',
    footer: 10,
    disabledReason: needsHosts,
  },
  {
    id: 'scroll',
    keys: ['['],
    title: 'scroll and search',
    help: 'Scrolls back in the focused host. Inside: arrows, PageUp, PageDown, g, G move, / searches, n and N go through the hits, Esc returns.',
    section: 'Looking',
    footer: 12,
    disabledReason: needsHost,
  },
  {
    id: 'macro',
    keys: ['m'],
    title: 'insert a macro',
    help: 'Types a text that differs from host to host: %h name, %n number, %u user, %a address, or what a script of yours prints.',
    section: 'Looking',
    disabledReason: needsReceiver,
  },
  {
    id: 'paste',
    keys: ['p'],
    title: 'compose and review',
    help: 'Opens the text that is to be pasted: write or paste several lines, read them, then send them to the receivers.',
    section: 'Looking',
    disabledReason: needsReceiver,
  },
  {
    id: 'record',
    keys: ['v'],
    title: 'record',
    help: 'Records what the receivers print, a file a host (asciicast v2); the same key stops. What you type is never recorded.',
    section: 'Looking',
    disabledReason: needsReceiver,
  },
  {
    id: 'run',
    keys: ['!'],
    title: 'run a command',
    help: 'Runs a command on the receivers, or on @gpus: …, beside their shells; equal output is folded. In the palette: run …',
    section: 'Commands',
    footer: 8,
    disabledReason: needsHosts,
  },
  {
    id: 'copy',
    keys: ['c'],
    title: 'copy files',
    help: 'Copies files of this machine to the receivers, or to on @gpus: …, over the same connections. In the palette: copy …',
    section: 'Commands',
    disabledReason: needsHosts,
  },
  {
    id: 'ray',
    keys: ['y'],
    title: 'Ray',
    help: 'Asks the Ray cluster: status, up, down, watch, submit COMMAND, jobs, logs ID, stop ID. In the palette: ray …',
    section: 'Commands',
    disabledReason: ({ ray }) =>
      ray.view.kind === 'none' ? 'hosts.yaml declares no Ray cluster, or its head is not on the console' : undefined,
  },
  {
    id: 'panel',
    keys: ['o'],
    title: 'run or copy view',
    help: 'Gives the keys to the view of the last run, copy or job of Ray and back to the shells; brings it back when it was closed.',
    section: 'Commands',
  },
  {
    id: 'reconnect',
    keys: ['r'],
    title: 'reconnect this host',
    help: 'Connects the focused host again, or opens a new shell if its shell ended.',
    section: 'Hosts',
    footer: 13,
    disabledReason: (state) => {
      const host = state.focus === undefined ? undefined : state.hosts.get(state.focus)
      if (!host) return needsHost(state)
      return isLive(host) ? `${host.host} is connected` : undefined
    },
  },
  {
    id: 'reconnect-all',
    keys: ['R'],
    title: 'reconnect all lost',
    help: 'Connects every host that is lost, failed or closed, at once.',
    section: 'Hosts',
    disabledReason: (state) =>
      [...state.hosts.values()].some((host) => isTrouble(host) || host.session.kind === 'closed')
        ? undefined
        : 'no host is lost',
  },
  {
    id: 'add-host',
    keys: ['+'],
    title: 'add a host',
    help: 'Adds hosts while everything runs: a name, a host set, user@host:port.',
    section: 'Hosts',
  },
  {
    id: 'close-host',
    keys: ['x'],
    title: 'close this host',
    help: 'Hangs up the focused host and takes it off the console, after a question.',
    section: 'Hosts',
    danger: true,
    disabledReason: needsHost,
  },
  {
    id: 'save-set',
    keys: ['w'],
    title: 'save receivers as a group',
    help: 'Writes the present receivers into hosts.yaml as a group; comments and order of the file stay.',
    section: 'Hosts',
    disabledReason: needsReceiver,
  },
  {
    id: 'tab-shells',
    keys: ['1'],
    title: 'Shells',
    help: 'Shows the shells. On the other tabs, where no key is typed into hosts, the number alone does.',
    section: 'Program',
  },
  {
    id: 'tab-bring-up',
    keys: ['2'],
    title: 'Bring-up',
    help: 'Shows how the hosts stand to what hosts.yaml declares, and brings them up.',
    section: 'Program',
  },
  {
    id: 'tab-network',
    keys: ['3'],
    title: 'Network',
    help: 'Shows the live resources of the hosts: processors, memory, network, disks, NFS, GPUs.',
    section: 'Program',
  },
  {
    id: 'tab-packing',
    keys: ['4'],
    title: 'Packing',
    help: 'Shows which job of the queue is on which host and device, and who waits for room.',
    section: 'Program',
  },
  {
    id: 'tab-jobs',
    keys: ['5'],
    title: 'Jobs',
    help: 'Shows the queue of jobs: their states, why they wait, what they write; holds, releases, cancels, tries again.',
    section: 'Program',
  },
  {
    id: 'tab-log',
    keys: ['6'],
    title: 'Log',
    help: 'Shows what happened: connections, errors, skipped keys.',
    section: 'Program',
  },
  {
    id: 'palette',
    keys: [':'],
    title: 'command palette',
    help: 'Finds any action by name.',
    section: 'Program',
    footer: 14,
  },
  { id: 'help', keys: ['?'], title: 'help', help: 'Shows this table.', section: 'Program', footer: 1 },
  { id: 'redraw', keys: ['Ctrl-l'], title: 'redraw', help: 'Draws the whole screen again.', section: 'Program' },
  { id: 'quit', keys: ['q'], title: 'quit', help: 'Hangs up all hosts and leaves.', section: 'Program', footer: 15 },
])

export type ActionId = (typeof actionSpecs)[number]['id']

export const specOf = (id: ActionId): ActionSpec => actionSpecs.find((spec) => spec.id === id) as ActionSpec

/** Key label → action, with the user's own keys over the table's. */
export type Keymap = ReadonlyMap<string, ActionId>

/** `overrides`: action → its keys, from the preferences; validated there. */
export function createKeymap(overrides: Readonly<Partial<Record<ActionId, readonly string[]>>> = {}): Keymap {
  const keymap = new Map<string, ActionId>()
  for (const spec of actionSpecs)
    for (const key of overrides[spec.id] ?? spec.keys) if (!keymap.has(key)) keymap.set(key, spec.id)
  // A key that the user gave to an action wins over the table's use of it.
  for (const [id, keys] of Object.entries(overrides)) for (const key of keys ?? []) keymap.set(key, id as ActionId)
  return keymap
}

export function keysOf(keymap: Keymap, id: ActionId): string[] {
  return [...keymap].filter(([, action]) => action === id).map(([key]) => key)
}
