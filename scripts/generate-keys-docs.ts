/** Renders docs/keys.md from the tables of keys. */
import { actionSections } from '../src/ui/console/help.ts'
import { PASTE_KEYS } from '../src/ui/dialogs/paste-dialog.ts'
import type { KeyEntry } from '../src/ui/keys/key-table.ts'
import { createKeymap } from '../src/ui/keys/registry.ts'
import { defaultPreferences } from '../src/ui/preferences.ts'
import { PAGE_TABS } from '../src/ui/state/console-state.ts'
import { pageKeys } from '../src/ui/tabs/page-keys.ts'
import { panelKeys } from '../src/ui/work-views/panel.ts'

type Entry = Pick<KeyEntry<never>, 'keys' | 'help'>

const keyCell = (keys: readonly string[]): string => keys.map((key) => `\`${key.replaceAll('|', '\\|')}\``).join(' ')
const TABLES = 'Tables: '
const isOfTable = ({ help }: Entry): boolean => help.startsWith(TABLES)
const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const keyRow = ({ keys, help }: Entry): string => `| ${keyCell(keys)} | ${help} |`

export function renderKeysDocs(): string {
  const { leader } = defaultPreferences
  const out = [
    '# Keys',
    '',
    `Generated from the table of actions (\`npm run docs\`). What you type goes to the receivers. After the leader, **\`${leader}\`**, the next key is a command; the leader twice sends the leader itself. If no key follows within 400 ms, Muster shows all commands by group.`,
    'Change the leader and the keys in `$XDG_CONFIG_HOME/muster/preferences.yaml`: `leader: Ctrl-a`, `keys: { zoom: [z, F11] }` (the names are in the last column). A key that you give to one action is taken from another; Muster warns if that one has none left. `[]` is no key.',
  ]
  for (const { title, entries } of actionSections(createKeymap())) {
    out.push('', `## ${title}`, '', '| after the leader | action | name |', '| --- | --- | --- |')
    out.push(...entries.map((entry) => `${keyRow(entry)} \`${entry.id}\` |`))
  }
  out.push(
    '',
    '## Selecting panes',
    '',
    'After a move or a toggle, arrows keep moving and Space keeps toggling, without the leader, until none of these keys was typed for 2 s. Esc and Enter end the selection at once. Any other key ends it too, and goes to the receivers.',
    '',
    '## Prompts and lists',
    '',
    '| key | action |',
    '| --- | --- |',
    '| `Up` `Down` | earlier and later lines of this prompt that begin with what you typed |',
    '| `Tab` `Shift-Tab` | complete hosts, groups and paths; again: the next or previous match |',
    '| `Ctrl-a` `Ctrl-e` `Ctrl-u` `Ctrl-k` `Ctrl-w` | edit the line as in a shell |',
    '',
    'Lines are kept in `$XDG_STATE_HOME/muster/prompts.jsonl`, which only you can read. A line that you leave with Esc is not in the file, but `Up` brings it back. A line that begins with a space is not kept. Passwords are never kept.',
    '',
    '## The review of a text',
    '',
    'A multi-line paste, or a text that you write for hosts, is shown for review first. The title names the hosts that get it. A text that you close, or that was lost before any host answered, is kept until you quit; Muster asks before you lose it. If a host asks a question that may be for a password, the text is neither shown nor kept. A text that was kept before does not open then; Ctrl-o shows it.',
    '',
    '| key | action |',
    '| --- | --- |',
    ...PASTE_KEYS.map(keyRow),
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
    'On the tabs other than Shells, no key reaches a host. Numbers, `?` and `:` need no leader there. `Esc` and `q` go back one level and never leave the tab, except that `Esc` goes back to Packing from a job that was opened there. `Ctrl-f` and `Ctrl-d` move a page down, `Ctrl-b` and `Ctrl-u` a page up, and `g` and `G` go to the ends, as in less and vi.',
    '',
    'A letter that gives the keys back to the shells may be part of a word (`1`, a letter of the view of a run, `q` in the scroll-back, the answer to a question). So nothing but `Ctrl-c` is sent for half a second after it, and the header says ONE MOMENT. If a letter is typed in this time, it is dropped with the rest of its line, which would be another command, and the header says UNTIL ENTER. With `Enter` the half second begins again, so lines that follow without a pause are dropped, too. `Esc`, `Ctrl-c` and `Ctrl-u` give the line up at once.',
    '',
    'The half second also begins after a command that only says why it does nothing: what you type next may be meant for the prompt that it did not open. It begins, too, when an arrow or another key arrives in pieces, as over a slow line, and Muster took its first byte for Esc. On a tab, a number may be part of a word as well. It does not change the tab if two or more letters were typed just before it and the first of them does nothing on that tab.',
    '',
    '`y` answers a question, or a plan on a tab, only if no other letter was typed in the half second before, because it may be part of a word, too. A command after the leader does not count as a letter.',
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
