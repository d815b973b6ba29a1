/** What the console knows and shows (hosts, focus, receivers, messages), its tabs, and what a page is and may use of it. */
import type { Clock } from '../../base/clock.ts'
import type { FixedMap } from '../../base/fixed-map.ts'
import type { ShellState } from '../../ssh/create-fleet.ts'
import type { SessionState } from '../../ssh/session-transition.ts'
import type { BringUpView } from '../bring-up/bring-up-view.ts'
import type { PaneView, Rect, Theme, ThemeName } from '../compositor/scene.ts'
import type { DialogFactory, DialogView } from '../dialogs/dialog.ts'
import type { QueueView } from '../jobs/queue-view.ts'
import type { NetworkState } from '../network/network-view.ts'
import type { WatchState } from '../network/watch-view.ts'
import type { RayStatus } from '../ray/ray-view.ts'
import type { RunEntry } from '../report/session-log.ts'
import { FIRST_TABLE_VIEW, type TableView, type TableViews } from '../rows/table-view.ts'
import type { Panel } from '../work-views/panel.ts'

/** The tabs, in the order of the header. `key`: shows the tab after the leader, and alone where no typed key goes to a host. `help`: for the key's action. */
export const TABS = [
  {
    id: 'shells',
    key: '1',
    title: 'Shells',
    help: 'Show the shells; beside a run or a copy, type into them again. On other tabs, the number needs no leader.',
  },
  { id: 'bring-up', key: '2', title: 'Bring-up', help: 'Compare the hosts with hosts.yaml, and bring them up.' },
  { id: 'network', key: '3', title: 'Network', help: 'Show CPU, memory, network, disks, NFS and GPUs live.' },
  { id: 'packing', key: '4', title: 'Packing', help: 'Show which jobs run on which host and device, and which wait.' },
  {
    id: 'jobs',
    key: '5',
    title: 'Jobs',
    help: 'Show the job queue with its logs; hold, release, cancel and retry jobs.',
  },
  { id: 'log', key: '6', title: 'Log', help: 'Show what happened: connections, errors, skipped keys.' },
] as const

export type Tab = (typeof TABS)[number]['id']
export type PageTab = Exclude<Tab, 'shells'>

export const PAGE_TABS = TABS.filter((tab) => tab.id !== 'shells')

export const titleOf = (tab: Tab): string => TABS.find(({ id }) => id === tab)?.title ?? ''

/** Undefined: the key shows no tab. */
export const tabOfKey = (label: string): Tab | undefined => TABS.find(({ key }) => key === label)?.id

/** Actions that need no leader where no typed key goes to a host. */
export const BARE_ACTIONS = { '?': 'help', ':': 'palette' } as const
export const isBareAction = (label: string): label is keyof typeof BARE_ACTIONS => Object.hasOwn(BARE_ACTIONS, label)

export type HostState = {
  readonly host: string
  /** In its own file: `%h`. */
  readonly ownName: string
  /** Its place in the inventory, from 1: `%n`. */
  readonly number: number
  /** Empty for this machine itself. */
  readonly address: string
  readonly port: number
  readonly user: string
  readonly session: SessionState
  readonly shell: ShellState
  /** Why the last connection was lost; kept until the host is connected again. */
  readonly lossReason: string | undefined
  /** Typed bytes that wait because the host does not read them. */
  readonly queuedBytes: number
  /** Output since its page was last on the screen. */
  readonly hasNews: boolean
  /** Lines printed before the first prompt that are out of view; 0 after the first key. */
  readonly loginLines: number
  readonly bellAtMs: number | undefined
  /** Its screen differs from the majority's; only set while differences or folding are shown. */
  readonly isDifferent: boolean
  readonly isRecording: boolean
  /** Its shell has not seen the keys that the others got, and gets none beside them (`late-shells.ts`). */
  readonly isLate: boolean
  /** It is late, but its shell is not new: it alone did not get what was sent to the others. */
  readonly hasMissed: boolean
}

export type Mode =
  /** Keys go to the receivers. */
  | { readonly kind: 'typing' }
  /** The next key is a command. `isTyping`: keys went to the receivers before it. */
  | { readonly kind: 'leader'; readonly isTyping: boolean; readonly showsKeys?: boolean }
  /** Arrows and Space select panes; any other key is typed again. */
  | { readonly kind: 'select' }
  | {
      readonly kind: 'scroll'
      readonly host: string
      readonly needle: string
      readonly hit: number
      readonly hits: number
    }
  | { readonly kind: 'dialog'; readonly dialog: DialogView }
  /** Keys edit the filter of this table. */
  | { readonly kind: 'filter'; readonly table: string }

