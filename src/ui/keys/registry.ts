/**
 * The one table of actions. The leader's keys, the footer, the palette, the help, docs/keys.md and the tests derive from
 * it; what an action does is in src/ui/console/actions.ts under the same id.
 */
import { type ConsoleState, isLive, isTrouble } from '../state/console-state.ts'
import { TABS } from '../tabs/tabs.ts'

export const ACTION_SECTIONS = ['Receivers', 'Panes', 'Screens', 'Commands', 'Hosts', 'Program'] as const

export type ActionSpec = {
  readonly id: string
  /** After the leader, in the notation of key labels: `a`, `Space`, `PageUp`, `Ctrl-l`. */
  readonly keys: readonly string[]
  /** A few words, for the palette. */
  readonly title: string
  /** A sentence, for the help and docs/keys.md. */
  readonly help: string
  /** Why it cannot be done now, or undefined. */
  readonly disabledReason?: (state: ConsoleState) => string | undefined
}

type Reason = (state: ConsoleState) => string | undefined

export const needsHosts: Reason = ({ hosts, leaderLabel }) =>
  hosts.size === 0 ? `no hosts: ${leaderLabel} + adds one` : undefined
export const needsReceiver: Reason = (state) =>
  needsHosts(state) ??
  (state.receivers.size === 0 ? `no receivers: ${state.leaderLabel} a selects all hosts` : undefined)
const needsPages: Reason = ({ isZoomed, leaderLabel }) =>
  isZoomed ? `one host is zoomed: ${leaderLabel} z shows all` : undefined

/** `disabledReason` is for all actions that have none of their own. */
function section<const T extends readonly ActionSpec[]>(
  name: (typeof ACTION_SECTIONS)[number],
  disabledReason: Reason,
  specs: T,
): readonly (ActionSpec & { readonly id: T[number]['id']; readonly section: typeof name })[] {
  return specs.map((spec) => ({ disabledReason, section: name, ...spec }))
}

