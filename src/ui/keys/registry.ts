/**
 * The one table of actions. The leader's keys, the footer, the palette, the help, docs/keys.md and the tests derive from
 * it; what an action does is in src/ui/console/actions.ts under the same id.
 */
import { type ConsoleState, isLive, isTrouble, TABS } from '../state/console-state.ts'
import { shownTitle } from '../state/files.ts'

export const ACTION_SECTIONS = ['Receivers', 'Panes', 'Screens', 'Commands', 'Hosts', 'Program'] as const

export type ActionSpec = {
  readonly id: string
  /** After the leader, in the notation of key labels: `a`, `Space`, `PageUp`, `Ctrl-l`. */
  readonly keys: readonly string[]
  /** A few words, for the palette. */
  readonly title: string
  /** A sentence, for the help and docs/keys.md. */
  readonly help: string
  readonly disabledReason: Reason
}

/** Why an action cannot be done now, or undefined. */
type Reason = (state: ConsoleState) => string | undefined

export const needsHosts: Reason = (state) =>
  state.hosts.size === 0 ? `no hosts: ${commandLabel(state, 'add-host')} adds one` : undefined
export const needsReceiver: Reason = (state) =>
  needsHosts(state) ??
  (state.receivers.size === 0 ? `no receivers: ${commandLabel(state, 'receive-all')} selects all hosts` : undefined)
/** For actions on panes, or that type into hosts: on a tab the user would not see them, and no key may reach a host. */
const inShells =
  (reason: Reason): Reason =>
  (state) =>
    state.tab === 'shells' ? reason(state) : 'only in the shells: press 1'
const needsPane = inShells(needsHosts)
const needsTyping = inShells(needsReceiver)
const needsPages = inShells((state) =>
  state.isZoomed ? `one host is zoomed: ${commandLabel(state, 'zoom')} shows all` : undefined,
)

type ActionRow = readonly [
  id: string,
  /** Separated by blanks. */
  keys: string,
  title: string,
  help: string,
  /** Instead of the one of its section. */
  disabledReason?: Reason,
]

function section<const R extends readonly ActionRow[]>(
  name: (typeof ACTION_SECTIONS)[number],
  sectionReason: Reason,
  rows: R,
): readonly (ActionSpec & { readonly id: R[number][0]; readonly section: typeof name })[] {
  return rows.map(([id, keys, title, help, disabledReason = sectionReason]: ActionRow) => ({
    id,
    keys: keys.split(' '),
    title,
    help,
    disabledReason,
    section: name,
  }))
}

