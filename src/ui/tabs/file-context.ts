/** The console as the pages about one hosts.yaml of a workspace see it: as if no other file were open. */
import type { Clock } from '../../base/clock.ts'
import { FixedMap } from '../../base/fixed-map.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { DialogFactory } from '../dialogs/dialog.ts'
import type { ConsoleState, Notice, NoticeTone, PageContext, Tab } from '../state/console-state.ts'
import { changeFile, fileState, isFileTab, showFile } from '../state/files.ts'

/** What is declared now; other objects after the file has changed. */
export interface OpenFile {
  readonly title: string
  /** The console's names of its hosts, by those in the file. */
  readonly names: ReadonlyMap<string, string>
  readonly inventory: Pick<Inventory, 'groups'>
}

export const nameInConsole = ({ names }: OpenFile, host: string): string => names.get(host) ?? host

export class FileContext implements PageContext {
  readonly file: OpenFile
  readonly #context: PageContext
  readonly #at: number
  #hosts: { readonly of: readonly unknown[]; readonly named: ConsoleState['hosts'] } | undefined
  #seen: { readonly of: readonly unknown[]; readonly state: ConsoleState } | undefined

  /** `at`: the place of the file in the workspace. */
  constructor(context: PageContext, file: OpenFile, at: number) {
    this.#context = context
    this.file = file
    this.#at = at
  }

  get clock(): Clock {
    return this.#context.clock
  }

  /** With the hosts of the file, by its names for them. While another file is shown, none of its tabs is. */
  get state(): ConsoleState {
    const { state } = this.#context
    const { names, inventory } = this.file
    const of = [state, names, inventory]
    if (this.#seen === undefined || of.some((value, index) => value !== this.#seen?.of[index])) {
      const tab = !this.#isShown && isFileTab(state.tab) ? 'shells' : state.tab
      const own = { ...fileState(state, this.#at), tab, hosts: this.#named(state.hosts), groups: inventory.groups }
      this.#seen = { of, state: { ...state, ...own } }
    }
    return this.#seen.state
  }

  #named(hosts: ConsoleState['hosts']): ConsoleState['hosts'] {
    const { names } = this.file
    const of = [hosts, names]
    if (this.#hosts === undefined || of.some((value, index) => value !== this.#hosts?.of[index])) {
      const named = [...names].flatMap(([host, name]) => {
        const known = hosts.get(name)
        return known === undefined ? [] : [[host, { ...known, host }] as const]
      })
      this.#hosts = { of, named: FixedMap.of(named) }
    }
    return this.#hosts.named
  }

  change(patch: (state: ConsoleState) => Partial<ConsoleState>): void {
    const { bringUp, ray, queue, ...others } = patch(this.state)
    const own = { ...(bringUp && { bringUp }), ...(ray && { ray }), ...(queue && { queue }) }
    this.#context.change((state) => ({ ...others, ...changeFile(state, this.#at, own) }))
  }

  notice(message: string, tone?: NoticeTone, about?: Notice['about']): void {
    const isInView = this.#isShown && isFileTab(this.#context.state.tab)
    this.#context.notice(isInView ? message : `${this.file.title}: ${message}`, tone, about)
  }

  log(host: string, message: string, tone?: NoticeTone): void {
    this.#context.log(host, `${this.file.title}: ${message}`, tone)
  }

  showTab(tab: Tab): void {
    this.#context.change((state) => showFile(state, this.#at))
    this.#context.showTab(tab)
  }

  copyText(text: string, where: string): boolean {
    return this.#context.copyText(text, where)
  }

  noteRun(run: Parameters<PageContext['noteRun']>[0]): void {
    this.#context.noteRun(run)
  }

  openDialog(make: DialogFactory): void {
    this.#context.openDialog(make)
  }

  get #isShown(): boolean {
    return this.#context.state.files.shown === this.#at
  }
}