export const actionSpecs = [
  ...section('Receivers', needsHosts, [
    {
      id: 'receive-toggle',
      keys: ['Space'],
      title: 'toggle this host',
      help: 'Add the focused host to the receivers, or remove it. Then arrows and Space keep choosing until another key is typed.',
    },
    {
      id: 'receive-all',
      keys: ['a'],
      title: 'select all hosts',
      help: 'Send what you type to every host, also on other pages.',
    },
    {
      id: 'receive-none',
      keys: ['n'],
      title: 'select no host',
      help: 'Send what you type to no host, until you select some.',
    },
    {
      id: 'receive-invert',
      keys: ['i'],
      title: 'invert the selection',
      help: 'Swap the hosts that receive your keys and those that do not.',
    },
    {
      id: 'receive-different',
      keys: ['f'],
      title: 'select failed or different hosts',
      help: 'Select only the hosts that are in trouble or whose screen differs from the majority.',
    },
    { id: 'receive-group', keys: ['g'], title: 'select a group', help: 'Select the hosts of a group of hosts.yaml.' },
    {
      id: 'receive-expression',
      keys: ['/'],
      title: 'select a host set',
      help: 'Select the hosts of a host set: m[1-3], @workers!m2, gpu*.',
    },
    {
      id: 'receive-solo',
      keys: ['s'],
      title: 'select this host alone',
      help: 'Select only the focused host; the same key restores the earlier receivers.',
    },
  ]),
  ...section('Panes', needsHosts, [
    { id: 'focus-left', keys: ['Left', 'h'], title: 'move left', help: 'Focus the pane to the left.' },
    {
      id: 'focus-down',
      keys: ['Down', 'j'],
      title: 'move down',
      help: 'Focus the pane below; from the last row, go to the next page.',
    },
    {
      id: 'focus-up',
      keys: ['Up', 'k'],
      title: 'move up',
      help: 'Focus the pane above; from the first row, go to the previous page.',
    },
    { id: 'focus-right', keys: ['Right', 'l'], title: 'move right', help: 'Focus the pane to the right.' },
    { id: 'focus-next', keys: ['Tab'], title: 'next host', help: 'Focus the next host, across pages.' },
    {
      id: 'focus-previous',
      keys: ['Shift-Tab'],
      title: 'previous host',
      help: 'Focus the previous host, across pages.',
    },
    {
      id: 'page-next',
      keys: ['PageDown'],
      title: 'next page',
      help: 'Show the next page of hosts.',
      disabledReason: needsPages,
    },
    {
      id: 'page-previous',
      keys: ['PageUp'],
      title: 'previous page',
      help: 'Show the previous page of hosts.',
      disabledReason: needsPages,
    },
    {
      id: 'pane-larger',
      keys: ['>'],
      title: 'larger panes',
      help: 'Raise the minimum pane size: fewer hosts per page.',
    },
    {
      id: 'pane-smaller',
      keys: ['<'],
      title: 'smaller panes',
      help: 'Lower the minimum pane size: more hosts per page.',
    },
    { id: 'zoom', keys: ['z'], title: 'zoom', help: 'Fill the screen with the focused host; the same key goes back.' },
  ]),
  ...section('Screens', needsHosts, [
    {
      id: 'fold',
      keys: ['='],
      title: 'fold equal panes',
      help: 'Show hosts with equal screens in one pane, live; a host that starts to differ gets its own pane.',
    },
    {
      id: 'differences',
      keys: ['d'],
      title: 'show differences',
      help: 'Mark the hosts whose screen differs from the majority, and the lines that differ.',
    },
    {
      id: 'scroll',
      keys: ['['],
      title: 'scroll and search',
      help: 'Scroll back in the focused host. Inside: arrows, PageUp, PageDown, g and G move, / searches, n and N step through the matches, Esc returns.',
    },
    {
      id: 'macro',
      keys: ['m'],
      title: 'insert a macro',
      help: 'Type a text that differs per host: %h name, %n number, %u user, %a address, or the output of a script of yours.',
      disabledReason: needsReceiver,
    },
    {
      id: 'paste',
      keys: ['p'],
      title: 'compose and review',
      help: 'Write or paste several lines, review them, then send them to the receivers.',
      disabledReason: needsReceiver,
    },
    {
      id: 'record',
      keys: ['v'],
      title: 'record',
      help: 'Record the output of the receivers, one file per host (asciicast v2); the same key stops. What you type is never recorded.',
      disabledReason: needsReceiver,
    },
  ]),
  ...section('Commands', needsHosts, [
    {
      id: 'run',
      keys: ['!'],
      title: 'run a command',
      help: 'Run a command on the receivers, or on @gpus: …, beside their shells; equal output is folded. In the palette: run …',
    },
    {
      id: 'copy',
      keys: ['c'],
      title: 'copy files',
      help: 'Copy local files to the receivers, or to on @gpus: …, over the same connections. In the palette: copy …',
    },
    {
      id: 'ray',
      keys: ['y'],
      title: 'use Ray',
      help: 'Use the Ray cluster: status, up, down, watch, submit COMMAND, jobs, logs ID, stop ID. In the palette: ray …',
      disabledReason: ({ ray }) =>
        ray.view.kind === 'none' ? 'no Ray cluster in hosts.yaml, or its head is not open' : undefined,
    },
    {
      id: 'panel',
      keys: ['o'],
      title: 'run or copy view',
      help: 'Move the keys to the view of the last run, copy or Ray job, and back to the shells; reopen the view if it was closed.',
      disabledReason: () => undefined,
    },
  ]),
  ...section('Hosts', needsHosts, [
    {
      id: 'reconnect',
      keys: ['r'],
      title: 'reconnect this host',
      help: 'Reconnect the focused host, or open a new shell if its shell has ended.',
      disabledReason: (state) => {
        const host = state.hosts.get(state.focus ?? '')
        if (!host) return needsHosts(state)
        return isLive(host) ? `${host.host} is connected` : undefined
      },
    },
    {
      id: 'reconnect-all',
      keys: ['R'],
      title: 'reconnect all lost hosts',
      help: 'Reconnect every host that is lost, failed or closed.',
      disabledReason: ({ hosts }) =>
        [...hosts.values()].some((host) => isTrouble(host) || host.session.kind === 'closed')
          ? undefined
          : 'no host is lost',
    },
    {
      id: 'add-host',
      keys: ['+'],
      title: 'add hosts',
      help: 'Add hosts while everything runs: a name, a host set, user@host:port.',
      disabledReason: () => undefined,
    },
    {
      id: 'close-host',
      keys: ['x'],
      title: 'close this host',
      help: 'Hang up the focused host and remove it from the console; asks first.',
    },
    {
      id: 'save-set',
      keys: ['w'],
      title: 'save the receivers as a group',
      help: 'Write the receivers to hosts.yaml as a group; comments and order of the file are kept.',
      disabledReason: needsReceiver,
    },
  ]),
  ...section(
    'Program',
    () => undefined,
    TABS.map(({ id, key, title, help }) => ({ id: `tab-${id}` as const, keys: [key], title, help })),
  ),
  ...section('Program', () => undefined, [
    { id: 'palette', keys: [':'], title: 'command palette', help: 'Find any action by name.' },
    { id: 'help', keys: ['?'], title: 'help', help: 'Show this table.' },
    { id: 'redraw', keys: ['Ctrl-l'], title: 'redraw', help: 'Redraw the whole screen.' },
    { id: 'quit', keys: ['q'], title: 'quit', help: 'Hang up all hosts and leave.' },
  ]),
]

export type ActionId = (typeof actionSpecs)[number]['id']

/** The footer while the leader waits: as many as fit, in this order. */
export const LEADER_HINTS: readonly (readonly [ActionId, string])[] = [
  ['help', 'help'],
  ['receive-toggle', 'toggle'],
  ['receive-all', 'all'],
  ['receive-none', 'none'],
  ['receive-expression', 'host set'],
  ['receive-solo', 'alone'],
  ['receive-group', 'group'],
  ['run', 'run'],
  ['zoom', 'zoom'],
  ['differences', 'diff'],
  ['fold', 'fold'],
  ['scroll', 'scroll'],
  ['reconnect', 'reconnect'],
  ['palette', 'palette'],
  ['quit', 'quit'],
]

/** Key label → action, with the user's own keys over the table's. */
export type Keymap = ReadonlyMap<string, ActionId>

/** `overrides`: action → its keys, from the preferences, where they are validated. */
export function createKeymap(overrides: Readonly<Partial<Record<ActionId, readonly string[]>>> = {}): Keymap {
  const keymap = new Map<string, ActionId>()
  for (const { id, keys } of actionSpecs)
    for (const key of overrides[id] ?? keys) if (!keymap.has(key)) keymap.set(key, id)
  for (const [id, keys] of Object.entries(overrides)) for (const key of keys ?? []) keymap.set(key, id as ActionId)
  return keymap
}

export function keysOf(keymap: Keymap, id: ActionId): string[] {
  return [...keymap].filter(([, action]) => action === id).map(([key]) => key)
}

export const disabledReasonOf = (id: ActionId, state: ConsoleState): string | undefined =>
  actionSpecs.find((spec) => spec.id === id)?.disabledReason?.(state)