export const actionSpecs = [
  ...section('Receivers', needsHosts, [
    [
      'receive-toggle',
      'Space',
      'toggle this host',
      'Add the focused host to the receivers, or remove it. Then arrows and Space keep choosing, until another key or for 2 s.',
      needsPane,
    ],
    [
      'receive-all',
      'a',
      'select all hosts',
      'Send what you type to every host, also on other pages. Where receivers have new shells that get no keys yet, the first press lets only these in.',
    ],
    ['receive-none', 'n', 'select no host', 'Send what you type to no host, until you select some.'],
    ['receive-invert', 'i', 'invert selection', 'Swap the hosts that receive your keys and those that do not.'],
    [
      'receive-different',
      'f',
      'hosts that differ',
      'Select only the receivers that differ, as the header names them; if none do, those that failed or whose screen differs from the majority. While none receives: of all hosts. The same key restores the earlier receivers.',
      needsPane,
    ],
    ['receive-group', 'g', 'select a group', 'Select the hosts of a group of hosts.yaml.'],
    ['receive-expression', '/', 'select a host set', 'Select the hosts of a host set: m[1-3], @workers!m2, gpu*.'],
    [
      'receive-solo',
      's',
      'this host alone',
      'Type into the focused host alone, or into the hosts of a folded pane; the same key restores the earlier receivers.',
      needsPane,
    ],
  ]),
  ...section('Panes', needsPane, [
    ['focus-left', 'Left h', 'move left', 'Focus the pane to the left.'],
    ['focus-down', 'Down j', 'move down', 'Focus the pane below; from the last row, go to the next page.'],
    ['focus-up', 'Up k', 'move up', 'Focus the pane above; from the first row, go to the previous page.'],
    ['focus-right', 'Right l', 'move right', 'Focus the pane to the right.'],
    ['focus-next', 'Tab', 'next host', 'Focus the next host, across pages.'],
    ['focus-previous', 'Shift-Tab', 'previous host', 'Focus the previous host, across pages.'],
    ['page-next', 'PageDown', 'next page', 'Show the next page of hosts.', needsPages],
    ['page-previous', 'PageUp', 'previous page', 'Show the previous page of hosts.', needsPages],
    ['pane-larger', '>', 'larger panes', 'Raise the minimum pane size: fewer hosts per page.'],
    ['pane-smaller', '<', 'smaller panes', 'Lower the minimum pane size: more hosts per page.'],
    ['zoom', 'z', 'zoom', 'Fill the screen with the focused host; the same key goes back.'],
  ]),
  ...section('Screens', needsPane, [
    [
      'fold',
      '=',
      'fold equal panes',
      'Show hosts with equal screens in one pane, live; a host that starts to differ gets its own pane.',
    ],
    [
      'differences',
      'd',
      'show differences',
      'Mark the hosts whose screen differs from the majority, and the lines that differ.',
    ],
    [
      'scroll',
      '[',
      'scroll and search',
      'Scroll back in the focused host. Inside: arrows, PageUp, PageDown, g and G move, / searches, n and N step through the matches, Esc returns.',
    ],
    ['login-output', 'L', 'show login output', 'Show what the hosts printed before their first prompt.'],
    [
      'macro',
      'm',
      'insert a macro',
      'Type a text that differs per host: %h name, %n position in hosts.yaml, %u user, %a address, or the output of your own script.',
      needsTyping,
    ],
    [
      'paste',
      'p',
      'compose and review',
      'Write or paste several lines, review them, then send them to the receivers as a paste: most shells run it only after your Enter.',
      needsTyping,
    ],
    [
      'record',
      'v',
      'record',
      'Record what the receivers show and print from now on, one file per host (asciicast v2); the same key stops. What you type is never recorded.',
      (state) => ([...state.hosts.values()].some(({ isRecording }) => isRecording) ? undefined : needsReceiver(state)),
    ],
  ]),
  ...section('Commands', needsHosts, [
    [
      'run',
      '!',
      'run a command',
      'Run a command on the receivers, or on other hosts (`on @gpus: COMMAND`), beside their shells; equal output is folded. In the palette: run …',
    ],
    [
      'copy',
      'c',
      'copy files',
      'Copy local files to the receivers, or to other hosts (`on @gpus: FILES DEST`), over the same connections. In the palette: copy …',
    ],
    [
      'ray',
      'y',
      'use Ray',
      'Use the Ray cluster: status, up, down, watch, submit COMMAND, jobs, logs ID, stop ID. In the palette: ray …',
      (state) =>
        state.ray.view.kind === 'none'
          ? `no Ray cluster in ${shownTitle(state) ?? 'hosts.yaml'}, or its head is not open`
          : undefined,
    ],
    [
      'forwards',
      't',
      'port forwards',
      'List the port forwards, add and close them: ports of hosts on this machine, and back; dashboards by name. In the palette: forward …',
    ],
    [
      'panel',
      'o',
      'run or copy view',
      'Move the keys to the view of the last run, copy or Ray job, and back to the shells; reopen the view if it was closed.',
      () => undefined,
    ],
    [
      'report',
      'e',
      'session report',
      'Write a session report as Markdown and HTML, and copy the Markdown to the clipboard: what was typed or run, on which hosts, their output, and which differed; passwords typed without echo are left out.',
      () => undefined,
    ],
  ]),
  ...section('Hosts', needsHosts, [
    [
      'reconnect',
      'r',
      'reconnect',
      'Reconnect the focused host, or open a new shell if its shell has ended.',
      inShells((state) => {
        const host = state.hosts.get(state.focus ?? '')
        if (!host) return needsHosts(state)
        return isLive(host) ? `${host.host} is connected` : undefined
      }),
    ],
    [
      'reconnect-all',
      'R',
      'reconnect all',
      'Reconnect every host that is lost, failed or closed.',
      ({ hosts }) =>
        [...hosts.values()].some((host) => isTrouble(host) || host.session.kind === 'closed')
          ? undefined
          : 'no host is lost',
    ],
    [
      'add-host',
      '+',
      'add hosts',
      'Add hosts while everything runs: a name, a host set, user@host:port. Enter alone reopens the host that was closed last.',
      () => undefined,
    ],
    [
      'close-host',
      'x',
      'close this host',
      'Disconnect the focused host and remove it from the console; asks first.',
      needsPane,
    ],
    [
      'save-set',
      'w',
      'save as a group',
      'Write the receivers to hosts.yaml as a group; comments and order of the file are kept.',
      needsReceiver,
    ],
  ]),
  ...section(
    'Program',
    () => undefined,
    TABS.map(({ id, key, title, help }) => [`tab-${id}`, key, title, help] as const),
  ),
  ...section('Program', () => undefined, [
    ['palette', ':', 'command palette', 'Find any action by name; a key of another tab is shown on its tab.'],
    ['help', '?', 'help', 'Show all keys.'],
    ['settings', ',', 'settings', 'Show the settings and the file that changes them.'],
    ['redraw', 'Ctrl-l', 'redraw', 'Redraw the whole screen.'],
    [
      'detach',
      'D',
      'detach',
      'Leave the console without ending it: shells, runs and copies continue, and `muster attach` brings it back.',
    ],
    ['quit', 'q', 'quit', 'Disconnect all hosts and quit; asks first if programs are running.'],
  ]),
]