export type NoticeTone = 'info' | 'warning' | 'error'
export type Notice = {
  readonly text: string
  readonly tone: NoticeTone
  readonly atMs: number
  /** What it is about: the last key, which did nothing, or who receives. It is out of date with the next key, or when other hosts receive. */
  readonly about?: 'key' | 'receivers' | undefined
  /** It was too long for the screen, so the Log has it. */
  readonly isInLog?: boolean
}
export type LogEntry = {
  readonly atMs: number
  readonly host: string
  readonly text: string
  readonly tone: NoticeTone
  /** Why the host is away, while it is. */
  readonly away?: string
}

/** What the tabs Bring-up, Packing and Jobs show of one hosts.yaml. */
export type FileTabsState = {
  readonly bringUp: BringUpView
  readonly ray: RayStatus
  /** The tabs Packing and Jobs. */
  readonly queue: QueueView
}

/** A workspace of several hosts.yaml. */
export type FilesState = {
  /** In the order of the command line; empty unless several are open. */
  readonly titles: readonly string[]
  /** The place of the one that is shown. */
  readonly shown: number
  /** By place: those that are not shown, once they have something to show. */
  readonly others: ReadonlyMap<number, FileTabsState>
}

/** `FileTabsState`: of the file that is shown. */
export type ConsoleState = FileTabsState & {
  readonly files: FilesState
  readonly cluster: string
  readonly columns: number
  readonly rows: number
  readonly tab: Tab
  /** Where Esc goes back to: the tab from which a row led here. */
  readonly cameFrom?: Tab | undefined
  /** In the order of the inventory. */
  readonly hosts: FixedMap<string, HostState>
  readonly groups: ReadonlyMap<string, readonly string[]>
  readonly receivers: ReadonlySet<string>
  /** Receivers before one host was selected alone. */
  readonly receiversBeforeSolo: ReadonlySet<string> | undefined
  readonly focus: string | undefined
  readonly page: number
  readonly isZoomed: boolean
  /** The smallest pane, frame included. */
  readonly paneSize: { readonly columns: number; readonly rows: number }
  readonly isFolded: boolean
  readonly showsDifferences: boolean
  /** Hosts with equal screens, largest group first; empty while neither folding nor differences are on. */
  readonly equalGroups: readonly (readonly string[])[]
  /** A question of a host waits until nothing is typed for a moment. */
  readonly hasWaitingQuestion: boolean
  /**
   * A letter gave the keys back to the shells a moment ago, or a command did nothing: what is typed may be meant for that, and is not
   * sent; once a letter was dropped, nothing until its line is over.
   */
  readonly held: 'moment' | 'line' | undefined
  /**
   * No shell has the beginning of the line that is typed: the rest goes to no late shell. `shell`: none has what the last one ran.
   */
  readonly lostInput: 'line' | 'shell' | undefined
  /** Receivers that differ from most: another program, another prompt, no shell. */
  readonly diverged: readonly string[]
  /** No group of receivers is the largest: `diverged` are outside the first of the equally large ones. */
  readonly hasTie: boolean
  readonly mode: Mode
  /** A run or a copy beside the shells. */
  readonly panel: Panel | undefined
  /** The Network tab. */
  readonly network: NetworkState
  readonly watch: WatchState
  /** How tables are filtered and sorted. */
  readonly tables: TableViews
  readonly notice: Notice | undefined
  readonly log: readonly LogEntry[]
  /** The first row of the log in view; undefined: its end stays in view. */
  readonly logOffset: number | undefined
  readonly themeName: ThemeName
  readonly leaderLabel: string
  /** Key label → id of its action, with the user's own keys: see keys/registry.ts. */
  readonly keymap: ReadonlyMap<string, string>
  /** Ticks once a second while something on the screen counts. */
  readonly clockMs: number
}

export const LOG_LIMIT = 2000

/** It has a shell. */
export function isLive(host: HostState): boolean {
  return host.session.kind === 'ready' && host.shell.kind === 'open'
}

/** Another receiver gets what is typed. */
export const getsKeysBeside = ({ hosts, receivers }: ConsoleState, host?: string): boolean =>
  [...receivers].some((name) => {
    const known = hosts.get(name)
    return name !== host && known !== undefined && isLive(known) && !known.isLate
  })

/** A host that is being connected again stays in trouble until it is up. */
export function isTrouble({ session, shell }: HostState): boolean {
  const { kind } = session
  const isTriedAgain = kind !== 'ready' && 'attempt' in session && session.attempt > 1
  return kind === 'lost' || kind === 'failed' || isTriedAgain || kind === 'waiting' || shell.kind === 'ended'
}

export function receiverList(state: ConsoleState): string[] {
  return [...state.hosts.keys()].filter((host) => state.receivers.has(host))
}

