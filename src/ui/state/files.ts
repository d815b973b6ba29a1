/** Which hosts.yaml of a workspace the tabs Bring-up, Packing and Jobs show. Pure. */
import { noBringUp } from '../bring-up/bring-up-view.ts'
import { FIRST_QUEUE_VIEW } from '../jobs/queue-view.ts'
import type { ConsoleState, FilesState, FileTabsState, Tab } from './console-state.ts'

/** The tabs that are about one hosts.yaml. */
const FILE_TABS: ReadonlySet<Tab> = new Set(['bring-up', 'packing', 'jobs'])

export const isFileTab = (tab: Tab): boolean => FILE_TABS.has(tab)

export const FIRST_FILE: FileTabsState = {
  bringUp: noBringUp,
  ray: { view: { kind: 'none' }, usage: undefined },
  queue: FIRST_QUEUE_VIEW,
}

export const filesOf = (titles: readonly string[]): FilesState => ({ titles, shown: 0, others: new Map() })

export const hasSeveralFiles = ({ files }: Pick<ConsoleState, 'files'>): boolean => files.titles.length > 1

/** Undefined: no more than one file is open. */
export const shownTitle = ({ files }: Pick<ConsoleState, 'files'>): string | undefined => files.titles[files.shown]

const ownState = ({ bringUp, ray, queue }: FileTabsState): FileTabsState => ({ bringUp, ray, queue })

/** What the tabs show of a file, or will show. */
export const fileState = (state: ConsoleState, at: number): FileTabsState =>
  at === state.files.shown ? ownState(state) : (state.files.others.get(at) ?? FIRST_FILE)

/** Changes what the tabs show of a file, even if they show another one now. */
export function changeFile(state: ConsoleState, at: number, patch: Partial<FileTabsState>): Partial<ConsoleState> {
  const { files } = state
  if (at === files.shown) return patch
  if (Object.keys(patch).length === 0) return {}
  const others = new Map(files.others).set(at, { ...fileState(state, at), ...patch })
  return { files: { ...files, others } }
}

/** The tabs show this file; what they show of the one before stays as it is. */
export function showFile(state: ConsoleState, at: number): Partial<ConsoleState> {
  const { files } = state
  if (at === files.shown) return {}
  const others = new Map(files.others).set(files.shown, ownState(state))
  others.delete(at)
  return { ...fileState(state, at), files: { ...files, shown: at, others } }
}
