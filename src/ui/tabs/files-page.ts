/** A tab about one hosts.yaml, in a workspace of several: it shows the page of one of them, and the others continue unseen. */
import { clip, partsWidth } from '../../base/text-width.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Span, type Theme } from '../compositor/scene.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'
import type { Busy, ConsoleState, FilesState, Page, PageContext } from '../state/console-state.ts'
import { hasSeveralFiles, showFile } from '../state/files.ts'
import { nameInConsole, type OpenFile } from './file-context.ts'

export const fileKeys = keyTable<ConsoleState>()(
  [
    'next-file',
    ']',
    'next file',
    'Show the next hosts.yaml on the tabs Bring-up, Packing and Jobs, if several are open.',
    hasSeveralFiles,
  ],
  ['file-before', '[', '', 'Show the previous hosts.yaml, if several are open.', hasSeveralFiles],
)

export type PageOfFile = { readonly file: OpenFile; readonly page: Page }

export class FilesPage implements Page {
  readonly #context: PageContext
  readonly #pages: readonly PageOfFile[]
  /** What is drawn stays the same object until it changes. */
  #drawn: { readonly of: readonly unknown[]; readonly panes: readonly PaneView[] } | undefined

  constructor(context: PageContext, pages: readonly PageOfFile[]) {
    this.#context = context
    this.#pages = pages
  }

  get isIdle(): boolean {
    return this.#pages.every(({ page }) => page.isIdle)
  }

  /** Of all files. */
  get busy(): readonly Busy[] {
    return this.#pages.flatMap(({ file, page }) =>
      page.busy.map((busy) => {
        const hosts = busy.hosts.map((host) => nameInConsole(file, host))
        return { title: `${busy.title} of ${file.title}`, hosts }
      }),
    )
  }

  open(): void {
    this.#shown?.open()
  }

  panes(area: Rect, theme: Theme): readonly PaneView[] {
    const panes = this.#shown?.panes(area, theme) ?? []
    const { files } = this.#context.state
    const of = [panes, files.shown, theme]
    if (this.#drawn === undefined || of.some((value, at) => value !== this.#drawn?.of[at])) {
      const [first, ...others] = panes
      const named = first && { ...first, badges: [...fileSpans(files, theme), ...first.badges] }
      this.#drawn = { of, panes: named === undefined ? [] : [named, ...others] }
    }
    return this.#drawn.panes
  }

  handleKey(label: string): boolean {
    const command = commandOf(fileKeys, label, this.#context.state)
    if (command === undefined) return this.#shown?.handleKey(label) ?? false
    this.#step(command === 'next-file' ? 1 : -1)
    return true
  }

  isAnswer(label: string): boolean {
    return this.#shown?.isAnswer?.(label) ?? false
  }

  scrollBy(rows: number): void {
    this.#shown?.scrollBy(rows)
  }

  keepRow(): void {
    this.#shown?.keepRow?.()
  }

  onTableChange(): void {
    this.#shown?.onTableChange?.()
  }

  onDeclared(): void {
    for (const { page } of this.#pages) page.onDeclared?.()
  }

  /** The pages belong to their maker. */
  [Symbol.dispose](): void {}

  #step(by: 1 | -1): void {
    const { length } = this.#pages
    this.#context.change((state) => showFile(state, (state.files.shown + by + length) % length))
    this.open()
  }

  get #shown(): Page | undefined {
    return this.#pages[this.#context.state.files.shown]?.page
  }
}

const LIST_COLUMNS = 30
const TITLE_COLUMNS = 16

/** All files, the shown one marked; only that one where they are too many. */
function fileSpans({ titles, shown }: FilesState, theme: Theme): readonly Span[] {
  const key: Span = { text: ' ]:', style: boldStyle(theme.text) }
  const marked = (title: string): Span => ({ text: ` [${title}] `, style: boldStyle(theme.accent) })
  const list = titles.map(
    (title, at): Span => (at === shown ? marked(title) : { text: `  ${title}  `, style: mutedStyle(theme) }),
  )
  if (partsWidth(list) <= LIST_COLUMNS) return [key, ...list]
  const count: Span = { text: `${shown + 1}/${titles.length} `, style: mutedStyle(theme) }
  return [key, marked(clip(titles[shown] ?? '', TITLE_COLUMNS)), count]
}