/** The receivers that get what is typed. */
export const liveReceivers = (state: ConsoleState): string[] =>
  receiverList(state).filter((host) => getsKeys(state, host))

export function getsKeys(state: ConsoleState, host: string): boolean {
  const known = state.hosts.get(host)
  return known !== undefined && state.receivers.has(host) && isLive(known) && !known.isLate
}

/** The receivers whose new shell gets no keys yet. */
export const lateReceivers = (state: ConsoleState): string[] =>
  receiverList(state).filter((host) => {
    const known = state.hosts.get(host)
    return known !== undefined && isLive(known) && known.isLate
  })

/** How the user filters and sorts this table. */
export const tableView = ({ tables, mode }: ConsoleState, id: string): TableView => ({
  ...(tables.get(id) ?? FIRST_TABLE_VIEW),
  isTyping: mode.kind === 'filter' && mode.table === id,
})

type Change = Partial<ConsoleState>

/** A table with other content is shown whole. */
export function forgetTable({ tables }: ConsoleState, id: string): Change {
  return { tables: new Map([...tables].filter(([known]) => known !== id)) }
}

/** Every row is shown, in the order that the user chose. */
export function unfilterTable({ tables }: ConsoleState, id: string): Change {
  const before = tables.get(id)
  return before === undefined ? {} : { tables: new Map(tables).set(id, { ...before, filter: FIRST_TABLE_VIEW.filter }) }
}

const known = (state: ConsoleState, hosts: Iterable<string>): Set<string> =>
  new Set([...hosts].filter((host) => state.hosts.has(host)))

export function setReceivers(
  state: ConsoleState,
  hosts: Iterable<string>,
): Pick<ConsoleState, 'receivers' | 'receiversBeforeSolo'> {
  return { receivers: known(state, hosts), receiversBeforeSolo: undefined }
}

/** The user names hosts that are to receive: the focused pane is one of them, so that what is typed next is in view. */
export function selectHosts(state: ConsoleState, hosts: Iterable<string>): Change {
  const change = setReceivers(state, hosts)
  const { focus } = state
  if (focus !== undefined && change.receivers.has(focus)) return change
  return { ...change, focus: [...state.hosts.keys()].find((host) => change.receivers.has(host)) ?? focus }
}

export const allReceive = (state: ConsoleState): Change => setReceivers(state, state.hosts.keys())

export const noneReceive = (state: ConsoleState): Change => setReceivers(state, [])

export function invertReceivers(state: ConsoleState): Change {
  return setReceivers(
    state,
    [...state.hosts.keys()].filter((host) => !state.receivers.has(host)),
  )
}

/** Toggles a pane of several hosts as one: all receive unless all did. */
export function toggleReceivers(state: ConsoleState, hosts: readonly string[]): Change {
  const receivers = new Set(state.receivers)
  const isOn = hosts.every((host) => receivers.has(host))
  for (const host of hosts) {
    if (isOn) receivers.delete(host)
    else receivers.add(host)
  }
  return setReceivers(state, receivers)
}

/** The hosts of the focused pane: one, or all that are folded into it. */
export function focusedHosts({ focus, isFolded, equalGroups }: ConsoleState): readonly string[] {
  if (focus === undefined) return []
  return (isFolded ? equalGroups.find((group) => group.includes(focus)) : undefined) ?? [focus]
}

/** Selects these hosts alone, or restores the earlier receivers if they are alone already. */
export function toggleSolo(state: ConsoleState, hosts: readonly string[]): Change {
  const { receivers, receiversBeforeSolo: before } = state
  // The host that received alone may be gone.
  if (areReceivers(state, hosts) || (before !== undefined && receivers.size === 0))
    return setReceivers(state, before ?? receivers)
  // Some of the receivers, or hosts that already were the receivers before others were selected alone.
  const isPart = hosts.length < receivers.size && hosts.every((host) => receivers.has(host))
  const isNew = before === undefined || isPart || areReceivers({ receivers: before }, hosts)
  return { receivers: known(state, hosts), receiversBeforeSolo: isNew ? receivers : before }
}

/** These hosts and no others. */
export const areReceivers = ({ receivers }: Pick<ConsoleState, 'receivers'>, hosts: readonly string[]): boolean =>
  receivers.size === hosts.length && hosts.every((host) => receivers.has(host))

/** These hosts were selected alone for a moment. */
export const isSolo = (state: ConsoleState, hosts: readonly string[]): boolean =>
  state.receiversBeforeSolo !== undefined && areReceivers(state, hosts)

/** Hosts whose screen is not the majority's; all of them when no two are equal. */
export const outsideMajority = (equalGroups: readonly (readonly string[])[]): ReadonlySet<string> =>
  new Set((equalGroups.length > 1 && equalGroups[0]?.length === 1 ? equalGroups : equalGroups.slice(1)).flat())

