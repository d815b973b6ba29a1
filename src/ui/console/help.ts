/** The help, from the tables of keys. Pure. */
import { padEnd, wrapText } from '../../base/text-width.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { PASTE_KEYS } from '../dialogs/paste-dialog.ts'
import { ACTION_SECTIONS, actionSpecs, type Keymap, keysOf, SYNONYMS } from '../keys/registry.ts'
import { hasWord } from '../rows/table-view.ts'
import { type ConsoleState, PAGE_TABS } from '../state/console-state.ts'
import { pageKeys } from '../tabs/page-keys.ts'
import { panelKeys } from '../work-views/panel.ts'

type Entry = {
  readonly keys: readonly string[]
  readonly help: string
  readonly title?: string
  /** Other words for it, which the search finds. */
  readonly synonyms?: string | undefined
}
export type HelpSection = { readonly title: string; readonly entries: readonly Entry[] }

/** The actions of each section, with the user's keys. */
export const actionSections = (keymap: Keymap) =>
  ACTION_SECTIONS.map((title) => ({
    title,
    entries: actionSpecs
      .filter(({ section }) => section === title)
      .map(({ id, title: name, help }) => ({
        id,
        title: name,
        help,
        synonyms: SYNONYMS[id],
        keys: keysOf(keymap, id),
      })),
  }))

/** The sections of the help, those for the current place first. */
export function helpSections({
  keymap,
  tab,
  panel,
}: Pick<ConsoleState, 'keymap' | 'tab' | 'panel'>): readonly HelpSection[] {
  const pages = PAGE_TABS.map(({ id, title }) => ({
    title: `On the tab ${title}, without the leader`,
    entries: pageKeys[id],
    isHere: tab === id,
  }))
  const work = { title: 'In the view of a run or a copy, without the leader', entries: panelKeys }
  const sections = [
    ...actionSections(keymap).map((own) => ({ ...own, isHere: false })),
    { title: 'In the review of a text, without the leader', entries: PASTE_KEYS, isHere: false },
    { ...work, isHere: tab === 'shells' && panel?.hasKeys === true },
    ...pages,
  ]
  return [...sections.filter(({ isHere }) => isHere), ...sections.filter(({ isHere }) => !isHere)]
}

function movesHelp(leader: string): string {
  const keys = (...names: readonly string[]) => names.filter((name) => name !== leader).join(' and ')
  const [down, up] = [keys('Ctrl-f', 'Ctrl-d'), keys('Ctrl-b', 'Ctrl-u')]
  return `Where hosts get no keys, ${down} for a page down, ${up} for a page up, and g and G for the ends, as in less and vi.`
}

export function helpLines(sections: readonly HelpSection[], leader: string): DialogLine[] {
  return [
    {
      text: `Keys go to the receivers. After ${leader} the next key is a command; ${leader} twice sends ${leader} itself.`,
    },
    {
      text: 'Mouse: click focuses, click on a title toggles the host, drag copies, wheel scrolls. Tabs, rows and keys can be clicked.',
      tone: 'muted',
    },
    { text: movesHelp(leader), tone: 'muted' },
    ...sections.flatMap((section) => [{ text: '' }, ...sectionLines(section)]),
  ]
}

const sectionLines = ({ title, entries }: HelpSection): DialogLine[] => [
  { text: title, tone: 'accent' },
  ...entries.map(({ keys, help }) => ({ text: `${padEnd(keys.join(' '), 14)} ${help}` })),
]

/** Entries with all words in their keys, names and help, or in the title of their section. */
export function findHelp(sections: readonly HelpSection[], text: string): DialogLine[] {
  const words = text.split(/\s+/).filter(Boolean)
  return sections.flatMap(({ title, entries }) => {
    const found = entries.filter(({ keys, help, title: name = '', synonyms = '' }) =>
      words.every((word) => hasWord([...keys, help, name, synonyms, title].join(' '), word)),
    )
    return found.length === 0 ? [] : sectionLines({ title, entries: found })
  })
}

/** Wraps the lines at `columns`: an entry continues under its text, a paragraph at the margin. */
export function wrapHelp(lines: readonly DialogLine[], columns: number): DialogLine[] {
  return lines.flatMap((line) =>
    line.text === ''
      ? [line]
      : wrapText(line.text, columns, / {2,}/.test(line.text) ? ' '.repeat(15) : '').map((text) => ({ ...line, text })),
  )
}
