/** The help and docs/keys.md, both from the table of actions. Pure. */
import { padEnd, wrapText } from '../../base/text-width.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
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
const actionSections = (keymap: Keymap) =>
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
export function helpSections(
  keymap: Keymap,
  { tab, panel }: Pick<ConsoleState, 'tab' | 'panel'>,
): readonly HelpSection[] {
  const pages = PAGE_TABS.map(({ id, title }) => ({
    title: `On the tab ${title}, without the leader`,
    entries: pageKeys[id],
    isHere: tab === id,
  }))
  const work = { title: 'In the view of a run or a copy, without the leader', entries: panelKeys }
  const sections = [
    ...actionSections(keymap).map((own) => ({ ...own, isHere: false })),
    { ...work, isHere: tab === 'shells' && panel?.hasKeys === true },
    ...pages,
  ]
  return [...sections.filter(({ isHere }) => isHere), ...sections.filter(({ isHere }) => !isHere)]
}

const MOVES_HELP =
  'Where no host gets your keys, Ctrl-f and Ctrl-d move a page down, Ctrl-b and Ctrl-u a page up, g and G to the ends, as in less and vi.'

export function helpLines(sections: readonly HelpSection[], leader: string): DialogLine[] {
  return [
    {
      text: `Keys go to the receivers. After ${leader} the next key is a command; ${leader} twice sends ${leader} itself.`,
    },
    {
      text: 'Mouse: click focuses, click on a title toggles the host, drag copies, wheel scrolls. Tabs, rows and keys can be clicked.',
      tone: 'muted',
    },
    { text: MOVES_HELP, tone: 'muted' },
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

const keyCell = (keys: readonly string[]): string => keys.map((key) => `\`${key.replaceAll('|', '\\|')}\``).join(' ')
const TABLES = 'Tables: '
const isOfTable = ({ help }: Entry): boolean => help.startsWith(TABLES)
const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const keyRow = ({ keys, help }: Entry): string => `| ${keyCell(keys)} | ${help} |`

export function renderKeysDocs(keymap: Keymap, leader: string): string {
  const out = [
    '# Keys',
    '',
    `Generated from the table of actions (\`npm run docs\`). What you type goes to the receivers. After the leader, **\`${leader}\`**, the next key is a command; the leader twice sends the leader itself. If no key follows within 400 ms, Muster shows all commands by group.`,
    'Change the leader and the keys in `$XDG_CONFIG_HOME/muster/preferences.yaml`: `leader: Ctrl-a`, `keys: { zoom: [z, F11] }` (the names are in the last column).',
  ]
  for (const { title, entries } of actionSections(keymap)) {
    out.push('', `## ${title}`, '', '| after the leader | action | name |', '| --- | --- | --- |')
    out.push(...entries.map((entry) => `${keyRow(entry)} \`${entry.id}\` |`))
  }
  out.push(
    '',
    '## Selecting panes',
    '',
    'After a move or a toggle, arrows keep moving and Space keeps toggling, without the leader. Esc and Enter end the selection. Any other key ends it too, and goes to the receivers.',
    '',
    '## Prompts and lists',
    '',
    '| key | action |',
    '| --- | --- |',
    '| `Up` `Down` | earlier and later lines of this prompt that begin with what you typed |',
    '| `Tab` `Shift-Tab` | complete hosts, groups and paths; again: the next or previous match |',
    '| `Ctrl-a` `Ctrl-e` `Ctrl-u` `Ctrl-k` `Ctrl-w` | edit the line as in a shell |',
    '',
    'Lines are kept in `$XDG_STATE_HOME/muster/prompts.jsonl`, which only you can read. A line that begins with a space is not kept. Passwords are never kept.',
    '',
    '## Scrolling back',
    '',
    '| key | action |',
    '| --- | --- |',
    '| `Up` `Down` `k` `j` | a line |',
    '| `PageUp` `PageDown` `b` `Space` | a page |',
    '| `Ctrl-u` `Ctrl-d` | half a page |',
    '| `g` `Home` `G` `End` | oldest, newest |',
    '| `/` | search (ignores case unless you type a capital letter) |',
    '| `n` `N` | previous match, next match |',
    '| `v` | mark lines, starting at the match or the last line; `v` or Esc unmarks them |',
    '| `y` | copy the marked lines, or everything in view, to the clipboard |',
    '| `Esc` `q` | back to the shells |',
    '',
    '## Mouse',
    '',
    'A click focuses a pane, a click on its title toggles it as a receiver, a double click on its title types into that host alone (a second double click goes back), and the wheel scrolls back. A full-screen program that does not use the mouse (`less`) gets the wheel as arrow keys. A program that uses the mouse gets the clicks inside its pane, and drags that begin there.',
    '',
    'Tabs in the header, keys in the footer and in dialogs, and items of lists can be clicked. In a table a click selects a row, a double click opens it as Enter does, and a click on the title of a column sorts by it; a second click reverses the order. The wheel scrolls what is under the pointer.',
    '',
    '## Clipboard',
    '',
    'Drag over text in a shell to copy it; a double click copies a word, a triple click a line. A line that the pane has wrapped stays one line. In scroll-back `v` marks lines, the keys that scroll extend the mark, and `y` copies it. To copy from a program that uses the mouse, scroll back first. Shift and drag (Option in some macOS terminals) is your terminal’s own selection, also on other tabs.',
    '',
    'Muster writes the text to the clipboard of your terminal with the sequence OSC 52, up to 512 KB, so it also works over SSH. Some terminals ask you to allow it (iTerm2: “Applications in terminal may access clipboard”), and some ignore it. tmux needs `set -g set-clipboard on`; GNU screen does not pass it on. Hosts cannot copy anything: Muster drops their OSC 52. `clipboard: false` in preferences.yaml turns copying off, `mouse: false` the mouse.',
    '',
    '## The view of a run or a copy',
    '',
    'While your keys go to the view, the header says so, and no host gets any.',
    '',
    '| key | action |',
    '| --- | --- |',
    ...panelKeys.map(keyRow),
    '',
    '## The other tabs',
    '',
    'On the tabs other than Shells, no key reaches a host. Numbers, `?` and `:` need no leader there. `Esc` and `q` go back one level, and never leave the tab. `Ctrl-f` and `Ctrl-d` move a page down, `Ctrl-b` and `Ctrl-u` a page up, `g` and `G` to the ends, as in less and vi.',
    '',
    'In the tables of Bring-up, Network, Packing, Jobs and Log:',
    '',
    '| key | action |',
    '| --- | --- |',
    ...pageKeys.log
      .filter(isOfTable)
      .map(({ keys, help }) => keyRow({ keys, help: capitalized(help.slice(TABLES.length)) })),
    ...PAGE_TABS.flatMap(({ id, title }) => [
      '',
      `## The ${title} tab`,
      '',
      '| key | action |',
      '| --- | --- |',
      ...pageKeys[id].filter((entry) => !isOfTable(entry)).map(keyRow),
    ]),
    '',
  )
  return out.join('\n')
}