export type Different = {
  readonly names: readonly string[]
  /** The hosts from which they differ, if another group is as large as theirs. */
  readonly tiedWith: readonly string[]
}

/**
 * The receivers that differ; if there are none, those in trouble and those whose screen differs from the majority. Looks at all hosts
 * only while there are no receivers, so that a host that was left out gets no keys.
 */
export function differentHosts(state: ConsoleState, equalGroups: () => readonly (readonly string[])[]): Different {
  const { hosts, receivers, hasTie } = state
  const asked = [...hosts.values()].filter(({ host }) => receivers.size === 0 || receivers.has(host))
  const select = (isDifferent: (host: HostState) => boolean, isTie: boolean): Different => ({
    names: asked.filter(isDifferent).map(({ host }) => host),
    tiedWith: isTie ? asked.filter((host) => !isDifferent(host)).map(({ host }) => host) : [],
  })
  const diverged = new Set(state.diverged.filter((host) => receivers.has(host)))
  if (diverged.size > 0 && !state.showsDifferences && !state.isFolded)
    return select(({ host }) => diverged.has(host), hasTie)
  const groups = equalGroups()
  const different = outsideMajority(groups)
  const [first = [], second] = groups
  const found = select((host) => different.has(host.host) || isTrouble(host), first.length === second?.length)
  return { ...found, tiedWith: found.tiedWith.filter((host) => first.includes(host)) }
}

/** Receivers that were selected because they differ. */
const selectedDifferent = new WeakSet<ConsoleState['receivers']>()

/** Selects these hosts for a moment, because they differ. */
export function selectDifferent(state: ConsoleState, hosts: readonly string[]): Change {
  const receivers = new Set(hosts)
  selectedDifferent.add(receivers)
  return { receivers, receiversBeforeSolo: state.receiversBeforeSolo ?? state.receivers, focus: hosts[0] }
}

/** The receivers before those that differ were selected; undefined: they are not selected. */
export const receiversBeforeDifferent = ({ receivers, receiversBeforeSolo }: ConsoleState) =>
  selectedDifferent.has(receivers) ? receiversBeforeSolo : undefined

/** The receivers that the header names as different; empty if all or none of them are. */
export function divergedReceivers({ diverged, receivers }: ConsoleState): readonly string[] {
  const hosts = diverged.filter((host) => receivers.has(host))
  return hosts.length === receivers.size ? [] : hosts
}

/** The content of a tab other than the shells. While it is shown, no typed key goes to a host. */
export interface Page extends Disposable {
  /** Its tab was selected, even if it was shown already. */
  open(): void
  /** The panes between header and footer. */
  panes(area: Rect, theme: Theme): readonly PaneView[]
  /** False: the key does nothing here. */
  handleKey(label: string): boolean
  /** The key agrees to what the page asks. */
  isAnswer?(label: string): boolean
  /** Scrolls by rows, down if positive: the mouse wheel. */
  scrollBy(rows: number): void
  /** The filter of its table is about to be cleared: the row that is selected with it stays selected. */
  keepRow?(): void
  /** The user filters or sorts its table: another row may be selected. */
  onTableChange?(): void
  /** hosts.yaml was read again. */
  onDeclared?(): void
  /** Nothing but the hosts is about to change what is shown. */
  readonly isIdle: boolean
  /** What quitting the console would end. */
  readonly busy: readonly Busy[]
}

/** Something that runs: a few words, and on which hosts. */
/** `endsWith`: where it ends on one host, it ends on all of these. */
export type Busy = { readonly title: string; readonly hosts: readonly string[]; readonly endsWith?: readonly string[] }

/** What a page, and everything else that works beside the shells, may use of the console. */
export interface PageContext {
  readonly state: ConsoleState
  readonly clock: Clock
  /** Changes the state; the screen follows. */
  change(patch: (state: ConsoleState) => Partial<ConsoleState>): void
  /** Reads hosts.yaml again if it has changed; absent: there is none. Resolves with the reason if it cannot be used. */
  readFiles?: (() => Promise<string | undefined>) | undefined
  /** A message in the footer for a few seconds. */
  notice(message: string, tone?: NoticeTone, about?: Notice['about']): void
  /** A line on the tab Log; `host` is empty when it is about no single host. */
  log(host: string, message: string, tone?: NoticeTone): void
  showTab(tab: Tab): void
  /** Copies text to the clipboard of the user's terminal, and says so. False: it could not. `where`: `from m2`. */
  copyText(text: string, where: string): boolean
  /** For the session report: a run or a copy that has ended. */
  noteRun(run: Omit<RunEntry, 'kind'>): void
  /** Opens a dialog at once, in place of one that the user had open. */
  openDialog(make: DialogFactory): void
}