export type ActionId = (typeof actionSpecs)[number]['id']

/** What an action is called in other programs: the palette finds it by these words, too. */
export const SYNONYMS: Readonly<Partial<Record<ActionId, string>>> = {
  'receive-toggle': 'mark pick include exclude',
  'receive-all': 'broadcast synchronize everything everyone',
  'receive-none': 'deselect mute nothing',
  'receive-different': 'diverging outliers odd broken',
  'receive-group': 'tag role',
  'receive-expression': 'filter target pattern',
  'receive-solo': 'solo only single one isolate',
  'page-next': 'forward screen',
  'page-previous': 'back screen',
  'pane-larger': 'split layout bigger grow resize fewer columns',
  'pane-smaller': 'split layout shrink resize more columns',
  zoom: 'fullscreen maximize enlarge',
  fold: 'group merge dedupe collapse',
  differences: 'diff compare',
  scroll: 'history scrollback find copy-mode log page',
  'login-output': 'motd greeting banner welcome last reboot',
  report: 'transcript summary protocol history export markdown html save',
  macro: 'template snippet variable number',
  paste: 'multiline editor clipboard script',
  record: 'asciicast log capture save output',
  run: 'exec execute command ssh',
  copy: 'scp rsync upload push send file transfer',
  forwards: 'tunnel socks proxy dashboard browser url ray optuna tensorboard jupyter',
  panel: 'output result',
  reconnect: 'retry respawn restart reopen',
  'reconnect-all': 'retry respawn restart',
  'add-host': 'connect open new host',
  'close-host': 'disconnect kill remove',
  'save-set': 'store cluster write',
  'tab-shells': 'terminals panes',
  'tab-bring-up': 'provision install setup apply plan drift',
  'tab-network': 'monitor top htop cpu gpu memory bandwidth iperf',
  'tab-packing': 'placement gpu scheduler what-if',
  'tab-jobs': 'queue squeue kubectl k8s slurm study trial sweep optuna stack',
  'tab-log': 'messages events errors',
  palette: 'find search command',
  help: 'keys shortcuts bindings cheatsheet manual',
  settings: 'prefix columns preferences options configuration config theme colours colors mouse leader keys',
  redraw: 'refresh repaint clear',
  detach: 'tmux screen background keep attach',
  quit: 'exit close leave bye logout',
}

/** The same for the keys of tabs and views. */
export const KEY_SYNONYMS: Readonly<Record<string, string>> = {
  cancel: 'stop kill abort end scancel',
  hold: 'pause suspend',
  release: 'resume continue',
  retry: 'rerun requeue again',
  filter: 'states',
  'stop-study': 'cancel end',
  stop: 'cancel kill abort',
  'table-filter': 'search find',
  again: 'reload',
  mesh: 'mesh iperf iperf3 speed throughput latency ping',
  pair: 'iperf iperf3 speed throughput',
  write: 'csv svg export save',
}

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

/** Key label → id of its action, with the user's own keys over the table's. */
export type Keymap = ConsoleState['keymap']

/** `overrides`: action → its keys, from the preferences, where they are validated. */
export function createKeymap(overrides: Readonly<Partial<Record<ActionId, readonly string[]>>> = {}): Keymap {
  const keymap = new Map<string, string>()
  for (const { id, keys } of actionSpecs)
    for (const key of overrides[id] ?? keys) if (!keymap.has(key)) keymap.set(key, id)
  for (const [id, keys] of Object.entries(overrides)) for (const key of keys ?? []) keymap.set(key, id)
  return keymap
}

export function keysOf(keymap: Keymap, id: ActionId): string[] {
  return [...keymap].filter(([, action]) => action === id).map(([key]) => key)
}

export const actionOf = (keymap: Keymap, label: string): ActionId | undefined =>
  actionSpecs.find(({ id }) => id === keymap.get(label))?.id

/** How an action is reached: `Ctrl-] q`, or by its name in the palette if another action has its key. */
export function commandLabel({ leaderLabel, keymap }: CommandKeys, id: ActionId): string {
  const [key] = keysOf(keymap, id)
  if (key !== undefined) return `${leaderLabel} ${key}`
  const [palette = ''] = keysOf(keymap, 'palette')
  return `${leaderLabel} ${palette} ${actionSpecs.find((spec) => spec.id === id)?.title ?? id}`
}

/** Of the state, what names the keys of commands. */
export type CommandKeys = Pick<ConsoleState, 'leaderLabel' | 'keymap'>

export const disabledReasonOf = (id: ActionId, state: ConsoleState): string | undefined =>
  actionSpecs.find((spec) => spec.id === id)?.disabledReason(state)
